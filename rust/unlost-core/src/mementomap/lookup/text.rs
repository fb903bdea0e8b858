//! Searches a map in its file: reads only the lines that the search touches.

use std::sync::OnceLock;
use std::sync::atomic::{self, AtomicUsize};

use super::candidates::{Candidate, list, other_spelling};
use super::row::{Layout, ends_field, frequency, header_end, key_start, line_at};
use super::samples::Samples;
use super::search::{CandidatePosition, Search, Span};
use super::{Frequency, MemoryMap, MemoryMapBuilder, NotSorted, add};
use crate::mementomap::tree_key::common_len;

/// The number of queries after which the map is sampled. Sampling costs about as much as this number of searches.
const SAMPLING_THRESHOLD: usize = 1000;

/// The maximum size of a map that is loaded into memory after as many queries as it has rows. Loading costs as much as
/// some of these look-ups, and halves the time of further queries.
const MAX_LOADED: usize = 64 << 20;

/// The assumed average bytes per row of a map.
const BYTES_PER_ROW: usize = 64;

/// A map's text after its headers, sorted by the bytes of its keys.
#[derive(Debug)]
pub struct TextMap<B> {
    text: B,
    rows: usize,
    layout: Layout,
    query_count: AtomicUsize,
    samples: OnceLock<Result<Samples, NotSorted>>,
    /// The map in memory; `None` if it cannot be loaded.
    loaded: OnceLock<Option<MemoryMap>>,
}

impl<B: AsRef<[u8]>> TextMap<B> {
    /// Reads only the headers.
    pub fn new(text: B, layout: Layout) -> Self {
        let rows = header_end(text.as_ref());
        Self {
            text,
            rows,
            layout,
            query_count: AtomicUsize::new(0),
            samples: OnceLock::new(),
            loaded: OnceLock::new(),
        }
    }

    /// The map in memory, if it is small and was queried often enough.
    ///
    /// An unsorted map is not loaded: the search reports it where it matters.
    pub(super) fn loaded(&self, count: usize) -> Option<&MemoryMap> {
        if let Some(loaded) = self.loaded.get() {
            return loaded.as_ref();
        }
        let rows = &self.text.as_ref()[self.rows..];
        let query_count = self.query_count.load(atomic::Ordering::Relaxed) + count;
        if rows.len() > MAX_LOADED
            || query_count < SAMPLING_THRESHOLD.max(rows.len() / BYTES_PER_ROW)
        {
            return None;
        }
        let load = || {
            let mut builder = MemoryMapBuilder::new(self.layout);
            let mut start = 0;
            while start < rows.len() {
                let (line, next) = line_at(rows, start);
                // Byte-order marks occur only before the headers.
                builder.push(line, 1).ok()?;
                start = next;
            }
            Some(builder.finish())
        };
        self.loaded.get_or_init(load).as_ref()
    }

    /// A seeker for `count` keys; each thread has its own.
    ///
    /// Once it was queried often enough, the map is sampled.
    pub fn seeker(&self, count: usize) -> Result<TextSeeker<'_>, NotSorted> {
        let before = self.query_count.fetch_add(count, atomic::Ordering::Relaxed);
        let samples = if before.saturating_add(count) >= SAMPLING_THRESHOLD {
            let take = || Samples::of(self.text.as_ref(), self.rows);
            let taken = self.samples.get_or_init(take);
            Some(taken.as_ref().map_err(|error| *error)?)
        } else {
            None
        };
        Ok(TextSeeker {
            text: self.text.as_ref(),
            rows: self.rows,
            layout: self.layout,
            key: Vec::new(),
            candidates: Vec::new(),
            positions: Vec::new(),
            last_candidates: Vec::new(),
            last_positions: Vec::new(),
            open: Vec::new(),
            samples,
        })
    }
}

