//! Which copies were listed before: pages of a list repeat each other.

use std::collections::HashSet;
use std::hash::BuildHasher;

use super::Mementos;
use super::url::without_scheme;

/// Copies that were seen, eight bytes for each.
#[derive(Debug, Default)]
pub struct DedupSet {
    // With a secret of the process: among a million copies, equal ones by accident do not occur, nor by intent.
    hashes: HashSet<u64>,
}

impl DedupSet {
    /// Adds copies, and returns how many of them are new.
    pub fn add(&mut self, mementos: &Mementos) -> usize {
        let before = self.hashes.len();
        for row in &mementos.rows {
            let url = mementos.url(row).text();
            let key = (row.date, without_scheme(&url));
            let mark = self.hashes.hasher().hash_one(key);
            self.hashes.insert(mark);
        }
        self.hashes.len() - before
    }
}
