//! One walk through a tree of keys: a stack of open nodes, and the text that is left of them.
//!
//! Text is cut back to where a node began when that node is rolled up, so the shallowest node wins by itself.

use std::collections::HashSet;

use super::spill_buffer::SpillBuffer;
use super::totals::{Totals, write_line};
use super::tree_key::{common_len, restore_key};
use super::{CompactionStats, Entry, HoldingsError};

/// An open node. Its memory is used again by the next one on its level.
#[derive(Debug, Default)]
struct Node {
    /// Where its prefix ends in the key that was read last.
    end: usize,
    /// Where its text begins in the spool, and its roll-ups among the marks.
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
    /// How many of the nodes are open.
    open: usize,
    /// The shallowest open node that is rolled up: nothing below it needs to be written.
    rolled: Option<usize>,
    /// How many children a node of each level may have.
    cutoffs: Vec<f64>,
    /// How many levels of other trees come before this one's.
    first_level: usize,
    /// What separates labels or segments in the keys that are walked.
    separator: u8,
    /// The wildcard that a rolled-up node ends in.
    wildcard: &'static [u8],
    /// The key that was read last, of which the open nodes are prefixes.
    pub(super) key: Vec<u8>,
    pub(super) spool: SpillBuffer,
    /// The levels of the roll-ups in the spool, in their order.
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

    /// Whether only nodes of the first level are open, and none that is rolled up in any case.
    pub(super) fn is_at_top(&self) -> bool {
        self.open <= 1 && !self.nodes[..self.open].iter().any(|node| node.is_forced)
    }

    pub(super) fn is_rolled(&self) -> bool {
        self.rolled.is_some()
    }

    pub(super) fn levels(&self) -> usize {
        self.cutoffs.len()
    }

    /// Closes the nodes that a key is not below. `levels` is how many the key is cut into: what lies deeper is one.
    pub(super) fn close_until(
        &mut self,
        key: &[u8],
        levels: usize,
        stats: &mut CompactionStats,
    ) -> Result<(), HoldingsError> {
        let common = common_len(&self.key, key);
        while let Some(level) = self.open.checked_sub(1) {
            let end = self.nodes[level].end;
            let goes_on = level + 1 < levels && key.get(end) == Some(&self.separator);
            if end <= common && (key.len() == end || goes_on) {
                break;
            }
            self.close(stats)?;
        }
        Ok(())
    }

    /// Opens the nodes of a key that are not open yet. `from` is where its first separator may stand.
    pub(super) fn enter(
        &mut self,
        key: &[u8],
        from: usize,
        levels: usize,
        forced: &HashSet<Vec<u8>>,
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
            self.open_node(next + length, forced);
            next += length + 1;
        }
        self.open_node(key.len(), forced);
    }

    fn open_node(&mut self, end: usize, forced: &HashSet<Vec<u8>>) {
        if self.open == self.nodes.len() {
            self.nodes.push(Node::default());
        }
        // On the last level nodes stand for themselves and for what lies below others: those are not rolled up.
        let has_below = self.open + 1 < self.cutoffs.len();
        let is_forced = !forced.is_empty() && has_below && forced.contains(&self.wildcard_of(end));
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

    /// The wildcard key of the node whose prefix ends there.
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

    /// Adds an entry that lies below a node that is rolled up already: what its key is does not matter any more. Says
    /// whether it does.
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

    /// Adds the sums of a tree that hangs from the innermost open node, and the roll-ups of its text.
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

    /// Marks the innermost node, and those around it, as holding something; rolls up what thereby has too many children.
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
                // Counts of children are far below what a float holds exactly.
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

    /// Closes the innermost node; its sums go to the one around it.
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

    /// Counts the roll-ups of the text, which is about to leave. Open nodes begin anew behind it.
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
