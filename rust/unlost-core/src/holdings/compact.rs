//! Compaction: where a map's tree branches too much, one wildcard stands for a whole subtree.
//!
//! Entries come in the order of their bytes. A host's pages are put into the order of the tree, walked with a stack of
//! open nodes, and what is left of them is put back into the order of bytes. Text is written to a spool that is cut back
//! to where a node began when that node is rolled up, so the shallowest node wins by itself.

use std::io::Write;

use super::order::Order;
use super::sorter::Sorter;
use super::spool::Spool;
use super::totals::{Totals, write_line};
use super::{Entry, HoldingsError, Progress, Table};
use crate::uri::Segments;

/// How many children a node may have: `a · x^-k · weight`, where x grows with its depth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve {
    /// The factor of the power law.
    pub a: f64,
    /// Its exponent.
    pub k: f64,
    /// What the user multiplies it with; infinite for no limit.
    pub weight: f64,
    /// How many levels there are; what lies deeper counts as one segment.
    pub depth: usize,
}

impl Curve {
    /// The cut-offs of the levels, from the first.
    fn cutoffs(&self) -> Vec<f64> {
        // Levels are few.
        #[allow(clippy::cast_precision_loss)]
        let cutoff = |level: usize| self.a * ((level + 1) as f64).powf(-self.k) * self.weight;
        (0..self.depth).map(cutoff).collect()
    }
}

/// How a map is compacted.
#[derive(Debug, Clone, PartialEq)]
pub struct Compaction {
    /// For host labels; the first level is the top-level domain, which is never rolled up by itself.
    pub host: Curve,
    /// For path segments; the first level is the host's root.
    pub path: Curve,
    /// Wildcard keys that are rolled up in any case; `*` is everything.
    pub forced: Vec<Vec<u8>>,
}

impl Compaction {
    pub(super) fn is_everything(&self) -> bool {
        self.forced.iter().any(|key| key == b"*")
    }
}

/// What a map's tree is like, and what compacting did to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    /// By level of hosts, then of paths: nodes that have children.
    pub parents: Vec<u64>,
    /// By level: how many children those have.
    pub children: Vec<u64>,
    /// By level: how many nodes were rolled up, and still are.
    pub rollups: Vec<u64>,
    /// How many levels are hosts'.
    pub host_levels: usize,
    /// Lines read and written.
    pub lines_in: u64,
    /// Without the total.
    pub lines_out: u64,
    /// Lines read and written up to here, at growing distances.
    pub trace: Vec<(u64, u64)>,
}

/// An open node of the tree.
#[derive(Debug, Default)]
struct Node {
    /// Where its prefix ends in the key that was read last.
    end: usize,
    /// Where its text begins in the spool.
    start: u64,
    children: u64,
    is_held: bool,
    is_forced: bool,
    is_rolled: bool,
    sums: Totals,
    /// Roll-ups below it, by level.
    rollups: Vec<u64>,
}

/// Which of the two trees: they differ in their separator and in how their text is kept.
struct Tree {
    nodes: Vec<Node>,
    /// How many of the nodes are open; the others' memory is used again.
    open: usize,
    cutoffs: Vec<f64>,
    /// Before which of all levels this tree's begin.
    first_level: usize,
    separator: u8,
    /// The text of the open nodes.
    spool: Spool,
    /// The key that was read last, of which the open nodes are prefixes.
    key: Vec<u8>,
}

impl Tree {
    fn new(curve: &Curve, first_level: usize, separator: u8, memory: usize) -> Self {
        Self {
            nodes: Vec::new(),
            open: 0,
            cutoffs: curve.cutoffs(),
            first_level,
            separator,
            spool: Spool::new(memory),
            key: Vec::new(),
        }
    }

    /// Whether an open node is rolled up, so that nothing below it needs to be written.
    fn is_rolled(&self) -> bool {
        self.nodes[..self.open].iter().any(|node| node.is_rolled)
    }

    fn open_node(&mut self, end: usize, forced: &[Vec<u8>], levels: usize) {
        if self.open == self.nodes.len() {
            self.nodes.push(Node::default());
        }
        let node = &mut self.nodes[self.open];
        node.end = end;
        node.start = self.spool.len();
        node.children = 0;
        node.is_held = false;
        node.is_rolled = false;
        node.sums.clear();
        node.rollups.clear();
        node.rollups.resize(levels, 0);
        let prefix = &self.key[..end];
        node.is_forced = forced.iter().any(|key| {
            key.strip_prefix(prefix)
                .is_some_and(|rest| rest == [self.separator, b'*'])
        });
        self.open += 1;
    }

