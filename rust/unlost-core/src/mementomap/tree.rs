//! One walk through a tree of keys: a stack of open nodes, and their remaining text.
//!
//! When a node is rolled up, the text is truncated to where the node began, so the shallowest node wins.

use std::collections::HashSet;

use super::spill_buffer::SpillBuffer;
use super::totals::{Totals, write_line};
use super::tree_key::{common_len, restore_key};
use super::{CompactionStats, Entry, HoldingsError};

/// An open node. Its memory is reused by the next one on its level.
#[derive(Debug, Default)]
struct Node {
    /// Where its prefix ends in the last key.
    end: usize,
    /// Where its text begins in the buffer, and its roll-ups in `rollup_levels`.
    start: u64,
    rollup_levels: usize,
    children: u64,
    is_held: bool,
    is_forced: bool,
    sums: Totals,
}

/// The labels of hosts, or the segments of one host's paths.
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// The number of open nodes.
    open: usize,
    /// The shallowest open node that is rolled up: nothing below it is written.
    rolled: Option<usize>,
    /// The maximum number of children per level.
    cutoffs: Vec<f64>,
    /// The number of levels of other trees before this one's.
    first_level: usize,
    /// The separator of labels or segments in the keys.
    separator: u8,
    /// The wildcard suffix of a rolled-up node.
    wildcard: &'static [u8],
    /// The last key; the open nodes are its prefixes.
    pub(super) key: Vec<u8>,
    pub(super) spool: SpillBuffer,
    /// The levels of the roll-ups in the buffer, in order.
    rollup_levels: Vec<usize>,
}