/// Looks up keys. Faster if they come in byte order: a common prefix is searched once, and the next search starts from
/// the last result.
pub struct TextSeeker<'a> {
    text: &'a [u8],
    rows: usize,
    layout: Layout,
    /// The last key, with its candidates and their positions.
    key: Vec<u8>,
    candidates: Vec<Candidate>,
    positions: Vec<CandidatePosition>,
    last_candidates: Vec<Candidate>,
    last_positions: Vec<CandidatePosition>,
    /// Candidates whose positions are to be found.
    open: Vec<usize>,
    samples: Option<&'a Samples>,
}

impl TextSeeker<'_> {
    /// The frequency for a normalized key without query, if any; appends the matched key.
    pub fn seek(
        &mut self,
        key: &[u8],
        matched: &mut Vec<u8>,
    ) -> Result<Option<Frequency>, NotSorted> {
        let frequency = self.seek_spelling(key, matched)?;
        match frequency {
            None => match other_spelling(key) {
                Some(other) => self.seek_spelling(&other, matched),
                None => Ok(None),
            },
            _ => Ok(frequency),
        }
    }

    fn seek_spelling(
        &mut self,
        key: &[u8],
        matched: &mut Vec<u8>,
    ) -> Result<Option<Frequency>, NotSorted> {
        self.find_positions(key)?;
        for (candidate, position) in self.candidates.iter().zip(&self.positions).rev() {
            let Some(row) = position.row else {
                continue;
            };
            let length = candidate.stem + candidate.tail.len();
            let frequency = self.frequency_of_rows(row, length);
            if frequency.is_held() || !candidate.is_own {
                candidate.write(key, matched);
                return Ok(Some(frequency));
            }
        }
        Ok(None)
    }

    fn find_positions(&mut self, key: &[u8]) -> Result<(), NotSorted> {
        std::mem::swap(&mut self.candidates, &mut self.last_candidates);
        std::mem::swap(&mut self.positions, &mut self.last_positions);
        list(key, self.layout.is_rolled_up, &mut self.candidates);
        self.positions.clear();
        self.positions
            .resize(self.candidates.len(), CandidatePosition::default());
        let shared = common_len(&self.key, key);
        let known = self
            .candidates
            .iter()
            .zip(&self.last_candidates)
            .take_while(|(a, b)| a.stem <= shared && a.stem == b.stem && a.tail == b.tail)
            .count();
        self.positions[..known].copy_from_slice(&self.last_positions[..known]);
        self.open.clear();
        self.open.extend(known..self.candidates.len());
        // A candidate that differs from the last key only after the common prefix sorts after it, as the key itself
        // does.
        let is_after = self.key.as_slice() < key
            && self.candidates[known..]
                .iter()
                .all(|candidate| candidate.stem > shared);
        // Only for the key itself is it known that nothing was skipped between it and the next; `*` is not searched.
        let start = match (self.last_candidates.last(), self.last_positions.last()) {
            (Some(candidate), Some(position)) if is_after && candidate.tail.is_empty() => {
                Some(position.lower)
            }
            _ => None,
        };
        let mut search = Search {
            text: self.text,
            key,
            candidates: &self.candidates,
            positions: &mut self.positions,
        };
        let result = match (start, self.samples) {
            (Some(start), _) => search.gallop(start, &mut self.open),
            (None, Some(samples)) => search.search_near(samples, &mut self.open),
            (None, None) => search.bisect(Span::new(self.rows, self.text.len()), &mut self.open),
        };
        if result.is_err() {
            // After an error, the next search starts without the last position.
            self.candidates.clear();
            self.positions.clear();
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        result
    }

    /// The sum of all rows with the key of the first, which has this length.
    fn frequency_of_rows(&self, first: usize, length: usize) -> Frequency {
        let key = &self.text[first..first + length];
        let (row, mut next) = line_at(self.text, first);
        let mut sum = frequency(&row[length..], self.layout);
        while next < self.text.len() {
            let (line, after) = line_at(self.text, next);
            if let Some(start) = key_start(line) {
                let row = &line[start..];
                let is_same =
                    row.starts_with(key) && row.get(length).is_none_or(|&byte| ends_field(byte));
                if !is_same {
                    break;
                }
                sum = add(sum, frequency(&row[length..], self.layout));
            }
            next = after;
        }
        sum
    }
}
