//! An in-memory map for frequent queries: its rows, and a hash table of their offsets.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use super::candidates::{Candidate, list, other_spelling};
use super::prefix_hash::Hasher;
use super::row::{Layout, frequency, key, key_start};
use super::{Frequency, NotSorted, add};
use crate::index::without_bom;

/// Maps keys to frequencies.
#[derive(Debug)]
pub struct MemoryMap {
    rows: Rows,
    is_rolled_up: bool,
}

/// Reused memory of a search.
#[derive(Default)]
pub(super) struct Buffers {
    candidates: Vec<Candidate>,
    digits: Vec<(u64, u64)>,
    hashes: Vec<u64>,
}

/// One row per key: the key, a space, its frequency, a line end.
#[derive(Debug)]
struct Rows {
    text: Vec<u8>,
    /// The offsets of rows, by the hash of their keys.
    starts: HashTable<usize>,
    hasher: Hasher,
}

impl Rows {
    fn push(&mut self, key: &[u8], frequency: Frequency) {
        let start = self.text.len();
        self.text.extend_from_slice(key);
        self.text.push(b' ');
        frequency.write(&mut self.text);
        self.text.push(b'\n');
        let (text, hasher) = (&self.text, self.hasher);
        let hash_of_row = |&start: &usize| hasher.hash(self::key(&text[start..]));
        // Keys are sorted and unique.
        self.starts
            .insert_unique(hasher.hash(key), start, hash_of_row);
    }

    /// The frequency of a candidate of a key with the given hash.
    fn get(&self, key: &[u8], candidate: &Candidate, hash: u64) -> Option<Frequency> {
        let rest = |start: usize| {
            let rest = self.text[start..].strip_prefix(&key[..candidate.stem])?;
            rest.strip_prefix(candidate.tail)?.strip_prefix(b" ")
        };
        let start = self.starts.find(hash, |&start| rest(start).is_some())?;
        let rest = rest(*start)?;
        let end = memchr::memchr(b'\n', rest)?;
        Frequency::parse(&rest[..end])
    }
}

impl MemoryMap {
    /// The frequency for a normalized key without query, if any; appends the matched key.
    pub fn seek(&self, key: &[u8], matched: &mut Vec<u8>) -> Option<Frequency> {
        self.seek_in(&mut Buffers::default(), key, matched)
    }

    /// The same with reused memory.
    pub(super) fn seek_in(
        &self,
        buffers: &mut Buffers,
        key: &[u8],
        matched: &mut Vec<u8>,
    ) -> Option<Frequency> {
        self.seek_spelling(key, buffers, matched)
            .or_else(|| self.seek_spelling(&other_spelling(key)?, buffers, matched))
    }

    /// The number of distinct keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.starts.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.starts.is_empty()
    }

    fn seek_spelling(
        &self,
        key: &[u8],
        buffers: &mut Buffers,
        matched: &mut Vec<u8>,
    ) -> Option<Frequency> {
        let Buffers {
            candidates,
            digits,
            hashes,
        } = buffers;
        list(key, self.is_rolled_up, candidates);
        self.rows.hasher.hash_all(key, candidates, digits, hashes);
        for (candidate, &hash) in candidates.iter().zip(hashes.iter()).rev() {
            if let Some(frequency) = self.rows.get(key, candidate, hash) {
                if frequency.is_held() || !candidate.is_own {
                    candidate.write(key, matched);
                    return Some(frequency);
                }
            }
        }
        None
    }
}

/// Takes the rows of a map in order.
pub struct MemoryMapBuilder {
    rows: Rows,
    layout: Layout,
    /// The last key, whose rows may not have ended, and their sum.
    key: Vec<u8>,
    sum: Option<Frequency>,
}

impl MemoryMapBuilder {
    /// For rows with this layout.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self {
            rows: Rows {
                text: Vec::new(),
                starts: HashTable::new(),
                hasher: Hasher::new(RandomState::new().hash_one(0)),
            },
            layout,
            key: Vec::new(),
            sum: None,
        }
    }

    /// Takes one line, which begins at `offset`. Blank lines and headers are skipped.
    pub fn push(&mut self, line: &[u8], offset: u64) -> Result<(), NotSorted> {
        let line = if offset == 0 { without_bom(line) } else { line };
        let Some(start) = key_start(line) else {
            return Ok(());
        };
        let row = &line[start..];
        let key = key(row);
        let frequency = frequency(&row[key.len()..], self.layout);
        match self.sum {
            Some(sum) if key == self.key => self.sum = Some(add(sum, frequency)),
            Some(_) if key < self.key.as_slice() => return Err(NotSorted { offset }),
            _ => {
                self.add_last();
                self.key.clear();
                self.key.extend_from_slice(key);
                self.sum = Some(frequency);
            }
        }
        Ok(())
    }

    fn add_last(&mut self) {
        if let Some(sum) = self.sum.take() {
            self.rows.push(&self.key, sum);
        }
    }

    /// The map of all rows.
    #[must_use]
    pub fn finish(mut self) -> MemoryMap {
        self.add_last();
        MemoryMap {
            rows: self.rows,
            is_rolled_up: self.layout.is_rolled_up,
        }
    }
}