impl Tree {
    pub(super) fn new(
        cutoffs: Vec<f64>,
        first_level: usize,
        separator: u8,
        wildcard: &'static [u8],
        memory: usize,
    ) -> Self {
        Self {
            nodes: Vec::new(),
            open: 0,
            rolled: None,
            cutoffs,
            first_level,
            separator,
            wildcard,
            key: Vec::new(),
            spool: SpillBuffer::new(memory),
            rollup_levels: Vec::new(),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Whether only nodes of the first level are open, and none that is always rolled up.
    pub(super) fn is_at_top(&self) -> bool {
        self.open <= 1 && !self.nodes[..self.open].iter().any(|node| node.is_forced)
    }

    pub(super) fn is_rolled(&self) -> bool {
        self.rolled.is_some()
    }

    pub(super) fn levels(&self) -> usize {
        self.cutoffs.len()
    }

    /// Closes the nodes that a key is not below. `levels` is the number of parts of the key; deeper parts count as one.
    pub(super) fn close_until(
        &mut self,
        key: &[u8],
        levels: usize,
        stats: &mut CompactionStats,
    ) -> Result<(), HoldingsError> {
        let common = common_len(&self.key, key);
        while let Some(level) = self.open.checked_sub(1) {
            let end = self.nodes[level].end;
            let is_segment_end = level + 1 < levels && key.get(end) == Some(&self.separator);
            if end <= common && (key.len() == end || is_segment_end) {
                break;
            }
            self.close(stats)?;
        }
        Ok(())
    }

    /// Opens the nodes of a key that are not open yet. `from` is the earliest position of its first separator.
    pub(super) fn enter(
        &mut self,
        key: &[u8],
        from: usize,
        levels: usize,
        forced_keys: &HashSet<Vec<u8>>,
    ) {
        self.key.clear();
        self.key.extend_from_slice(key);
        let mut next = match self.open.checked_sub(1) {
            Some(level) if self.nodes[level].end == key.len() => return,
            Some(level) => self.nodes[level].end + 1,
            None => from,
        };
        while self.open + 1 < levels {
            let Some(length) = memchr::memchr(self.separator, &key[next..]) else {
                break;
            };
            self.open_node(next + length, forced_keys);
            next += length + 1;
        }
        self.open_node(key.len(), forced_keys);
    }

    fn open_node(&mut self, end: usize, forced_keys: &HashSet<Vec<u8>>) {
        if self.open == self.nodes.len() {
            self.nodes.push(Node::default());
        }
        // A node on the last level represents itself and all deeper nodes; it is not rolled up.
        let has_below = self.open + 1 < self.cutoffs.len();
        let is_forced =
            !forced_keys.is_empty() && has_below && forced_keys.contains(&self.wildcard_of(end));
        let node = &mut self.nodes[self.open];
        node.end = end;
        node.start = self.spool.len();
        node.rollup_levels = self.rollup_levels.len();
        node.children = 0;
        node.is_held = false;
        node.is_forced = is_forced;
        node.sums.clear();
        self.open += 1;
    }

    /// The wildcard key of the node whose prefix ends at `end`.
    fn wildcard_of(&self, end: usize) -> Vec<u8> {
        let mut key = self.key[..end].to_vec();
        restore_key(&mut key);
        key.extend_from_slice(self.wildcard);
        key
    }

    /// Adds an entry to the innermost open node. `extra` are its further key fields.
    pub(super) fn add(&mut self, entry: &Entry<'_>, extra: &[u8]) -> Result<(), HoldingsError> {
        if let Some(innermost) = self.open.checked_sub(1) {
            self.nodes[innermost].sums.add(extra, entry.frequency)?;
        }
        if entry.frequency.is_held() {
            self.hold()?;
        }
        if self.rolled.is_none() {
            self.spool.append(|text| {
                let start = text.len();
                entry.write(text);
                restore_key(&mut text[start..start + entry.key.len()]);
            })?;
        }
        Ok(())
    }

    /// Adds an entry below a rolled-up node, where the rest of its key does not matter. Returns whether there is such a
    /// node.
    pub(super) fn add_below_rolled(
        &mut self,
        key: &[u8],
        entry: &Entry<'_>,
        extra: &[u8],
    ) -> Result<bool, HoldingsError> {
        let Some(level) = self.rolled else {
            return Ok(false);
        };
        let node = &mut self.nodes[level];
        let is_below =
            key.get(node.end) == Some(&self.separator) && key[..node.end] == self.key[..node.end];
        if is_below {
            node.sums.add(extra, entry.frequency)?;
        }
        Ok(is_below)
    }

    /// Adds the sums of a tree below the innermost open node, and the roll-ups of its text.
    pub(super) fn add_below(&mut self, below: &mut Self) -> Result<(), HoldingsError> {
        let Some(root) = below.nodes.first() else {
            return Ok(());
        };
        if let Some(innermost) = self.open.checked_sub(1) {
            self.nodes[innermost].sums.append(&root.sums)?;
        }
        if root.is_held {
            self.hold()?;
        }
        if self.rolled.is_none() {
            self.rollup_levels.append(&mut below.rollup_levels);
        }
        below.rollup_levels.clear();
        Ok(())
    }

    /// Marks the innermost node and its parents as holding something; rolls up nodes that thereby have too many
    /// children.
    fn hold(&mut self) -> Result<(), HoldingsError> {
        for level in (0..self.open).rev() {
            let node = &mut self.nodes[level];
            if node.is_held {
                break;
            }
            node.is_held = true;
            if node.is_forced {
                self.roll_up(level)?;
            }
            if let Some(parent) = level.checked_sub(1) {
                self.nodes[parent].children += 1;
                // Counts of children are far below the exact range of a float.
                #[allow(clippy::cast_precision_loss)]
                let too_many = self.nodes[parent].children as f64 > self.cutoffs[parent];
                if too_many {
                    self.roll_up(parent)?;
                }
            }
        }
        Ok(())
    }

    fn roll_up(&mut self, level: usize) -> Result<(), HoldingsError> {
        if self.rolled.is_none_or(|rolled| level < rolled) {
            self.rolled = Some(level);
            self.spool.truncate(self.nodes[level].start)?;
            self.rollup_levels.truncate(self.nodes[level].rollup_levels);
        }
        Ok(())
    }

    /// Closes the innermost node and adds its sums to its parent.
    pub(super) fn close(&mut self, stats: &mut CompactionStats) -> Result<(), HoldingsError> {
        self.open -= 1;
        let level = self.open;
        let (outer, inner) = self.nodes.split_at_mut(level);
        let node = &inner[0];
        let counted = self.first_level + level;
        if node.children > 0 {
            stats.parents[counted] += 1;
            stats.children[counted] += node.children;
        }
        if let Some(parent) = outer.last_mut() {
            parent.sums.append(&node.sums)?;
        }
        if self.rolled == Some(level) {
            self.rolled = None;
            self.rollup_levels.push(counted);
            let key = self.wildcard_of(self.nodes[level].end);
            let sums = &self.nodes[level].sums;
            self.spool.append(|text| {
                for (extra, sum) in sums.iter().filter(|(_, sum)| !sum.is_exclusion()) {
                    write_line(&key, extra, sum, text);
                }
            })?;
        }
        Ok(())
    }

    /// Counts the roll-ups of the text, which is about to be flushed. Open nodes start again after it.
    pub(super) fn flush_text(&mut self, stats: &mut CompactionStats) {
        for level in self.rollup_levels.drain(..) {
            stats.rollups[level] += 1;
        }
        for node in &mut self.nodes[..self.open] {
            node.start = 0;
            node.rollup_levels = 0;
        }
    }
}
