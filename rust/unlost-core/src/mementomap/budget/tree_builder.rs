//! Builds the nodes of a map's tree from its lines and from queries.

use std::borrow::Cow;
use std::collections::HashSet;

use super::super::Entry;
use super::super::tree_key::{SLASH, common_len, split_tree_key};
use super::cost::LineCost;
use super::nodes::{NONE, Node, Nodes, Traits};
use crate::uri::{Section, Segments, Suffixes};

/// Hosting services (`tumblr,com`) have far more hosts than are known. This number of unknown hosts is expected below
/// such a name. Measured on two real URL lists.
const SHARED_HOSTS: f64 = 100.0;

/// Options of the tree: which nodes may be rolled up, and which unit is counted.
pub(super) struct TreeOptions<'a> {
    pub(super) host_depth: usize,
    pub(super) path_depth: usize,
    /// The number of key fields per line.
    pub(super) fields: usize,
    /// Whether public suffixes are never rolled up.
    pub(super) protect_suffixes: bool,
    pub(super) forced_keys: &'a HashSet<Vec<u8>>,
    /// Whether bits of compressed text are counted instead of lines.
    pub(super) by_compressed_size: bool,
}

/// An open node on the path to the last key.
#[derive(Clone, Copy)]
struct OpenNode {
    node: u32,
    /// Where its prefix ends in the key.
    end: usize,
    /// Its level among hosts or paths, from 0.
    level: usize,
    /// The values of further key fields in the subtree, as a set of 64 bits.
    extras: u64,
    /// The cost of a line up to the end of its prefix; negative before the first line.
    prefix_cost: f32,
    /// The maximum cost of its wildcard.
    max_wildcard_cost: f32,
    /// Whether a line, and whether a host, is below it.
    has_below: bool,
    has_hosts: bool,
    /// For a host with pages: its weight as a host below others.
    host: f64,
}

/// Takes lines and queries in tree order.
pub(super) struct TreeBuilder<'a> {
    options: TreeOptions<'a>,
    /// Suffixes of registries, and those including private ones.
    suffixes: [Suffixes; 2],
    pub(super) nodes: Nodes,
    open: Vec<OpenNode>,
    key: Vec<u8>,
    cost: LineCost,
    extras: Vec<Vec<u8>>,
    /// Hosts with pages that are held.
    hosts: u64,
}

