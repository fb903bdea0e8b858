//! Binary search in a sorted text for all candidates of a key together.

use std::cmp::Ordering;

use super::NotSorted;
use super::candidates::Candidate;
use super::row::{ends_field, key_start, line_at, line_start};
use super::samples::{KeyPrefix, Samples};
use crate::mementomap::tree_key::common_len;

/// The state of the search for a candidate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CandidatePosition {
    /// All rows that begin before have smaller keys.
    pub(super) lower: usize,
    /// The offset of its first row.
    pub(super) row: Option<usize>,
}

/// How a row's key compares with the searched key: smaller or larger, and how far away. Ranks are ordered like keys, as
/// far as they are known, so they reveal unsorted rows without comparing these with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The longer the common prefix, the nearer.
    Below(usize, u8),
    Same,
    Above(std::cmp::Reverse<usize>, u8),
}

const LOWEST: Rank = Rank::Below(0, 0);
const HIGHEST: Rank = Rank::Above(std::cmp::Reverse(0), u8::MAX);

/// A part of the text, in whole lines, and the ranks of the rows around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    start: usize,
    end: usize,
    lowest: Rank,
    highest: Rank,
}

impl Span {
    pub(super) fn new(start: usize, end: usize) -> Self {
        Self {
            start,
            end,
            lowest: LOWEST,
            highest: HIGHEST,
        }
    }
}

/// A row that was compared.
struct Probe {
    /// The start of its line, or of a line before it that is not a row.
    line: usize,
    /// The start of its key.
    key: usize,
    rank: Rank,
    /// The length of the common prefix with the searched key.
    shared: usize,
}

/// Searches the candidates of one key.
pub(super) struct Search<'a> {
    pub(super) text: &'a [u8],
    pub(super) key: &'a [u8],
    pub(super) candidates: &'a [Candidate],
    pub(super) positions: &'a mut [CandidatePosition],
}

impl Search<'_> {
    /// Searches candidates in the ranges of the samples, those of one range together.
    pub(super) fn search_near(
        &mut self,
        samples: &Samples,
        mut open: &mut [usize],
    ) -> Result<(), NotSorted> {
        let (key, candidates) = (self.key, self.candidates);
        let head = |i: usize| KeyPrefix::of_parts(&key[..candidates[i].stem], candidates[i].tail);
        while let Some(&last) = open.last() {
            let range = samples.range_for(head(last));
            let mut here = 0;
            for i in 0..open.len() {
                if open[i] == last || range.contains(head(open[i])) {
                    open.swap(here, i);
                    here += 1;
                }
            }
            let (in_range, rest) = open.split_at_mut(here);
            self.bisect(Span::new(range.start, range.end), in_range)?;
            open = rest;
        }
        Ok(())
    }

    /// Searches candidates in a part of the text. They stay together while they are on the same side of the compared
    /// rows.
    pub(super) fn bisect(
        &mut self,
        mut span: Span,
        mut open: &mut [usize],
    ) -> Result<(), NotSorted> {
        while !open.is_empty() {
            let middle = span.start + (span.end - span.start) / 2;
            let line = line_start(self.text, span.start, middle);
            let Some(probe) = self.probe(line, span.end) else {
                // No rows from this line on.
                if line == span.start {
                    for &mut each in open {
                        self.positions[each].lower = line;
                    }
                    return Ok(());
                }
                span.end = line;
                continue;
            };
            check(&probe, &span)?;
            let before = self.partition(&probe, open);
            let (left, right) = open.split_at_mut(before);
            let left_span = Span {
                end: probe.line,
                highest: probe.rank,
                ..span
            };
            if right.is_empty() {
                (span, open) = (left_span, left);
            } else {
                if !left.is_empty() {
                    self.bisect(left_span, left)?;
                }
                span.start = line_at(self.text, probe.key).1;
                span.lowest = probe.rank;
                open = right;
            }
        }
        Ok(())
    }

    /// The same in doubling steps, for candidates that are expected nearby.
    pub(super) fn gallop(&mut self, start: usize, mut open: &mut [usize]) -> Result<(), NotSorted> {
        let mut span = Span::new(start, self.text.len());
        let mut step = 64;
        while !open.is_empty() && span.start + step < span.end {
            let line = line_start(self.text, span.start, span.start + step);
            let Some(probe) = self.probe(line, span.end) else {
                break;
            };
            check(&probe, &span)?;
            let before = self.partition(&probe, open);
            let (left, right) = open.split_at_mut(before);
            if !left.is_empty() {
                let left_span = Span {
                    end: probe.line,
                    highest: probe.rank,
                    ..span
                };
                self.bisect(left_span, left)?;
            }
            if !right.is_empty() {
                span.start = line_at(self.text, probe.key).1;
                span.lowest = probe.rank;
            }
            open = right;
            step *= 2;
        }
        self.bisect(span, open)
    }

    /// The first row from a line on; `None` if there is none before the end.
    fn probe(&self, line: usize, end: usize) -> Option<Probe> {
        let mut start = line;
        while start < end {
            // Nearly always the line begins with its key.
            let key = match self.text[start] {
                b'!' => None,
                byte if ends_field(byte) => {
                    key_start(line_at(self.text, start).0).map(|skipped| start + skipped)
                }
                _ => Some(start),
            };
            if let Some(key) = key {
                let (rank, shared) = self.rank(key);
                return Some(Probe {
                    line,
                    key,
                    rank,
                    shared,
                });
            }
            start = line_at(self.text, start).1;
        }
        None
    }

    fn rank(&self, row: usize) -> (Rank, usize) {
        let row = &self.text[row..];
        let shared = common_len(row, self.key);
        // A line end is not part of a key, so the common prefix is within the row's own key.
        let next = row.get(shared).copied().unwrap_or(0);
        let rank = match self.key.get(shared) {
            None if ends_field(next) => Rank::Same,
            Some(&byte) if next < byte => Rank::Below(shared, next.max(b' ')),
            _ => Rank::Above(std::cmp::Reverse(shared), next),
        };
        (rank, shared)
    }

    /// Moves the candidates that are not after a row to the front, returns their number, and marks those that match it.
    fn partition(&mut self, probe: &Probe, open: &mut [usize]) -> usize {
        let mut before = 0;
        for i in 0..open.len() {
            let candidate = &self.candidates[open[i]];
            let order = if probe.shared < candidate.stem {
                match probe.rank {
                    Rank::Below(..) => Ordering::Less,
                    _ => Ordering::Greater,
                }
            } else {
                compare(&self.text[probe.key + candidate.stem..], candidate.tail)
            };
            if order == Ordering::Equal {
                self.positions[open[i]].row = Some(probe.key);
            }
            if order != Ordering::Less {
                open.swap(before, i);
                before += 1;
            }
        }
        before
    }
}

fn check(probe: &Probe, span: &Span) -> Result<(), NotSorted> {
    if (span.lowest..=span.highest).contains(&probe.rank) {
        Ok(())
    } else {
        Err(NotSorted {
            offset: probe.key as u64,
        })
    }
}

/// Compares the rest of a row's key with a text.
fn compare(row: &[u8], tail: &[u8]) -> Ordering {
    for (i, &byte) in tail.iter().enumerate() {
        let own = row.get(i).copied().unwrap_or(0);
        if own != byte {
            return own.cmp(&byte);
        }
    }
    match row.get(tail.len()) {
        Some(&byte) if !ends_field(byte) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}
