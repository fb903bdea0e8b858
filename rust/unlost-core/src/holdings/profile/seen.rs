//! Which of many keys are in a profile, found while it is read once; memory grows with the keys, not with the profile.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::holdings::key_lines::key_lines;

/// Keys that are looked for.
pub struct SeenKeys {
    /// Where each different one is in `seen`.
    places: HashMap<Box<[u8]>, usize, RandomState>,
    seen: Vec<bool>,
    /// For each that was given, where it is in `seen`.
    given: Vec<usize>,
}

impl SeenKeys {
    /// Begins with keys of which none was seen.
    pub fn new<'a>(keys: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut places: HashMap<Box<[u8]>, usize, RandomState> = HashMap::default();
        let given = keys.map(|key| {
            let next = places.len();
            *places.entry(key.into()).or_insert(next)
        });
        let given = given.collect();
        Self {
            seen: vec![false; places.len()],
            places,
            given,
        }
    }

    /// Looks at some whole rows of a profile, each a key with a blank behind it. Returns how many rows they are.
    pub fn see(&mut self, rows: &[u8]) -> usize {
        let mut number = 0;
        for row in key_lines(rows) {
            number += 1;
            let key = &row[..memchr::memchr(b' ', row).unwrap_or(row.len())];
            if let Some(&place) = self.places.get(key) {
                self.seen[place] = true;
            }
        }
        number
    }

    /// For each key as they were given, whether it was seen.
    pub fn seen(&self) -> impl Iterator<Item = bool> {
        self.given.iter().map(|&place| self.seen[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_seen_whole_and_as_often_as_they_were_given() {
        let keys = ["b)/", "a)/", "b)/", "a)/x", "c"].map(str::as_bytes);
        let mut asked = SeenKeys::new(keys.into_iter());
        assert_eq!(asked.see(b"a)/ {\"frequency\": 1}\na)/xy {}\n"), 2);
        assert_eq!(
            asked.seen().collect::<Vec<_>>(),
            [false, true, false, false, false]
        );
        assert_eq!(asked.see(b"b)/ {}\nc"), 2);
        assert_eq!(
            asked.seen().collect::<Vec<_>>(),
            [true, true, true, false, true]
        );
    }
}
