//! From the lines of a map, and questions, to the nodes of its tree.

use std::borrow::Cow;
use std::collections::HashSet;

use super::super::Entry;
use super::super::order::{SLASH, common_len, split_tree_key};
use super::cost::LineCost;
use super::nodes::{NONE, Node, Nodes, Traits};
use crate::uri::{Section, Segments, Suffixes};

/// Below a name under which anybody gets one of his own (`tumblr,com`), more hosts are asked for than are known: so many,
/// by the real URL lists.
const SHARED_HOSTS: f64 = 100.0;

/// What may be rolled up, and what is counted.
pub(super) struct Growth<'a> {
    pub(super) host_depth: usize,
    pub(super) path_depth: usize,
    /// How many fields of a line are keys.
    pub(super) fields: usize,
    /// Public suffixes, none of which is rolled up.
    pub(super) protects: bool,
    pub(super) forced: &'a HashSet<Vec<u8>>,
    /// Whether bits of compressed text are counted, not lines.
    pub(super) weighs: bool,
}

/// A node on the way to the last key.
#[derive(Clone, Copy)]
struct Open {
    node: u32,
    /// Where its prefix ends in the key.
    end: usize,
    /// Among hosts or paths, from 0.
    level: usize,
    /// Which values of the further key fields lie below, as far as 64 bits tell.
    extras: u64,
    /// What a line costs up to the end of its prefix; less than 0 before one came.
    beginning: f32,
    /// What its wildcard costs at most.
    most: f32,
    /// Whether some line lies below it, and whether some host does.
    has_below: bool,
    has_hosts: bool,
    /// Of a host with pages: what it counts for as a host below others.
    host: f64,
}

/// Takes lines and questions in the order of the tree.
pub(super) struct Grower<'a> {
    growth: Growth<'a>,
    /// Those of registries, and those of companies too.
    suffixes: [Suffixes; 2],
    pub(super) nodes: Nodes,
    open: Vec<Open>,
    key: Vec<u8>,
    cost: LineCost,
    extras: Vec<Vec<u8>>,
    /// Hosts with pages that are held.
    hosts: u64,
}

impl<'a> Grower<'a> {
    pub(super) fn new(growth: Growth<'a>) -> Self {
        Self {
            growth,
            suffixes: [Section::Icann, Section::All].map(Suffixes::built_in),
            nodes: Nodes::default(),
            open: Vec::new(),
            key: Vec::new(),
            cost: LineCost::new(),
            extras: Vec::new(),
            hosts: 0,
        }
    }

    /// Takes the next line of the map.
    pub(super) fn add(&mut self, entry: &Entry<'_>) {
        let (surt, extra) = match self.growth.fields {
            1 => (entry.key, Cow::Borrowed(&b""[..])),
            _ => split_tree_key(entry.key),
        };
        let bits = if self.growth.weighs {
            self.cost.line(|text| entry.write(text))
        } else {
            1.0
        };
        self.enter(surt);
        for open in self
            .open
            .iter_mut()
            .rev()
            .take_while(|open| open.beginning < 0.0)
        {
            // A root is as easily written as its host: `)/*` is as usual as `,*`.
            let is_root = self.key.get(open.end - 1) == Some(&b')');
            open.beginning = self.cost.beginning(open.end - usize::from(is_root));
            open.most = self.cost.most(open.end);
        }
        let extra = self.extra(&extra);
        let is_held = entry.frequency.is_held();
        let Some(innermost) = self.open.last_mut() else {
            return;
        };
        innermost.extras |= extra;
        let node = &mut self.nodes.all[innermost.node as usize];
        node.own += f64::from(bits);
        node.traits.set(Traits::KNOWN);
        match (surt.ends_with(b"*"), is_held) {
            (true, true) => node.traits.set(Traits::COVERED | Traits::HELD),
            (true, false) if !node.traits.has(Traits::COVERED) => {
                node.traits.set(Traits::EXCLUDED);
            }
            (false, true) => {
                node.traits.set(Traits::HELD);
                node.keys = node.keys.saturating_add(1);
            }
            _ => {}
        }
    }