    /// Marks the innermost node, and those around it, as holding something; rolls up what thereby has too many children.
    fn hold(&mut self) -> Result<(), HoldingsError> {
        for level in (0..self.open).rev() {
            if self.nodes[level].is_held {
                break;
            }
            self.nodes[level].is_held = true;
            if self.nodes[level].is_forced {
                self.roll_up(level)?;
            }
            if let Some(parent) = level.checked_sub(1) {
                self.nodes[parent].children += 1;
                // Counts of children are far below what a float holds exactly.
                #[allow(clippy::cast_precision_loss)]
                let too_many = self.nodes[parent].children as f64 > self.cutoffs[parent];
                let is_top_domain = self.separator == b',' && parent == 0;
                if too_many && !is_top_domain {
                    self.roll_up(parent)?;
                }
            }
        }
        Ok(())
    }

    fn roll_up(&mut self, level: usize) -> Result<(), HoldingsError> {
        if !self.nodes[level].is_rolled {
            self.nodes[level].is_rolled = true;
            let outside = !self.nodes[..level].iter().any(|node| node.is_rolled);
            if outside {
                self.spool.truncate(self.nodes[level].start)?;
            }
        }
        Ok(())
    }

    /// Closes the innermost node; its sums go to the one around it, or are returned from the outermost.
    fn close(&mut self, shape: &mut Shape) -> Result<Option<&Node>, HoldingsError> {
        self.open -= 1;
        let level = self.open;
        let (outer, inner) = self.nodes.split_at_mut(level);
        let node = &mut inner[0];
        let counted = self.first_level + level;
        if node.children > 0 {
            shape.parents[counted] += 1;
            shape.children[counted] += node.children;
        }
        if node.is_rolled {
            node.rollups.fill(0);
            node.rollups[counted] = 1;
            if !outer.iter().any(|node| node.is_rolled) {
                let mut key = self.key[..node.end].to_vec();
                key.extend([self.separator, b'*']);
                self.spool.append(|text| {
                    for (extra, sum) in node.sums.iter().filter(|(_, sum)| !sum.is_exclusion()) {
                        write_line(&key, extra, sum, text);
                    }
                })?;
            }
        }
        match outer.last_mut() {
            Some(parent) => {
                parent.sums.append(&node.sums)?;
                for (sum, count) in parent.rollups.iter_mut().zip(&node.rollups) {
                    *sum += count;
                }
                Ok(None)
            }
            None => Ok(Some(node)),
        }
    }
}

/// Compacts entries that come in the order of their bytes, and writes what is left.
pub struct Compactor<'a, W: Write> {
    forced: &'a [Vec<u8>],
    memory: usize,
    out: &'a mut W,
    hosts: Tree,
    paths: Tree,
    /// The pages of the host that is being read, and those of them that did not fit in memory.
    pages: Table,
    overflow: Option<Sorter>,
    fields: usize,
    /// Whether host nodes can be rolled up, so that text has to wait for that.
    waits: bool,
    /// Everything together, if all of it is rolled up.
    everything: Option<Totals>,
    shape: Shape,
    next_trace: u64,
}

impl<'a, W: Write> Compactor<'a, W> {
    /// Writes to `out`; hosts of more than about three times `memory` are sorted in temporary files.
    pub fn new(compaction: &'a Compaction, memory: usize, out: &'a mut W) -> Self {
        let (host, path) = (&compaction.host, &compaction.path);
        let levels = host.depth + path.depth;
        Self {
            forced: &compaction.forced,
            memory,
            out,
            hosts: Tree::new(host, 0, b',', memory / 2),
            paths: Tree::new(path, host.depth, b'/', memory / 2),
            pages: Table::default(),
            overflow: None,
            fields: 1,
            waits: host.weight.is_finite() || !compaction.forced.is_empty(),
            everything: compaction.is_everything().then(Totals::default),
            shape: Shape {
                parents: vec![0; levels],
                children: vec![0; levels],
                rollups: vec![0; levels],
                host_levels: host.depth,
                ..Shape::default()
            },
            next_trace: 0,
        }
    }

    /// Takes the next entry.
    pub fn push(&mut self, entry: &Entry<'_>, progress: &Progress) -> Result<(), HoldingsError> {
        let (surt, _) = entry.surt_and_extra();
        if surt == b"*" {
            return self.push_total(entry);
        }
        self.shape.lines_in += 1;
        if self.shape.lines_in % 4096 == 0 {
            progress.go_on()?;
        }
        if let Some(everything) = &mut self.everything {
            return everything.add(entry);
        }
        let Some(host_end) = memchr::memchr(b')', surt) else {
            return self.push_host(surt, entry);
        };
        let host = &surt[..host_end];
        let is_same = self.hosts.key.as_slice() == host;
        if !is_same || self.paths.open == 0 {
            self.end_pages()?;
            self.move_to(host)?;
            self.paths.key.clear();
            self.paths.key.extend_from_slice(&surt[..=host_end]);
            self.paths
                .open_node(host_end + 1, self.forced, self.shape.rollups.len());
            self.fields = 1 + memchr::memchr_iter(b' ', entry.key).count();
        }
        if let Some(overflow) = &mut self.overflow {
            return overflow.push(entry);
        }
        self.pages.push(entry)?;
        if self.pages.size() > self.memory * 3 {
            let mut overflow = Sorter::new(Order::Tree, self.fields, self.memory);
            for page in self.pages.iter() {
                overflow.push(&page)?;
            }
            self.pages.clear();
            self.overflow = Some(overflow);
        }
        Ok(())
    }

