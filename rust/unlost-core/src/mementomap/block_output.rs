//! What rows become: counted keys, for a map. Filters have their own.

use std::ops::Range;

use super::filter::DateRange;
use super::totals::Totals;
use super::{Entry, Frequency, HoldingsError, Table};
use crate::formats::Row;

/// What the rows of a block become.
pub(super) trait BlockOutput: Default + Send {
    /// Whether every row is looked at, with all that is known of it, and not only its key.
    const READS_ROWS: bool = false;

    fn clear(&mut self);

    /// Takes a key, of which so many rows followed each other.
    fn push(&mut self, key: &[u8], count: u64) -> Result<(), HoldingsError>;

    /// Takes the date of a row that is counted.
    fn on_date(&mut self, _date: &[u8]) {}

    /// Takes how long a block is.
    fn on_text(&mut self, _bytes: usize) {}

    /// Takes a row that is counted, if rows are read. Its key comes when the last row of that key was seen.
    fn on_row(&mut self, _row: &Row<'_>) {}

    /// Takes the scheme of a row that is no web page.
    fn on_foreign(&mut self, _scheme: &str) {}

    /// The block has ended.
    fn finish(&mut self) -> Result<(), HoldingsError> {
        Ok(())
    }
}

/// Counted keys, for a map.
#[derive(Debug, Default)]
pub(super) struct KeyCounts {
    pub(super) table: Table,
    /// What all its entries come to.
    pub(super) totals: Totals,
    /// The entries of the inner hosts, and how those are written.
    pub(super) inner: Range<usize>,
    pub(super) lines: Vec<u8>,
    /// The first and the last capture.
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
        // What is not in order here hardly fits behind other blocks as it stands.
        if is_ordered {
            self.inner = self.table.inner_hosts();
        }
        for entry in self.inner.clone() {
            self.table.get(entry).write(&mut self.lines);
        }
        Ok(())
    }
}