    /// Takes so many questions for a page that no line is about.
    pub(super) fn ask(&mut self, surt: &[u8], count: u64) {
        self.enter(surt);
        if let Some(innermost) = self.open.last() {
            // Exact up to far more questions than there are.
            #[allow(clippy::cast_precision_loss)]
            let count = count as f64;
            self.nodes.all[innermost.node as usize].asked += count;
        }
    }

    /// Closes everything. Returns the nodes, and how many hosts hold something.
    pub(super) fn finish(mut self) -> (Nodes, u64) {
        while !self.open.is_empty() {
            self.close();
        }
        (self.nodes, self.hosts)
    }

    /// One bit for a value of the further key fields. Beyond 64 of them some share a bit.
    fn extra(&mut self, extra: &[u8]) -> u64 {
        if self.growth.fields == 1 {
            return 1;
        }
        let known = self.extras.iter().position(|other| other == extra);
        let at = known.unwrap_or_else(|| {
            if self.extras.len() < 64 {
                self.extras.push(extra.to_vec());
            }
            self.extras.len() - 1
        });
        1 << at
    }

    /// Closes the nodes that a key is not below, and opens those on its way.
    fn enter(&mut self, surt: &[u8]) {
        let host_end = memchr::memchr(b')', surt);
        // A wildcard is a line of the node above it; the root page is one of the root.
        let key = match (host_end, surt) {
            (None, _) => surt.strip_suffix(b",*").unwrap_or(surt),
            (Some(_), [node @ .., SLASH, b'*']) => node,
            (Some(end), [node @ .., SLASH]) if node.len() == end + 1 => node,
            _ => surt,
        };
        let common = common_len(&self.key, key);
        while let Some(&last) = self.open.last() {
            if last.end <= common && self.goes_on(last, key) {
                break;
            }
            self.close();
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        self.open_hosts(host_end.unwrap_or(key.len()));
        if let Some(end) = host_end {
            self.open_paths(end);
        }
    }

    fn goes_on(&self, open: Open, key: &[u8]) -> bool {
        let is_host = self.nodes.all[open.node as usize].traits.has(Traits::HOST);
        match key.get(open.end) {
            None => true,
            Some(b')') => is_host,
            Some(b',') => is_host && open.level + 1 < self.growth.host_depth,
            Some(&SLASH) => !is_host && open.level + 1 < self.growth.path_depth,
            Some(_) => false,
        }
    }

    fn open_hosts(&mut self, host_end: usize) {
        let (mut next, mut level) = match self.open.last() {
            Some(open) if open.end >= host_end => return,
            Some(open) => (open.end + 1, open.level + 1),
            None => (0, 0),
        };
        let host = self.key[..host_end].to_vec();
        let levels = if Segments::of(&host).is_apart() {
            1
        } else {
            self.growth.host_depth
        };
        while level + 1 < levels {
            let Some(length) = memchr::memchr(b',', &host[next..]) else {
                break;
            };
            self.open_node(next + length, level, true);
            next += length + 1;
            level += 1;
        }
        self.open_node(host_end, level, true);
    }

    fn open_paths(&mut self, host_end: usize) {
        let root = host_end + 1;
        let (mut next, mut level) = match self.open.last() {
            Some(open) if open.end < root => (root, 0),
            Some(open) if open.end == self.key.len() => return,
            Some(open) => (open.end + 1, open.level + 1),
            None => return,
        };
        while level + 1 < self.growth.path_depth {
            let Some(length) = memchr::memchr(SLASH, &self.key[next..]) else {
                break;
            };
            self.open_node(next + length, level, false);
            next += length + 1;
            level += 1;
        }
        self.open_node(self.key.len(), level, false);
    }

    fn open_node(&mut self, end: usize, level: usize, is_host: bool) {
        let (parent, start) = match self.open.last() {
            Some(open) => (open.node, open.end),
            None => (NONE, 0),
        };
        let traits = if is_host { Traits::HOST } else { 0 };
        let node = self.nodes.push(parent, traits, &self.key[start..end]);
        self.open.push(Open {
            node,
            end,
            level,
            extras: 0,
            beginning: -1.0,
            most: 0.0,
            has_below: false,
            has_hosts: false,
            host: 0.0,
        });
    }

    /// Closes the innermost node: what it stands for goes to the one around it. If nothing lies below it, it is no node.
    fn close(&mut self) {
        let Some(open) = self.open.pop() else {
            return;
        };
        let at = open.node as usize;
        let mut node = self.nodes.all[at].clone();
        let is_wild = node.traits.has(Traits::COVERED) || node.traits.has(Traits::EXCLUDED);
        if !open.has_below && !is_wild {
            self.nodes.pop();
            self.pass_on(&node, open, node.own);
            return;
        }
        if node.traits.has(Traits::HELD) {
            self.set_free(&mut node, open);
        }
        let line = if self.growth.weighs {
            LineCost::wildcard(open.beginning, open.most, node.keys)
        } else {
            1.0
        };
        node.rolled = f64::from(line) * f64::from(open.extras.count_ones().max(1));
        self.pass_on(&node, open, 0.0);
        self.nodes.all[at] = node;
    }

    /// Says of a node that holds something whether it may, or must, be rolled up.
    fn set_free(&self, node: &mut Node, open: Open) {
        let is_host = node.traits.has(Traits::HOST);
        let levels = if is_host {
            self.growth.host_depth
        } else {
            self.growth.path_depth
        };
        // On the last level nodes stand for themselves and for what lies below others.
        if open.level + 1 >= levels {
            return;
        }
        let [is_registry, is_shared] = if is_host {
            self.are_suffixes(&self.key[..open.end])
        } else {
            [false; 2]
        };
        if is_shared && !is_registry {
            node.hosts += SHARED_HOSTS;
        }
        // A top-level domain is never rolled up by itself; and `,*` says no less than `)/*` only if there are other hosts.
        let is_wild = node.traits.has(Traits::COVERED) || node.traits.has(Traits::EXCLUDED);
        let is_pages = is_host && !open.has_hosts && !is_wild;
        let is_top = is_host && open.level == 0;
        if !(is_top || is_pages || is_registry && self.growth.protects) {
            node.traits.set(Traits::FREE);
        }
        let forced = self.growth.forced;
        if !forced.is_empty() && forced.contains(&self.nodes.wildcard(open.node)) {
            node.traits.set(Traits::FORCED);
        }
    }

    /// Whether a host is a public suffix of a registry, and of anybody.
    fn are_suffixes(&self, host: &[u8]) -> [bool; 2] {
        let labels: Vec<&[u8]> = Segments::of(host).host_labels().collect();
        let is_suffix = |list: &Suffixes| list.suffix_len(&labels) >= labels.len();
        [is_suffix(&self.suffixes[0]), is_suffix(&self.suffixes[1])]
    }

    /// Adds a closed node to the one around it; `own` is what its lines cost if it is no node by itself.
    fn pass_on(&mut self, node: &Node, open: Open, own: f64) {
        let Some(around) = self.open.last_mut() else {
            return;
        };
        around.extras |= open.extras;
        around.has_below |= node.traits.has(Traits::KNOWN);
        around.has_hosts |= node.traits.has(Traits::KNOWN) && node.traits.has(Traits::HOST);
        let parent = &mut self.nodes.all[around.node as usize];
        let is_root = open.level == 0 && !node.traits.has(Traits::HOST);
        let is_held = node.traits.has(Traits::HELD);
        parent.own += own;
        parent.asked += node.asked;
        parent.keys = parent.keys.saturating_add(node.keys);
        parent.hosts += node.hosts + open.host;
        if is_root && is_held {
            around.host = 1.0 / f64::from(node.keys.max(1));
            self.hosts += 1;
        }
        for one in [Traits::HELD, Traits::KNOWN] {
            if node.traits.has(one) {
                parent.traits.set(one);
            }
        }
    }
}
