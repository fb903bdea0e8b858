//! The outputs that the rows of a block are converted to. Key counts, for maps, are defined here; filters and
//! statistics define their own.

use std::ops::Range;

use super::filter::DateRange;
use super::totals::Totals;
use super::{Entry, Frequency, HoldingsError, Table};
use crate::index::Row;

/// The result of the rows of a block.
pub(super) trait BlockOutput: Default + Send {
    /// Whether every row is passed with all its fields, not only its key.
    const READS_ROWS: bool = false;

    fn clear(&mut self);

    /// Takes a key with the number of consecutive rows.
    fn push(&mut self, key: &[u8], count: u64) -> Result<(), HoldingsError>;

    /// Takes the date of a counted row.
    fn on_date(&mut self, _date: &[u8]) {}

    /// Takes the length of a block.
    fn on_text(&mut self, _bytes: usize) {}

    /// Takes a counted row, if rows are read. Its key follows after the last row of that key.
    fn on_row(&mut self, _row: &Row<'_>) {}

    /// Takes the scheme of a row that is not a web page.
    fn on_foreign(&mut self, _scheme: &str) {}

    /// Called at the end of the block.
    fn finish(&mut self) -> Result<(), HoldingsError> {
        Ok(())
    }
}

/// Key counts for a map.
#[derive(Debug, Default)]
pub(super) struct KeyCounts {
    pub(super) table: Table,
    /// The sum of all entries.
    pub(super) totals: Totals,
    /// The entries of the inner hosts, and their lines.
    pub(super) inner: Range<usize>,
    pub(super) lines: Vec<u8>,
    /// The dates of the first and the last capture.
    pub(super) dates: DateRange,
}

impl BlockOutput for KeyCounts {
    fn clear(&mut self) {
        self.table.clear();
        self.totals.clear();
        self.inner = 0..0;
        self.lines.clear();
        self.dates = DateRange::default();
    }

    fn push(&mut self, key: &[u8], count: u64) -> Result<(), HoldingsError> {
        self.table.push(&Entry::new(key, Frequency::of(count)))
    }

    fn on_date(&mut self, date: &[u8]) {
        self.dates.add(date);
    }

    fn finish(&mut self) -> Result<(), HoldingsError> {
        let is_ordered = self.table.sort()?;
        for entry in self.table.iter() {
            self.totals.add_entry(&entry)?;
        }
        // Unordered entries rarely fit after other blocks verbatim.
        if is_ordered {
            self.inner = self.table.inner_hosts();
        }
        for entry in self.inner.clone() {
            self.table.get(entry).write(&mut self.lines);
        }
        Ok(())
    }
}
