//! From indexes of any size, sorted or not, to counted keys in order.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::thread;

use super::collect::{Collect, collect_file};
use super::compact::{Shape, compact};
use super::filter::DateRange;
use super::harvest::CountedKeys;
use super::home::Home;
use super::pages::pages_of;
use super::scan::{Scanned, Scanner};
use super::sorter::Sorter;
use super::tally::Tally;
use super::totals::Totals;
use super::wanted::Wanted;
use super::with_totals::WithTotals;
use super::{Compaction, Entry, HoldingsError, MapReader, Progress};
use crate::formats::{BLOCK_BYTES, Damage, Input, Layout};

/// How much is written at a time.
const WRITE_BYTES: usize = 1 << 20;

/// How the work is done; nothing of it shows in the result.
#[derive(Debug, Clone)]
pub struct Effort {
    /// How many threads read lines.
    pub threads: usize,
    /// How much memory entries may take before they are written to temporary files.
    pub memory: usize,
    /// Lines of more bytes are counted and left out.
    pub line_limit: usize,
    /// How much text a thread looks at at a time.
    pub block_bytes: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            threads: thread::available_parallelism().map_or(1, usize::from),
            memory: 64 << 20,
            line_limit: 8 << 20,
            block_bytes: BLOCK_BYTES,
        }
    }
}

/// Counts what indexes hold.
pub struct Builder {
    wanted: Wanted,
    effort: Effort,
    /// Whether a file that is not sorted is an error.
    is_promised_sorted: bool,
    sorter: Sorter,
    totals: Totals,
    dates: DateRange,
    target: Target,
}

/// The file that a map is written to, if that begins before everything is counted.
enum Target {
    None,
    /// It begins with the first file that is counted. So many bytes will be read in all.
    Waiting(File, u64),
    Begun(Home),
}

impl Builder {
    /// Begins to count.
    #[must_use]
    pub fn new(wanted: Wanted, effort: Effort, is_promised_sorted: bool) -> Self {
        let fields = if wanted.by_year { 2 } else { 1 };
        Self {
            sorter: Sorter::new(fields, effort.memory),
            wanted,
            effort,
            is_promised_sorted,
            totals: Totals::default(),
            dates: DateRange::default(),
            target: Target::None,
        }
    }

    /// The dates of the first and the last row that was counted.
    #[must_use]
    pub fn dates(&self) -> &DateRange {
        &self.dates
    }

    /// Writes the map to a file, what comes in order at once: [`Builder::end`] writes the rest. The file must be open for
    /// reading too, with nothing in it but a header as long as the final one is expected to be. `bytes` is how many there
    /// are to count, to guess from the first what all will come to; nothing but time depends on both guesses.
    pub fn begin(&mut self, file: File, bytes: u64) {
        self.target = Target::Waiting(file, bytes);
    }

    /// Counts the rows of a file. Without a layout it is told by the first lines.
    pub fn add_file<R: Input + Send + Sync>(
        &mut self,
        file: R,
        layout: Option<Layout>,
        progress: &Progress,
    ) -> Result<(Tally, Option<Damage>), HoldingsError> {
        let mut tally = Tally::default();
        let (wanted, effort) = (self.wanted.clone(), self.effort.clone());
        let mut collector = Collector {
            builder: self,
            tally: &mut tally,
            last: Vec::new(),
            progress,
        };
        let damage = collect_file(file, layout, &wanted, &effort, &mut collector, progress)?;
        Ok((tally, damage))
    }

    /// Begins to write, if that is wanted: so much was counted in so many bytes.
    fn go_home(&mut self, counted: u64, bytes: u64) -> Result<(), HoldingsError> {
        // Where years have totals of their own, or URI-Rs become pages later, all has to be known first.
        if self.wanted.by_year || self.wanted.queries {
            return Ok(());
        }
        let target = std::mem::replace(&mut self.target, Target::None);
        let Target::Waiting(file, all) = target else {
            self.target = target;
            return Ok(());
        };
        let expected = u128::from(counted) * u128::from(all.max(bytes)) / u128::from(bytes.max(1));
        let (home, lines) = Home::new(file, u64::try_from(expected).unwrap_or(u64::MAX))?;
        self.sorter.set_home(lines);
        self.target = Target::Begun(home);
        Ok(())
    }

    /// Counts rows that were read elsewhere: key column, address, date, media type and status, as far as there are any.
    pub fn add_row(
        &mut self,
        row: &crate::formats::Row<'_>,
        tally: &mut Tally,
    ) -> Result<(), HoldingsError> {
        let layout = Layout::Cdxj;
        let scanner = Scanner {
            layout: &layout,
            wanted: &self.wanted,
            line_limit: self.effort.line_limit,
        };
        let mut out = CountedKeys::default();
        tally.lines += 1;
        scanner.row(row, tally, &mut out)?;
        self.dates.append(&out.dates);
        for entry in out.table.iter() {
            self.totals.add_entry(&entry)?;
            self.sorter.push(&entry)?;
        }
        Ok(())
    }

    /// Adds an entry of another map. Its key must be normal, with as many fields as are wanted.
    pub fn add_entry(&mut self, entry: &Entry<'_>) -> Result<(), HoldingsError> {
        self.totals.add_entry(entry)?;
        self.sorter.push(entry)
    }

