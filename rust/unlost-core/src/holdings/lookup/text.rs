//! A map searched where it lies: nothing is read but the lines that the search touches.

use std::cmp::Ordering;
use std::sync::OnceLock;
use std::sync::atomic::{self, AtomicUsize};

use super::candidates::{Candidate, list, other_spelling};
use super::row::{Layout, ends_field, frequency, header_end, key_start, line_at, line_start};
use super::samples::{Head, Samples};
use super::{Frequency, NotSorted, add};

/// After so many questions, taking samples has paid off: it costs as much as about as many searches.
const ENOUGH: usize = 1000;

/// A map's text, sorted by the bytes of its keys, below its headers.
#[derive(Debug)]
pub struct TextMap<B> {
    text: B,
    rows: usize,
    layout: Layout,
    asked: AtomicUsize,
    samples: OnceLock<Result<Samples, NotSorted>>,
}

impl<B: AsRef<[u8]>> TextMap<B> {
    /// Reads no more than the headers.
    pub fn new(text: B, layout: Layout) -> Self {
        let rows = header_end(text.as_ref());
        Self {
            text,
            rows,
            layout,
            asked: AtomicUsize::new(0),
            samples: OnceLock::new(),
        }
    }

    /// Something to look up so many keys with, one after the other; each thread has its own.
    ///
    /// Once it was asked often enough, the map remembers some of its rows.
    pub fn seeker(&self, count: usize) -> Result<TextSeeker<'_>, NotSorted> {
        let before = self.asked.fetch_add(count, atomic::Ordering::Relaxed);
        let samples = if before.saturating_add(count) >= ENOUGH {
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
            places: Vec::new(),
            last_candidates: Vec::new(),
            last_places: Vec::new(),
            open: Vec::new(),
            samples,
        })
    }
}

/// What is known about a candidate.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// All rows that begin before have smaller keys.
    lower: usize,
    /// Where its first row begins.
    row: Option<usize>,
}

/// Looks up keys. Faster if they come in the order of their bytes: what two keys share is searched once, and the next
/// is looked for from where the last one was found.
pub struct TextSeeker<'a> {
    text: &'a [u8],
    rows: usize,
    layout: Layout,
    /// The key that was asked for last, with its candidates and their places.
    key: Vec<u8>,
    candidates: Vec<Candidate>,
    places: Vec<Place>,
    last_candidates: Vec<Candidate>,
    last_places: Vec<Place>,
    /// Candidates whose places have to be found.
    open: Vec<usize>,
    samples: Option<&'a Samples>,
}