impl<'a> TreeBuilder<'a> {
    pub(super) fn new(options: TreeOptions<'a>) -> Self {
        Self {
            options,
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
        let (surt, extra) = match self.options.fields {
            1 => (entry.key, Cow::Borrowed(&b""[..])),
            _ => split_tree_key(entry.key),
        };
        let bits = if self.options.by_compressed_size {
            self.cost.line_cost(|text| entry.write(text))
        } else {
            1.0
        };
        self.enter(surt);
        for open in self
            .open
            .iter_mut()
            .rev()
            .take_while(|open| open.prefix_cost < 0.0)
        {
            // A root is written as easily as its host: `)/*` is as common as `,*`.
            let is_root = self.key.get(open.end - 1) == Some(&b')');
            open.prefix_cost = self.cost.prefix_cost(open.end - usize::from(is_root));
            open.max_wildcard_cost = self.cost.max_wildcard_cost(open.end);
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

    /// Adds `count` queries for a page that no line covers.
    pub(super) fn add_query(&mut self, surt: &[u8], count: u64) {
        self.enter(surt);
        if let Some(innermost) = self.open.last() {
            // Exact for all realistic numbers of queries.
            #[allow(clippy::cast_precision_loss)]
            let count = count as f64;
            self.nodes.all[innermost.node as usize].query_count += count;
        }
    }

    /// Closes all nodes. Returns them, and the number of hosts with holdings.
    pub(super) fn finish(mut self) -> (Nodes, u64) {
        while !self.open.is_empty() {
            self.close();
        }
        (self.nodes, self.hosts)
    }

    /// A bit for a value of the further key fields. Beyond 64 values, bits are shared.
    fn extra(&mut self, extra: &[u8]) -> u64 {
        if self.options.fields == 1 {
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

    /// Closes the nodes that a key is not below, and opens those on its path.
    fn enter(&mut self, surt: &[u8]) {
        let host_end = memchr::memchr(b')', surt);
        // A wildcard is a line of its parent node; the root page is a line of the root.
        let key = match (host_end, surt) {
            (None, _) => surt.strip_suffix(b",*").unwrap_or(surt),
            (Some(_), [node @ .., SLASH, b'*']) => node,
            (Some(end), [node @ .., SLASH]) if node.len() == end + 1 => node,
            _ => surt,
        };
        let common = common_len(&self.key, key);
        while let Some(&last) = self.open.last() {
            if last.end <= common && self.contains(last, key) {
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

    fn contains(&self, open: OpenNode, key: &[u8]) -> bool {
        let is_host = self.nodes.all[open.node as usize].traits.has(Traits::HOST);
        match key.get(open.end) {
            None => true,
            Some(b')') => is_host,
            Some(b',') => is_host && open.level + 1 < self.options.host_depth,
            Some(&SLASH) => !is_host && open.level + 1 < self.options.path_depth,
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
        let levels = if Segments::of(&host).is_outside_domains() {
            1
        } else {
            self.options.host_depth
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
        while level + 1 < self.options.path_depth {
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
        self.open.push(OpenNode {
            node,
            end,
            level,
            extras: 0,
            prefix_cost: -1.0,
            max_wildcard_cost: 0.0,
            has_below: false,
            has_hosts: false,
            host: 0.0,
        });
    }

    /// Closes the innermost node and adds it to its parent. A node without a subtree is dropped.
    fn close(&mut self) {
        let Some(open) = self.open.pop() else {
            return;
        };
        let at = open.node as usize;
        let mut node = self.nodes.all[at].clone();
        let is_wild = node.traits.has(Traits::COVERED) || node.traits.has(Traits::EXCLUDED);
        if !open.has_below && !is_wild {
            self.nodes.pop();
            self.add_to_parent(&node, open, node.own);
            return;
        }
        if node.traits.has(Traits::HELD) {
            self.set_collapsible(&mut node, open);
        }
        let line = if self.options.by_compressed_size {
            LineCost::wildcard_cost(open.prefix_cost, open.max_wildcard_cost, node.keys)
        } else {
            1.0
        };
        node.rolled_cost = f64::from(line) * f64::from(open.extras.count_ones().max(1));
        self.add_to_parent(&node, open, 0.0);
        self.nodes.all[at] = node;
    }

    /// Marks whether a node with holdings may or must be rolled up.
    fn set_collapsible(&self, node: &mut Node, open: OpenNode) {
        let is_host = node.traits.has(Traits::HOST);
        let levels = if is_host {
            self.options.host_depth
        } else {
            self.options.path_depth
        };
        // A node on the last level represents itself and all deeper nodes.
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
        // A top-level domain is never rolled up by itself; and `,*` differs from `)/*` only if there are other hosts.
        let is_wild = node.traits.has(Traits::COVERED) || node.traits.has(Traits::EXCLUDED);
        let is_pages = is_host && !open.has_hosts && !is_wild;
        let is_top = is_host && open.level == 0;
        if !(is_top || is_pages || is_registry && self.options.protect_suffixes) {
            node.traits.set(Traits::COLLAPSIBLE);
        }
        let forced_keys = self.options.forced_keys;
        if !forced_keys.is_empty() && forced_keys.contains(&self.nodes.wildcard(open.node)) {
            node.traits.set(Traits::FORCED);
        }
    }

    /// Whether a host is a public suffix of a registry, and one including private ones.
    fn are_suffixes(&self, host: &[u8]) -> [bool; 2] {
        let labels: Vec<&[u8]> = Segments::of(host).host_labels().collect();
        let is_suffix = |list: &Suffixes| list.suffix_len(&labels) >= labels.len();
        [is_suffix(&self.suffixes[0]), is_suffix(&self.suffixes[1])]
    }

    /// Adds a closed node to its parent; `own` is the cost of its lines if it is not a node by itself.
    fn add_to_parent(&mut self, node: &Node, open: OpenNode, own: f64) {
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
        parent.query_count += node.query_count;
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