    /// Adds the entries of another map, whose keys are brought to their normal form. Without `exclusions` those are left
    /// out and counted as filtered: what one map excludes, another input may hold.
    pub fn add_map(
        &mut self,
        reader: &mut MapReader,
        exclusions: bool,
        progress: &Progress,
    ) -> Result<(), HoldingsError> {
        let mut key = Vec::new();
        let mut left_out = 0;
        while let Some(entry) = reader.next_entry()? {
            if entry.key == b"*" || entry.key.starts_with(b"* ") {
                continue;
            }
            if !exclusions && !entry.frequency.is_held() {
                left_out += 1;
                continue;
            }
            key.clear();
            if !entry.write_normal_key(self.wanted.rules, &mut key) {
                // As it stands: a map must not lose keys, and somebody may ask for it as it is.
                key.extend_from_slice(entry.key);
            }
            self.add_entry(&Entry { key: &key, ..entry })?;
            progress.go_on()?;
        }
        reader.tally.counted -= left_out;
        reader.tally.filtered += left_out;
        Ok(())
    }

    /// Adds what [`Builder::write_counts`] of another builder wrote, which wants the same.
    pub fn add_counts(&mut self, reader: &mut MapReader) -> Result<(), HoldingsError> {
        while let Some(entry) = reader.next_entry()? {
            self.add_entry(&entry)?;
        }
        Ok(())
    }

    /// Writes what was counted as it is, whole keys in order, each once, without a total, for another builder.
    pub fn write_counts(
        self,
        out: &mut impl Write,
        progress: &Progress,
    ) -> Result<(), HoldingsError> {
        self.sorter.write_to(out, progress)
    }

    /// What was counted, under its whole keys, and how the work goes on.
    pub(super) fn into_uris(self) -> (Sorter, Effort) {
        (self.sorter, self.effort)
    }

    /// Ends what [`Builder::begin`] began, with the final header: the map is whole.
    pub fn end(mut self, header: &[u8], progress: &Progress) -> Result<(), HoldingsError> {
        match std::mem::replace(&mut self.target, Target::None) {
            Target::None => Ok(()),
            Target::Begun(home) => home.finish(self.sorter, header, self.totals.text(), progress),
            Target::Waiting(mut file, _) => {
                file.set_len(0)?;
                file.rewind()?;
                file.write_all(header)?;
                let mut out = BufWriter::with_capacity(WRITE_BYTES, file);
                self.finish(progress)?.write(None, &mut out, progress)?;
                Ok(out.flush()?)
            }
        }
    }

    /// Everything that was counted, each key once, in order.
    pub fn finish(self, progress: &Progress) -> Result<Counts, HoldingsError> {
        let (sorter, totals) = if self.wanted.queries {
            pages_of(self.sorter, &self.wanted, &self.effort, progress)?
        } else {
            (self.sorter, self.totals)
        };
        Ok(Counts {
            sorter,
            totals,
            fields: if self.wanted.by_year { 2 } else { 1 },
            memory: self.effort.memory,
        })
    }
}

/// Counted keys in order, to be written.
pub struct Counts {
    sorter: Sorter,
    totals: Totals,
    fields: usize,
    memory: usize,
}

impl Counts {
    /// Writes the lines of a map, compacted if that is wanted, its total first. Returns what compacting did.
    pub fn write(
        self,
        compaction: Option<&Compaction>,
        out: &mut impl Write,
        progress: &Progress,
    ) -> Result<Option<Shape>, HoldingsError> {
        let is_rolled_up = compaction.is_some_and(Compaction::is_everything);
        let totals = if is_rolled_up {
            Vec::new()
        } else {
            self.totals.text()
        };
        let mut out = WithTotals::new(out, totals);
        let shape = match compaction {
            None => {
                self.sorter.write_to(&mut out, progress)?;
                None
            }
            Some(compaction) => {
                let mut sorted = self.sorter.finish()?;
                let (fields, memory) = (self.fields, self.memory);
                Some(compact(
                    &mut sorted,
                    fields,
                    compaction,
                    memory,
                    &mut out,
                    progress,
                )?)
            }
        };
        out.finish()?;
        Ok(shape)
    }
}

/// Takes what blocks came to, in the order of the blocks.
struct Collector<'a> {
    builder: &'a mut Builder,
    tally: &'a mut Tally,
    last: Vec<u8>,
    progress: &'a Progress,
}

impl Collect for Collector<'_> {
    type Harvest = CountedKeys;

    fn collect(&mut self, scanned: &mut Scanned<CountedKeys>) -> Result<(), HoldingsError> {
        let counted = scanned.tally.counted;
        self.builder.go_home(counted, self.progress.bytes())?;
        if self.builder.is_promised_sorted {
            let begins_before = !scanned.first.is_empty() && scanned.first < self.last;
            let line = if begins_before {
                Some(1)
            } else {
                scanned.unsorted
            };
            if let Some(line) = line {
                return Err(HoldingsError::Unsorted {
                    line: self.tally.lines + line,
                });
            }
            if !scanned.last.is_empty() {
                std::mem::swap(&mut self.last, &mut scanned.last);
            }
        }
        self.tally.append(std::mem::take(&mut scanned.tally));
        let CountedKeys {
            table,
            totals,
            inner,
            lines,
            dates,
        } = &mut scanned.harvest;
        self.builder.dates.append(dates);
        self.builder.totals.append(totals)?;
        self.builder.sorter.push_lines(table, inner.clone(), lines)
    }

    fn lines(&self) -> u64 {
        self.tally.lines
    }
}
