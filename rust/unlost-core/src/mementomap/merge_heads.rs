//! Heap entries for merging sorted files.

use std::cmp::Ordering;

/// Something that is sorted by a key.
pub(super) trait Keyed {
    fn key(&self) -> &[u8];
}

/// Reverses the order, so that a max-heap returns the smallest key first.
pub(super) struct SmallestFirst<T>(pub(super) T);

impl<T: Keyed> PartialEq for SmallestFirst<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl<T: Keyed> Eq for SmallestFirst<T> {}

impl<T: Keyed> PartialOrd for SmallestFirst<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Keyed> Ord for SmallestFirst<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.key().cmp(self.0.key())
    }
}
