//! The most archived pages and hosts.

use std::cmp::Reverse;

/// The number of stored items: enough for a table, and few enough to be merged for each block.
pub(super) const TOP_COUNT: usize = 100;

/// The maximum length of a stored key. Our limit, since keys may have megabytes.
const KEY_BYTES: usize = 500;

/// A URI-R with many captures.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BusyPage {
    /// Its key, truncated if it is very long.
    pub key: Vec<u8>,
    /// The number of its captures.
    pub captures: u64,
    /// Captures of its host.
    pub host_captures: u64,
    /// See above.
    pub host_uris: u64,
}

/// A host with many captures.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BusyHost {
    /// Its key without path.
    pub host: Vec<u8>,
    /// The number of its captures.
    pub captures: u64,
    /// The number of its URI-Rs.
    pub uris: u64,
}

/// The items with most captures.
#[derive(Debug, Clone)]
pub(super) struct TopItems<T> {
    items: Vec<(u64, T)>,
    /// Items with fewer captures are no longer among the first.
    min_captures: u64,
}

impl<T> Default for TopItems<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            min_captures: 0,
        }
    }
}

impl<T: Ord> TopItems<T> {
    /// Adds an item if it may be among the first. `make` is called only then.
    pub(super) fn add(&mut self, captures: u64, make: impl FnOnce() -> T) {
        if captures >= self.min_captures.max(1) {
            self.items.push((captures, make()));
            if self.items.len() >= 4 * TOP_COUNT {
                self.cut();
            }
        }
    }

    /// Sorts by captures, then by name, so that the result does not depend on the input order.
    fn cut(&mut self) {
        self.items
            .sort_unstable_by(|a, b| (Reverse(a.0), &a.1).cmp(&(Reverse(b.0), &b.1)));
        self.items.truncate(TOP_COUNT);
        if self.items.len() == TOP_COUNT {
            self.min_captures = self.items[TOP_COUNT - 1].0;
        }
    }

    pub(super) fn append(&mut self, other: &mut Self) {
        for (captures, item) in other.items.drain(..) {
            self.add(captures, || item);
        }
        other.min_captures = 0;
    }

    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.min_captures = 0;
    }

    /// The first items in order.
    pub(super) fn first(&self) -> Vec<T>
    where
        T: Clone,
    {
        let mut all = self.clone();
        all.cut();
        all.items.into_iter().map(|(_, item)| item).collect()
    }
}

/// The stored part of a key.
pub(super) fn truncated_key(key: &[u8]) -> Vec<u8> {
    truncate_key(key).to_vec()
}

/// The same, borrowed.
pub(super) fn truncate_key(key: &[u8]) -> &[u8] {
    &key[..key.len().min(KEY_BYTES)]
}
