//! The first lines of files that are read side by side.

use std::cmp::Ordering;

/// Something that is sorted by a key.
pub(super) trait Keyed {
    fn key(&self) -> &[u8];
}

/// In a heap, which gives its largest first: that with the smallest key.
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
