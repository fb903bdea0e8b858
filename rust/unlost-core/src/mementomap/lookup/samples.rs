//! Sampled rows of a map, so that searches begin near their result.

use super::NotSorted;
use super::row::{key, key_start, line_at, line_start};

/// The distance of samples in bytes: some dozen rows, which are within one or two pages of memory.
const STEP: usize = 2048;

/// The maximum number of samples. More would not fit a processor's cache; larger maps are sampled more sparsely.
const MAX_SAMPLES: usize = 1 << 14;

/// The first bytes of a key as numbers, in key order: enough for most comparisons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyPrefix([u64; 3]);

impl KeyPrefix {
    pub fn of(key: &[u8]) -> Self {
        Self::of_parts(key, b"")
    }

    /// Of the concatenation of two texts.
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

/// Where to search a key: all rows before the start have smaller keys, all from the end on larger ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchRange {
    pub start: usize,
    pub end: usize,
    above: Option<KeyPrefix>,
    below: Option<KeyPrefix>,
}

impl SearchRange {
    /// Whether another key is in the same range.
    pub fn contains(&self, head: KeyPrefix) -> bool {
        self.above.is_none_or(|above| above < head) && self.below.is_none_or(|below| head < below)
    }
}

/// Sampled rows, in order.
#[derive(Debug)]
pub(super) struct Samples {
    prefixes: Vec<KeyPrefix>,
    offsets: Vec<usize>,
    rows: usize,
    len: usize,
}

impl Samples {
    /// Samples a text from offset `rows` on. Reads one line per step, and every line at most once.
    pub fn of(text: &[u8], rows: usize) -> Result<Self, NotSorted> {
        let step = ((text.len() - rows) / MAX_SAMPLES).max(STEP);
        let mut samples = Self {
            prefixes: Vec::new(),
            offsets: Vec::new(),
            rows,
            len: text.len(),
        };
        let mut last: &[u8] = b"";
        // The start of a line before which all rows were passed.
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
        let after = first + self.prefixes[first..].partition_point(|sample| *sample == head);
        let above = first.checked_sub(1);
        SearchRange {
            start: above.map_or(self.rows, |i| self.offsets[i]),
            end: self.offsets.get(after).copied().unwrap_or(self.len),
            above: above.map(|i| self.prefixes[i]),
            below: self.prefixes.get(after).copied(),
        }
    }
}
