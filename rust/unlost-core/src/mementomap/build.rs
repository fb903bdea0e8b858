//! From indexes of any size, sorted or not, to counted keys in order.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::thread;

use super::block_output::KeyCounts;
use super::collapse_queries::collapse_queries;
use super::compact::{CompactionStats, compact};
use super::filter::DateRange;
use super::in_order_sink::{InOrderSink, collect_file};
use super::line_stats::LineStats;
use super::row_filter::RowFilter;
use super::scan::{BlockResult, Scanner};
use super::sorter::Sorter;
use super::streamed_file::StreamedMapFile;
use super::totals::Totals;
use super::totals_inserter::TotalsInserter;
use super::{Compaction, Entry, HoldingsError, MapReader, Progress};
use crate::formats::{BLOCK_BYTES, Damage, Input, Layout};

/// How much is written at a time.
const WRITE_BYTES: usize = 1 << 20;

/// How the work is done; nothing of it shows in the result.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// How many threads read lines.
    pub threads: usize,
    /// How much memory entries may take before they are written to temporary files.
    pub memory: usize,
    /// Lines of more bytes are counted and left out.
    pub line_limit: usize,
    /// How much text a thread looks at at a time.
    pub block_bytes: usize,
}

impl Default for BuildOptions {
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
    row_filter: RowFilter,
    build_options: BuildOptions,
    /// Whether a file that is not sorted is an error.
    require_sorted: bool,
    sorter: Sorter,
    totals: Totals,
    dates: DateRange,
    target: Target,
}

/// The file that a map is written to, if that begins before everything is counted.
enum Target {
    None,
    /// It begins with the first file that is counted. So many bytes will be read in all.
    Pending(File, u64),
    Started(StreamedMapFile),
}

impl Builder {
    /// Begins to count.
    #[must_use]
    pub fn new(row_filter: RowFilter, build_options: BuildOptions, require_sorted: bool) -> Self {
        let fields = if row_filter.by_year { 2 } else { 1 };
        Self {
            sorter: Sorter::new(fields, build_options.memory),
            row_filter,
            build_options,
            require_sorted,
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
        self.target = Target::Pending(file, bytes);
    }

    /// Counts the rows of a file. Without a layout it is told by the first lines.
    pub fn add_file<R: Input + Send + Sync>(
        &mut self,
        file: R,
        layout: Option<Layout>,
        progress: &Progress,
    ) -> Result<(LineStats, Option<Damage>), HoldingsError> {
        let mut line_stats = LineStats::default();
        let (row_filter, build_options) = (self.row_filter.clone(), self.build_options.clone());
        let mut collector = CountCollector {
            builder: self,
            line_stats: &mut line_stats,
            last: Vec::new(),
            progress,
        };
        let damage = collect_file(
            file,
            layout,
            &row_filter,
            &build_options,
            &mut collector,
            progress,
        )?;
        Ok((line_stats, damage))
    }

    /// Begins to write, if that is wanted: so much was counted in so many bytes.
    fn start_streaming(&mut self, counted: u64, bytes: u64) -> Result<(), HoldingsError> {
        // Where years have totals of their own, or URI-Rs become pages later, all has to be known first.
        if self.row_filter.by_year || self.row_filter.queries {
            return Ok(());
        }
        let target = std::mem::replace(&mut self.target, Target::None);
        let Target::Pending(file, all) = target else {
            self.target = target;
            return Ok(());
        };
        let expected = u128::from(counted) * u128::from(all.max(bytes)) / u128::from(bytes.max(1));
        let (streamed, lines) =
            StreamedMapFile::new(file, u64::try_from(expected).unwrap_or(u64::MAX))?;
        self.sorter.set_output(lines);
        self.target = Target::Started(streamed);
        Ok(())
    }

    /// Counts rows that were read elsewhere: key column, address, date, media type and status, as far as there are any.
    pub fn add_row(
        &mut self,
        row: &crate::formats::Row<'_>,
        line_stats: &mut LineStats,
    ) -> Result<(), HoldingsError> {
        let layout = Layout::Cdxj;
        let scanner = Scanner {
            layout: &layout,
            row_filter: &self.row_filter,
            line_limit: self.build_options.line_limit,
        };
        let mut out = KeyCounts::default();
        line_stats.lines += 1;
        scanner.row(row, line_stats, &mut out)?;
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
            if !entry.write_normal_key(self.row_filter.rules, &mut key) {
                // As it stands: a map must not lose keys, and somebody may ask for it as it is.
                key.extend_from_slice(entry.key);
            }
            self.add_entry(&Entry { key: &key, ..entry })?;
            progress.check_cancelled()?;
        }
        reader.line_stats.counted -= left_out;
        reader.line_stats.filtered += left_out;
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
    pub(super) fn into_uri_counts(self) -> (Sorter, BuildOptions) {
        (self.sorter, self.build_options)
    }

    /// Ends what [`Builder::begin`] began, with the final header: the map is whole.
    pub fn end(mut self, header: &[u8], progress: &Progress) -> Result<(), HoldingsError> {
        match std::mem::replace(&mut self.target, Target::None) {
            Target::None => Ok(()),
            Target::Started(streamed) => {
                streamed.finish(self.sorter, header, self.totals.text(), progress)
            }
            Target::Pending(mut file, _) => {
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
        let (sorter, totals) = if self.row_filter.queries {
            collapse_queries(self.sorter, &self.row_filter, &self.build_options, progress)?
        } else {
            (self.sorter, self.totals)
        };
        Ok(Counts {
            sorter,
            totals,
            fields: if self.row_filter.by_year { 2 } else { 1 },
            memory: self.build_options.memory,
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
    ) -> Result<Option<CompactionStats>, HoldingsError> {
        let is_rolled_up = compaction.is_some_and(Compaction::is_everything);
        let totals = if is_rolled_up {
            Vec::new()
        } else {
            self.totals.text()
        };
        let mut out = TotalsInserter::new(out, totals);
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
struct CountCollector<'a> {
    builder: &'a mut Builder,
    line_stats: &'a mut LineStats,
    last: Vec<u8>,
    progress: &'a Progress,
}

impl InOrderSink for CountCollector<'_> {
    type BlockOutput = KeyCounts;

    fn collect(&mut self, scanned: &mut BlockResult<KeyCounts>) -> Result<(), HoldingsError> {
        let counted = scanned.line_stats.counted;
        self.builder
            .start_streaming(counted, self.progress.bytes())?;
        if self.builder.require_sorted {
            let begins_before = !scanned.first.is_empty() && scanned.first < self.last;
            let line = if begins_before {
                Some(1)
            } else {
                scanned.unsorted
            };
            if let Some(line) = line {
                return Err(HoldingsError::Unsorted {
                    line: self.line_stats.lines + line,
                });
            }
            if !scanned.last.is_empty() {
                std::mem::swap(&mut self.last, &mut scanned.last);
            }
        }
        self.line_stats
            .append(std::mem::take(&mut scanned.line_stats));
        let KeyCounts {
            table,
            totals,
            inner,
            lines,
            dates,
        } = &mut scanned.output;
        self.builder.dates.append(dates);
        self.builder.totals.append(totals)?;
        self.builder.sorter.push_lines(table, inner.clone(), lines)
    }

    fn lines(&self) -> u64 {
        self.line_stats.lines
    }
}
