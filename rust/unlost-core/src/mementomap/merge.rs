//! Merges maps of different archives, or of parts of one.

use std::io::Write;

use super::lookup::NotSorted;
use super::spill_buffer::SpillBuffer;
use super::totals::Totals;
use super::totals_inserter::TotalsInserter;
use super::{Entry, Frequency, HoldingsError, LineStats, MapReader, Progress};

/// How the object of an expiring exclusion begins. The date after it sorts like its bytes: an exclusion of several maps
/// expires with the first of them.
const EXPIRES: &[u8] = b"{\"expires\": \"";

/// A map that can be queried for a key, most specific match first.
pub trait KeyLookup {
    /// The frequency of a key, wildcard or not; `None` if nothing matches.
    fn look_up(&mut self, key: &[u8]) -> Result<Option<Frequency>, NotSorted>;
}

/// A map that is being merged: read once sequentially, queried in between.
pub struct Source<'a> {
    /// Its name.
    pub name: String,
    /// Its lines.
    pub reader: MapReader,
    /// The same map, for queries.
    pub lookup: Box<dyn KeyLookup + 'a>,
}

struct Head<'a> {
    source: Source<'a>,
    is_at_end: bool,
    /// The sums of its `*` lines, and of its other lines.
    declared_totals: Totals,
    sums: Totals,
}

impl Head<'_> {
    /// Reads the next line that is not a total. Errors name the map.
    fn advance(&mut self) -> Result<(), HoldingsError> {
        self.advance_unnamed()
            .map_err(|error| with_name(&self.source.name, error))
    }

    fn advance_unnamed(&mut self) -> Result<(), HoldingsError> {
        while self.source.reader.advance()? {
            let entry = self.source.reader.entry();
            if entry.surt_and_extra().0 != b"*" {
                self.sums.add_entry(&entry)?;
                return Ok(());
            }
            self.declared_totals.add_entry(&entry)?;
        }
        self.is_at_end = true;
        Ok(())
    }

    fn key(&self) -> Option<&[u8]> {
        (!self.is_at_end).then(|| self.source.reader.entry().key)
    }

    fn total(&self) -> &Totals {
        if self.declared_totals.iter().next().is_some() {
            &self.declared_totals
        } else {
            &self.sums
        }
    }
}

/// The result of merging.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merged {
    /// The number of lines, without the total.
    pub lines: u64,
    /// The number of exclusions that were dropped because another map holds the excluded pages.
    pub dropped: u64,
    /// The line statistics of each map.
    pub tallies: Vec<LineStats>,
}

/// Writes one map that covers every page that any of the maps covers.
pub fn merge_maps(
    sources: Vec<Source<'_>>,
    memory: usize,
    out: &mut impl Write,
    progress: &Progress,
) -> Result<Merged, HoldingsError> {
    let mut heads: Vec<Head<'_>> = sources
        .into_iter()
        .map(|source| Head {
            source,
            is_at_end: false,
            declared_totals: Totals::default(),
            sums: Totals::default(),
        })
        .collect();
    for head in &mut heads {
        head.advance()?;
    }
    let mut body = SpillBuffer::new(memory);
    let (mut lines, mut dropped) = (0_u64, 0);
    let mut key = Vec::new();
    let mut tail = Vec::new();
    while let Some(smallest) = heads.iter().filter_map(Head::key).min() {
        key.clear();
        key.extend_from_slice(smallest);
        let mut sum: Option<Frequency> = None;
        let mut expiry: Option<Vec<u8>> = None;
        let mut has_key = vec![false; heads.len()];
        for (head, has) in heads.iter_mut().zip(&mut has_key) {
            if head.key() != Some(&key) {
                continue;
            }
            *has = true;
            let entry = head.source.reader.entry();
            if entry.tail.starts_with(EXPIRES) && expiry.as_ref().is_none_or(|it| entry.tail < it) {
                expiry = Some(entry.tail.to_vec());
            }
            // The further fields apply only to one of the maps.
            if sum.is_none() {
                tail.clear();
                tail.extend_from_slice(entry.tail);
            } else if tail != entry.tail {
                tail.clear();
            }
            sum = Some(match sum {
                None => entry.frequency,
                Some(sum) => sum
                    .plus_overlapping(entry.frequency)
                    .ok_or_else(|| HoldingsError::Overflow { key: key.clone() })?,
            });
            head.advance()?;
        }
        let frequency = sum.unwrap_or(Frequency::UNKNOWN);
        if let (false, Some(earliest)) = (frequency.is_held(), expiry) {
            tail = earliest;
        }
        let entry = Entry {
            key: &key,
            frequency,
            tail: &tail,
        };
        if !entry.frequency.is_held() && is_held_elsewhere(&mut heads, &has_key, &entry)? {
            dropped += 1;
            continue;
        }
        lines += 1;
        if lines % 4096 == 0 {
            progress.check_cancelled()?;
        }
        body.append(|text| entry.write(text))?;
    }
    let mut totals = Totals::default();
    for head in &heads {
        totals.append_overlapping(head.total())?;
    }
    let mut out = TotalsInserter::new(out, totals.text());
    body.copy_to(&mut out)?;
    out.finish()?;
    Ok(Merged {
        lines,
        dropped,
        tallies: heads
            .into_iter()
            .map(|head| head.source.reader.line_stats)
            .collect(),
    })
}

/// Adds the map to an error; I/O errors and cancellation are unchanged.
fn with_name(name: &str, error: HoldingsError) -> HoldingsError {
    match error {
        HoldingsError::Io(_) | HoldingsError::Cancelled => error,
        about_lines => HoldingsError::InFile {
            name: name.to_owned(),
            error: Box::new(about_lines),
        },
    }
}

/// Whether a map without this line holds the excluded page.
fn is_held_elsewhere(
    heads: &mut [Head<'_>],
    has_key: &[bool],
    entry: &Entry<'_>,
) -> Result<bool, HoldingsError> {
    let (surt, _) = entry.surt_and_extra();
    for (head, has) in heads.iter_mut().zip(has_key) {
        if *has {
            continue;
        }
        let frequency = head.source.lookup.look_up(surt);
        let frequency = frequency.map_err(|error| {
            let error = HoldingsError::Unreadable {
                line: head.source.reader.line_stats.lines,
                message: error.to_string(),
            };
            with_name(&head.source.name, error)
        })?;
        if frequency.is_some_and(Frequency::is_held) {
            return Ok(true);
        }
    }
    Ok(false)
}