impl TextSeeker<'_> {
    /// What the map says about a normal key without query, if anything; appends the key that says so.
    pub fn seek(
        &mut self,
        key: &[u8],
        matched: &mut Vec<u8>,
    ) -> Result<Option<Frequency>, NotSorted> {
        let found = self.seek_spelling(key, matched)?;
        match found {
            None => match other_spelling(key) {
                Some(other) => self.seek_spelling(&other, matched),
                None => Ok(None),
            },
            _ => Ok(found),
        }
    }

    fn seek_spelling(
        &mut self,
        key: &[u8],
        matched: &mut Vec<u8>,
    ) -> Result<Option<Frequency>, NotSorted> {
        self.find_places(key)?;
        for (candidate, place) in self.candidates.iter().zip(&self.places).rev() {
            let Some(row) = place.row else {
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

    fn find_places(&mut self, key: &[u8]) -> Result<(), NotSorted> {
        std::mem::swap(&mut self.candidates, &mut self.last_candidates);
        std::mem::swap(&mut self.places, &mut self.last_places);
        list(key, self.layout.rolled_up, &mut self.candidates);
        self.places.clear();
        self.places.resize(self.candidates.len(), Place::default());
        let shared = shared_length(&self.key, key);
        let known = self
            .candidates
            .iter()
            .zip(&self.last_candidates)
            .take_while(|(a, b)| a.stem <= shared && a.stem == b.stem && a.tail == b.tail)
            .count();
        self.places[..known].copy_from_slice(&self.last_places[..known]);
        self.open.clear();
        self.open.extend(known..self.candidates.len());
        // What differs from the last key only behind what they share comes behind it, as the key itself does.
        let is_behind = self.key.as_slice() < key
            && self.candidates[known..]
                .iter()
                .all(|candidate| candidate.stem > shared);
        let start = match self.last_places.last() {
            Some(last) if is_behind => Some(last.lower),
            _ => None,
        };
        let mut search = Search {
            text: self.text,
            key,
            candidates: &self.candidates,
            places: &mut self.places,
        };
        let result = match (start, self.samples) {
            (Some(start), _) => search.ahead(start, &mut self.open),
            (None, Some(samples)) => search.near(samples, &mut self.open),
            (None, None) => search.run(Span::new(self.rows, self.text.len()), &mut self.open),
        };
        if result.is_err() {
            // Nothing is known that the next search could rely on.
            self.candidates.clear();
            self.places.clear();
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        result
    }

    /// The sum of all rows that have the key of the first, which is as long as said.
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

/// How a row's key stands to the key that is searched for: smaller or greater, and how far away. Ranks are ordered as
/// the keys are, as far as they tell, so they show rows that are not sorted without comparing these with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The longer they are alike, the nearer.
    Below(usize, u8),
    Same,
    Above(std::cmp::Reverse<usize>, u8),
}

const LOWEST: Rank = Rank::Below(0, 0);
const HIGHEST: Rank = Rank::Above(std::cmp::Reverse(0), u8::MAX);

/// A part of the text, from the beginning of a line to the end of one, and how the rows around it rank.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
    lowest: Rank,
    highest: Rank,
}

impl Span {
    fn new(start: usize, end: usize) -> Self {
        Self {
            start,
            end,
            lowest: LOWEST,
            highest: HIGHEST,
        }
    }
}

/// A row that was looked at.
struct Probe {
    /// Where its line begins, or a line before it that is no row.
    line: usize,
    /// Where its key begins.
    key: usize,
    rank: Rank,
    /// How much of its key is that which is searched for.
    shared: usize,
}

struct Search<'a> {
    text: &'a [u8],
    key: &'a [u8],
    candidates: &'a [Candidate],
    places: &'a mut [Place],
}

impl Search<'_> {
    /// Finds candidates where samples say that they would be, those that would be in the same place together.
    fn near(&mut self, samples: &Samples, mut open: &mut [usize]) -> Result<(), NotSorted> {
        let (key, candidates) = (self.key, self.candidates);
        let head = |i: usize| Head::of_parts(&key[..candidates[i].stem], candidates[i].tail);
        while let Some(&last) = open.last() {
            let near = samples.near(head(last));
            let mut here = 0;
            for i in 0..open.len() {
                if open[i] == last || near.is_for(head(open[i])) {
                    open.swap(here, i);
                    here += 1;
                }
            }
            let (found, rest) = open.split_at_mut(here);
            self.run(Span::new(near.start, near.end), found)?;
            open = rest;
        }
        Ok(())
    }

    /// Finds candidates in a part of the text. All go together as long as they are on the same side of the rows that
    /// are looked at.
    fn run(&mut self, mut span: Span, mut open: &mut [usize]) -> Result<(), NotSorted> {
        while !open.is_empty() {
            let middle = span.start + (span.end - span.start) / 2;
            let line = line_start(self.text, span.start, middle);
            let Some(probe) = self.probe(line, span.end) else {
                // No rows from this line on.
                if line == span.start {
                    for &mut each in open {
                        self.places[each].lower = line;
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
                    self.run(left_span, left)?;
                }
                span.start = line_at(self.text, probe.key).1;
                span.lowest = probe.rank;
                open = right;
            }
        }
        Ok(())
    }

    /// The same, in steps that double, for candidates that are expected near.
    fn ahead(&mut self, start: usize, mut open: &mut [usize]) -> Result<(), NotSorted> {
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
                self.run(left_span, left)?;
            }
            if !right.is_empty() {
                span.start = line_at(self.text, probe.key).1;
                span.lowest = probe.rank;
            }
            open = right;
            step *= 2;
        }
        self.run(span, open)
    }

    /// Looks at the first row from a line on; `None` if there is none before the end.
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
        let shared = shared_length(row, self.key);
        // A line end is no part of any key, so what is shared is within the row's own.
        let next = row.get(shared).copied().unwrap_or(0);
        let rank = match self.key.get(shared) {
            None if ends_field(next) => Rank::Same,
            Some(&byte) if next < byte => Rank::Below(shared, next.max(b' ')),
            _ => Rank::Above(std::cmp::Reverse(shared), next),
        };
        (rank, shared)
    }

    /// Puts the candidates that are not behind a row first, says how many they are, and marks those that it is.
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
                self.places[open[i]].row = Some(probe.key);
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

/// How the rest of a row's key stands to a text.
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

/// How many bytes two texts have in common.
fn shared_length(a: &[u8], b: &[u8]) -> usize {
    let mut shared = 0;
    // Eight at a time: keys of a map are long alike.
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let differing = word(a) ^ word(b);
        if differing != 0 {
            return shared + differing.trailing_zeros() as usize / 8;
        }
        shared += 8;
    }
    let rest = a[shared..].iter().zip(&b[shared..]);
    shared + rest.take_while(|(a, b)| a == b).count()
}
