//! Which copies were listed before: pages of a list repeat each other.

use std::collections::HashSet;
use std::hash::BuildHasher;

use super::Mementos;
use super::address::without_scheme;

/// Copies that were seen, eight bytes for each.
#[derive(Debug, Default)]
pub struct Seen {
    // With a secret of the process: among a million copies, equal ones by accident do not occur, nor by intent.
    marks: HashSet<u64>,
}

impl Seen {
    /// Adds copies, and returns how many of them are new.
    pub fn add(&mut self, copies: &Mementos) -> usize {
        let before = self.marks.len();
        for row in &copies.rows {
            let url = copies.url(row).text();
            let key = (row.date, without_scheme(&url));
            let mark = self.marks.hasher().hash_one(key);
            self.marks.insert(mark);
        }
        self.marks.len() - before
    }
}