    /// Takes a total, which stays as it is, unless everything is rolled up into it.
    fn push_total(&mut self, entry: &Entry<'_>) -> Result<(), HoldingsError> {
        if self.everything.is_some() {
            return Ok(());
        }
        self.end_pages()?;
        while self.hosts.open > 0 {
            self.close_host()?;
        }
        self.write_out()?;
        let mut line = Vec::new();
        entry.write(&mut line);
        Ok(self.out.write_all(&line)?)
    }

    /// Takes a wildcard of hosts, such as `com,example,*`.
    fn push_host(&mut self, surt: &[u8], entry: &Entry<'_>) -> Result<(), HoldingsError> {
        self.end_pages()?;
        self.move_to(surt.strip_suffix(b",*").unwrap_or(surt))?;
        add(&mut self.hosts, entry)
    }

    /// Closes the hosts that end here and opens those that begin.
    fn move_to(&mut self, host: &[u8]) -> Result<(), HoldingsError> {
        let mut ends = Vec::with_capacity(8);
        host_ends(host, self.hosts.cutoffs.len(), &mut ends);
        let common = common_nodes(&self.hosts, host, &ends);
        while self.hosts.open > common {
            self.close_host()?;
        }
        self.hosts.key.clear();
        self.hosts.key.extend_from_slice(host);
        for &end in &ends[common..] {
            self.hosts
                .open_node(end, self.forced, self.shape.rollups.len());
        }
        Ok(())
    }

    fn close_host(&mut self) -> Result<(), HoldingsError> {
        if let Some(top) = self.hosts.close(&mut self.shape)? {
            for (sum, count) in self.shape.rollups.iter_mut().zip(&top.rollups) {
                *sum += count;
            }
        }
        // A top-level domain is not rolled up by itself: nothing has to wait for its end, unless that is forced.
        let settled = match self.hosts.open {
            0 => true,
            1 => !self.hosts.nodes[0].is_forced,
            _ => !self.waits,
        };
        if settled {
            self.write_out()?;
        }
        Ok(())
    }

    fn write_out(&mut self) -> Result<(), HoldingsError> {
        let mut counter = LineCounter {
            out: &mut *self.out,
            lines: &mut self.shape.lines_out,
        };
        self.hosts.spool.drain_to(&mut counter)?;
        // The spool begins anew: so do the nodes that are open.
        for node in &mut self.hosts.nodes[..self.hosts.open] {
            node.start = 0;
        }
        if self.shape.lines_in >= self.next_trace {
            self.shape
                .trace
                .push((self.shape.lines_in, self.shape.lines_out));
            self.next_trace = self.shape.lines_in + self.shape.lines_in / 64 + 1;
        }
        Ok(())
    }

    /// Walks the pages of the host that ends here.
    fn end_pages(&mut self) -> Result<(), HoldingsError> {
        if self.paths.open == 0 {
            return Ok(());
        }
        if let Some(overflow) = self.overflow.take() {
            let mut sorted = overflow.finish()?;
            while let Some(entry) = sorted.next_entry()? {
                self.walk(&entry)?;
            }
        } else {
            let mut pages = std::mem::take(&mut self.pages);
            pages.sort(Order::Tree)?;
            for entry in pages.iter() {
                self.walk(&entry)?;
            }
            pages.clear();
            self.pages = pages;
        }
        while self.paths.open > 1 {
            self.paths.close(&mut self.shape)?;
        }
        let Some(root) = self.paths.close(&mut self.shape)? else {
            return Ok(());
        };
        let is_held = root.is_held;
        if let Some(host) = self.hosts.open.checked_sub(1) {
            let host = &mut self.hosts.nodes[host];
            host.sums.append(&root.sums)?;
            for (sum, count) in host.rollups.iter_mut().zip(&root.rollups) {
                *sum += count;
            }
        }
        if is_held {
            self.hosts.hold()?;
        }
        self.keep_pages()?;
        if !self.waits {
            self.write_out()?;
        }
        Ok(())
    }

