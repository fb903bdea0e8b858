//! Consecutive rows of one URI-R, combined to a run.

use std::ops::Range;

use super::rows::RowCounts;
use crate::index::Row;
use crate::mementomap::HoldingsError;
use crate::mementomap::block_output::BlockOutput;

/// No valid date.
pub(super) const NO_MONTH: u16 = u16::MAX;

/// Captures of one URI-R.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Run {
    start: usize,
    len: usize,
    /// The number of captures.
    pub(super) captures: u64,
    /// The years of the captures, one bit each.
    pub(super) years: u64,
    /// The month of the first capture, or [`NO_MONTH`].
    pub(super) first: u16,
}

impl Run {
    /// A run without its key.
    pub(super) fn of(captures: u64, years: u64, first: u16) -> Self {
        Self {
            captures,
            years,
            first,
            ..Self::default()
        }
    }

    /// Adds more captures of the same URI-R.
    pub(super) fn add(&mut self, more: &Self) {
        self.captures += more.captures;
        self.years |= more.years;
        self.first = self.first.min(more.first);
    }
}

/// Runs with their keys in one allocation.
#[derive(Debug, Default)]
pub(super) struct Runs {
    bytes: Vec<u8>,
    runs: Vec<Run>,
}

impl Runs {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.runs.clear();
    }

    pub(super) fn push(&mut self, key: &[u8], captures: u64, years: u64, first: u16) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.runs.push(Run {
            start,
            len: key.len(),
            captures,
            years,
            first,
        });
    }

    pub(super) fn append(&mut self, other: &Self, part: Range<usize>) {
        for run in &other.runs[part] {
            self.push(other.key(run), run.captures, run.years, run.first);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn key(&self, run: &Run) -> &[u8] {
        &self.bytes[run.start..run.start + run.len]
    }

    pub(super) fn get(&self, at: usize) -> &Run {
        &self.runs[at]
    }

    /// The host of a run, with the `)`.
    pub(super) fn host(&self, at: usize) -> &[u8] {
        host_of(self.key(&self.runs[at]))
    }

    /// Memory use in bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.runs.len() * size_of::<Run>()
    }

    /// The end of the runs of the host that begins at `start`.
    pub(super) fn host_end(&self, start: usize) -> usize {
        let host = self.host(start);
        let rest = self.runs[start..].iter();
        start
            + rest
                .take_while(|run| self.key(run).starts_with(host))
                .count()
    }

    /// Sorts a range of runs and merges equal keys: moves them to the front of the range and returns their number. The
    /// order of the rest is undefined.
    pub(super) fn merge_sorted(&mut self, part: Range<usize>) -> usize {
        let bytes = &self.bytes;
        let runs = &mut self.runs[part];
        let key = |run: &Run| &bytes[run.start..run.start + run.len];
        if runs.is_sorted_by(|a, b| key(a) < key(b)) {
            return runs.len();
        }
        runs.sort_unstable_by(|a, b| key(a).cmp(key(b)));
        let mut last = 0;
        for at in 1..runs.len() {
            let run = runs[at];
            if key(&runs[last]) == key(&run) {
                runs[last].add(&run);
            } else {
                last += 1;
                runs[last] = run;
            }
        }
        last + 1
    }
}

/// The host of a key, with the `)`: the whole key if there is none.
pub(super) fn host_of(key: &[u8]) -> &[u8] {
    &key[..memchr::memchr(b')', key).map_or(key.len(), |end| end + 1)]
}

/// The rows of a block, counted, and as runs.
pub(super) struct RunOutput {
    pub(super) rows: RowCounts,
    pub(super) runs: Runs,
    /// Of the current run.
    years: u64,
    first_month: u16,
}

impl Default for RunOutput {
    fn default() -> Self {
        Self {
            rows: RowCounts::default(),
            runs: Runs::default(),
            years: 0,
            first_month: NO_MONTH,
        }
    }
}

impl BlockOutput for RunOutput {
    const READS_ROWS: bool = true;

    fn clear(&mut self) {
        self.rows.clear();
        self.runs.clear();
        self.years = 0;
        self.first_month = NO_MONTH;
    }

    fn on_text(&mut self, bytes: usize) {
        self.rows.text_bytes += bytes as u64;
    }

    fn on_row(&mut self, row: &Row<'_>) {
        let month = self.rows.add(row);
        if month != NO_MONTH {
            self.years |= 1 << (month / 12);
            self.first_month = self.first_month.min(month);
        }
    }

    fn on_foreign(&mut self, scheme: &str) {
        self.rows.on_foreign(scheme, 1);
    }

    fn push(&mut self, key: &[u8], count: u64) -> Result<(), HoldingsError> {
        self.runs.push(key, count, self.years, self.first_month);
        self.years = 0;
        self.first_month = NO_MONTH;
        Ok(())
    }
}
