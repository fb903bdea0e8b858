//! Detects mementos that were listed before: pages of a `TimeMap` repeat each other.

use std::collections::HashSet;
use std::hash::BuildHasher;

use super::Mementos;
use super::url::without_scheme;

/// Hashes of the mementos so far, eight bytes each.
#[derive(Debug, Default)]
pub struct DedupSet {
    // Keyed with a secret of the process: among a million mementos, collisions occur neither by accident nor by intent.
    hashes: HashSet<u64>,
}

impl DedupSet {
    /// Adds mementos and returns how many of them are new.
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