    /// Moves what is left of a host's pages to the text of its hosts, in the order of bytes.
    fn keep_pages(&mut self) -> Result<(), HoldingsError> {
        if self.hosts.is_rolled() {
            return self.paths.spool.truncate(0).map_err(HoldingsError::from);
        }
        if let Some(text) = self.paths.spool.memory() {
            let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
            // Space sorts below everything in a key, so lines sort as their keys do.
            lines.sort_unstable();
            self.hosts.spool.append(|out| {
                for line in lines {
                    out.extend_from_slice(line);
                }
            })?;
            return self.paths.spool.truncate(0).map_err(HoldingsError::from);
        }
        let text = std::mem::replace(&mut self.paths.spool, Spool::new(self.memory / 2));
        let mut back = Sorter::new(Order::Bytes, self.fields, self.memory);
        let mut reader = text.into_reader()?;
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            line.pop();
            if let Some((entry, _)) = Entry::read(&line, self.fields) {
                back.push(&entry)?;
            }
            line.clear();
        }
        let mut sorted = back.finish()?;
        while let Some(entry) = sorted.next_entry()? {
            self.hosts.spool.append(|out| entry.write(out))?;
        }
        Ok(())
    }

    /// Takes the next page of a host, in the order of the tree.
    fn walk(&mut self, entry: &Entry<'_>) -> Result<(), HoldingsError> {
        let (surt, _) = entry.surt_and_extra();
        // A wildcard is a line of the node above it, not a child.
        let node = surt.strip_suffix(b"/*").unwrap_or(surt);
        let root = self.paths.nodes[0].end;
        let node = if node.len() == root + 1 {
            &node[..root]
        } else {
            node
        };
        let mut ends = Vec::with_capacity(10);
        path_ends(node, root, self.paths.cutoffs.len(), &mut ends);
        let common = common_nodes(&self.paths, node, &ends);
        while self.paths.open > common {
            self.paths.close(&mut self.shape)?;
        }
        self.paths.key.clear();
        self.paths.key.extend_from_slice(node);
        for &end in &ends[common..] {
            self.paths
                .open_node(end, self.forced, self.shape.rollups.len());
        }
        add(&mut self.paths, entry)
    }

    /// Closes everything. Returns what was seen and done.
    pub fn finish(mut self) -> Result<Shape, HoldingsError> {
        self.end_pages()?;
        while self.hosts.open > 0 {
            self.close_host()?;
        }
        self.write_out()?;
        if let Some(everything) = &self.everything {
            self.out.write_all(&everything.text())?;
        }
        let end = (self.shape.lines_in, self.shape.lines_out);
        if self.shape.trace.last() != Some(&end) {
            self.shape.trace.push(end);
        }
        Ok(self.shape)
    }
}

/// Adds an entry to the innermost open node.
fn add(tree: &mut Tree, entry: &Entry<'_>) -> Result<(), HoldingsError> {
    if let Some(innermost) = tree.open.checked_sub(1) {
        tree.nodes[innermost].sums.add(entry)?;
    }
    if entry.frequency.is_held() {
        tree.hold()?;
    }
    if !tree.is_rolled() {
        tree.spool.append(|text| entry.write(text))?;
    }
    Ok(())
}

/// How many open nodes are also nodes of a key whose prefixes end where `ends` says.
fn common_nodes(tree: &Tree, key: &[u8], ends: &[usize]) -> usize {
    let mut from = 0;
    let mut is_common = |(node, &end): (&Node, &usize)| {
        let is_common = node.end == end && tree.key[from..end] == key[from..end];
        from = end;
        is_common
    };
    tree.nodes[..tree.open]
        .iter()
        .zip(ends)
        .map_while(|pair| is_common(pair).then_some(()))
        .count()
}

/// Where the prefixes of a host end: one for each label, the last for all that lie deeper than the limit.
fn host_ends(host: &[u8], limit: usize, ends: &mut Vec<usize>) {
    if !Segments::of(host).is_ip() {
        ends.extend(memchr::memchr_iter(b',', host).take(limit - 1));
    }
    ends.push(host.len());
}

/// Where the prefixes of a page end: the root, then one for each segment.
fn path_ends(key: &[u8], root: usize, limit: usize, ends: &mut Vec<usize>) {
    let slashes = memchr::memchr_iter(b'/', &key[root..]).map(|slash| root + slash);
    ends.extend(slashes.take(limit - 1));
    if ends.is_empty() {
        ends.push(root);
    } else if key.len() > root {
        ends.push(key.len());
    }
}

/// Counts lines on their way out.
struct LineCounter<'a, W> {
    out: &'a mut W,
    lines: &'a mut u64,
}

impl<W: Write> Write for LineCounter<'_, W> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(buffer)?;
        *self.lines += memchr::memchr_iter(b'\n', &buffer[..written]).count() as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
