//! Some rows of a map's text, remembered, so that searches begin near where they end.

use super::NotSorted;
use super::row::{key, key_start, line_at, line_start};

/// Rows are taken this many bytes apart: some dozen rows, which are searched within one or two pages.
const STEP: usize = 2048;

/// More would not fit a processor's cache; a larger map has them further apart.
const MAX_SAMPLES: usize = 1 << 14;

/// The first bytes of a key as numbers, in the order of keys: most comparisons need no more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyPrefix([u64; 3]);

impl KeyPrefix {
    pub fn of(key: &[u8]) -> Self {
        Self::of_parts(key, b"")
    }

    /// Of two texts, the one behind the other.
    pub fn of_parts(stem: &[u8], tail: &[u8]) -> Self {
        let mut bytes = [0; 24];
        let first = stem.len().min(24);
        bytes[..first].copy_from_slice(&stem[..first]);
        let second = tail.len().min(24 - first);
        bytes[first..first + second].copy_from_slice(&tail[..second]);
        let word = |i: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[i * 8..i * 8 + 8]);
            u64::from_be_bytes(word)
        };
        Self([word(0), word(1), word(2)])
    }
}

/// Where to look for a key: all rows before the start have smaller ones, all from the end on greater ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchRange {
    pub start: usize,
    pub end: usize,
    above: Option<KeyPrefix>,
    below: Option<KeyPrefix>,
}

impl SearchRange {
    /// Whether this is where to look for another key as well.
    pub fn contains(&self, head: KeyPrefix) -> bool {
        self.above.is_none_or(|above| above < head) && self.below.is_none_or(|below| head < below)
    }
}

/// Rows of a map, in order.
#[derive(Debug)]
pub(super) struct Samples {
    prefixes: Vec<KeyPrefix>,
    offsets: Vec<usize>,
    rows: usize,
    len: usize,
}

impl Samples {
    /// Takes rows from a text, from an offset on. Reads one line in each step, and every line at most once.
    pub fn of(text: &[u8], rows: usize) -> Result<Self, NotSorted> {
        let step = ((text.len() - rows) / MAX_SAMPLES).max(STEP);
        let mut samples = Self {
            prefixes: Vec::new(),
            offsets: Vec::new(),
            rows,
            len: text.len(),
        };
        let mut last: &[u8] = b"";
        // Where a line begins, all rows before which were passed over.
        let mut from = rows;
        let mut at = rows + step;
        while at < text.len() {
            let offset = line_start(text, from, at);
            let (line, next) = line_at(text, offset);
            if let Some(start) = key_start(line) {
                let key = key(&line[start..]);
                if key < last {
                    return Err(NotSorted {
                        offset: offset as u64,
                    });
                }
                samples.prefixes.push(KeyPrefix::of(key));
                samples.offsets.push(offset);
                last = key;
            }
            from = next;
            at = next.max(at + step);
        }
        Ok(samples)
    }

    pub fn range_for(&self, head: KeyPrefix) -> SearchRange {
        let first = self.prefixes.partition_point(|sample| *sample < head);
        let behind = first + self.prefixes[first..].partition_point(|sample| *sample == head);
        let above = first.checked_sub(1);
        SearchRange {
            start: above.map_or(self.rows, |i| self.offsets[i]),
            end: self.offsets.get(behind).copied().unwrap_or(self.len),
            above: above.map(|i| self.prefixes[i]),
            below: self.prefixes.get(behind).copied(),
        }
    }
}
