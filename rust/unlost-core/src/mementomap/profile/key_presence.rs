//! Finds which keys are in a profile in one pass; memory grows with the keys, not with the profile.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::mementomap::key_lines::key_lines;

/// The searched keys.
pub struct KeyPresence {
    /// The index of each distinct key in `seen`.
    slots: HashMap<Box<[u8]>, usize, RandomState>,
    seen: Vec<bool>,
    /// The index in `seen` of each given key.
    slot_of_key: Vec<usize>,
}

impl KeyPresence {
    /// Creates a search for these keys.
    pub fn new<'a>(keys: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut slots: HashMap<Box<[u8]>, usize, RandomState> = HashMap::default();
        let slot_of_key = keys.map(|key| {
            let next = slots.len();
            *slots.entry(key.into()).or_insert(next)
        });
        let slot_of_key = slot_of_key.collect();
        Self {
            seen: vec![false; slots.len()],
            slots,
            slot_of_key,
        }
    }

    /// Reads whole rows of a profile, each a key followed by a blank. Returns their number.
    pub fn scan(&mut self, rows: &[u8]) -> usize {
        let mut number = 0;
        for row in key_lines(rows) {
            number += 1;
            let key = &row[..memchr::memchr(b' ', row).unwrap_or(row.len())];
            if let Some(&slot) = self.slots.get(key) {
                self.seen[slot] = true;
            }
        }
        number
    }

    /// For each given key in order, whether it was seen.
    pub fn seen(&self) -> impl Iterator<Item = bool> {
        self.slot_of_key.iter().map(|&slot| self.seen[slot])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_keys_are_seen_and_duplicates_are_reported() {
        let keys = ["b)/", "a)/", "b)/", "a)/x", "c"].map(str::as_bytes);
        let mut presence = KeyPresence::new(keys.into_iter());
        assert_eq!(presence.scan(b"a)/ {\"frequency\": 1}\na)/xy {}\n"), 2);
        assert_eq!(
            presence.seen().collect::<Vec<_>>(),
            [false, true, false, false, false]
        );
        assert_eq!(presence.scan(b"b)/ {}\nc"), 2);
        assert_eq!(
            presence.seen().collect::<Vec<_>>(),
            [true, true, true, false, true]
        );
    }
}
