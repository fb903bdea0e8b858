//! The nodes of a map's tree that have a subtree, in tree order: each before its subtree.

use super::super::tree_key::restore_key;

/// No node: the parent of the top-level domains.
pub(super) const NONE: u32 = u32::MAX;

/// The kind of a node, and properties of its subtree, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Traits(u8);

impl Traits {
    /// A host label; otherwise a path segment, or the root of a path.
    pub(super) const HOST: u8 = 1;
    /// The node may be rolled up.
    pub(super) const COLLAPSIBLE: u8 = 2;
    /// The node is always rolled up.
    pub(super) const FORCED: u8 = 4;
    /// A wildcard of the map declares the subtree as held.
    pub(super) const COVERED: u8 = 8;
    /// A wildcard of the map excludes the subtree.
    pub(super) const EXCLUDED: u8 = 16;
    /// Something in the subtree is held.
    pub(super) const HELD: u8 = 32;
    /// A line of the map is in the subtree.
    pub(super) const KNOWN: u8 = 64;

    pub(super) fn has(self, one: u8) -> bool {
        self.0 & one != 0
    }

    pub(super) fn set(&mut self, one: u8) {
        self.0 |= one;
    }
}

/// A node with its whole subtree, except `own`.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) parent: u32,
    pub(super) traits: Traits,
    /// Keys with holdings.
    pub(super) keys: u32,
    /// Hosts in the subtree with such keys; a host of n keys counts as 1/n, since hosts with a single page indicate
    /// unknown hosts.
    pub(super) hosts: f64,
    /// Queries for pages that no line of the map covers.
    pub(super) query_count: f64,
    /// The cost of the lines that belong to no node of the subtree.
    pub(super) own: f64,
    /// The cost of the wildcard that may replace the node.
    pub(super) rolled_cost: f64,
    /// Where its label ends in `labels`.
    label_end: u64,
}

/// All nodes.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub(super) all: Vec<Node>,
    /// The label of each node with its separator: the part of its prefix after that of its parent.
    labels: Vec<u8>,
}

impl Nodes {
    pub(super) fn push(&mut self, parent: u32, traits: u8, label: &[u8]) -> u32 {
        self.labels.extend_from_slice(label);
        self.all.push(Node {
            parent,
            traits: Traits(traits),
            keys: 0,
            hosts: 0.0,
            query_count: 0.0,
            own: 0.0,
            rolled_cost: 0.0,
            label_end: self.labels.len() as u64,
        });
        index(self.all.len() - 1)
    }

    /// Removes the last node.
    pub(super) fn pop(&mut self) -> Option<Node> {
        let node = self.all.pop();
        let end = self.all.last().map_or(0, |last| last.label_end);
        // It was a length in memory.
        self.labels
            .truncate(usize::try_from(end).unwrap_or(usize::MAX));
        node
    }

    fn label(&self, node: u32) -> &[u8] {
        let end = |at: usize| usize::try_from(self.all[at].label_end).unwrap_or(usize::MAX);
        let at = node as usize;
        &self.labels[at.checked_sub(1).map_or(0, end)..end(at)]
    }

    /// The key of the wildcard that may replace a node.
    pub(super) fn wildcard(&self, node: u32) -> Vec<u8> {
        let mut path = Vec::new();
        let mut next = node;
        while next != NONE {
            path.push(next);
            next = self.all[next as usize].parent;
        }
        let mut key = Vec::new();
        for &part in path.iter().rev() {
            key.extend_from_slice(self.label(part));
        }
        restore_key(&mut key);
        let is_host = self.all[node as usize].traits.has(Traits::HOST);
        key.extend_from_slice(if is_host { b",*" } else { b"/*" });
        key
    }
}

/// A position as a node number. More nodes do not fit in memory.
pub(super) fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE)
}
