//! Builds maps: from indexes of any size, sorted or not, to sorted keys with counts.

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
use crate::index::Layout;
use crate::input::BLOCK_BYTES;
use crate::input::Damage;
use crate::input::Input;

/// Bytes per write.
const WRITE_BYTES: usize = 1 << 20;

/// Performance options. They do not affect the result.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// The number of threads that parse lines.
    pub threads: usize,
    /// Memory for entries in bytes. Beyond it they spill to temporary files.
    pub memory: usize,
    /// Lines with more bytes are counted and skipped.
    pub line_limit: usize,
    /// Text per block, in bytes.
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

/// Counts the holdings of indexes.
pub struct Builder {
    row_filter: RowFilter,
    build_options: BuildOptions,
    /// Whether an unsorted file is an error.
    require_sorted: bool,
    sorter: Sorter,
    totals: Totals,
    dates: DateRange,
    target: Target,
}

/// The output file, if writing starts before everything is counted.
enum Target {
    None,
    /// Starts with the first input file. With the total number of input bytes.
    Pending(File, u64),
    Started(StreamedMapFile),
}

impl Builder {
    /// Creates a builder.
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

    /// The dates of the first and the last counted row.
    #[must_use]
    pub fn dates(&self) -> &DateRange {
        &self.dates
    }

    /// Writes ordered entries to a file immediately; [`Builder::finish_streaming`] writes the rest. The file must be
    /// open for reading too, and contain only a header that is as long as the final one is expected to be. `bytes` is
    /// the total input size, used to predict the result; wrong predictions only cost time.
    pub fn start_streaming(&mut self, file: File, bytes: u64) {
        self.target = Target::Pending(file, bytes);
    }

    /// Counts the rows of a file. Without a layout it is detected from the first lines.
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

    /// Starts streaming if requested, after `counted` entries in `bytes` bytes.
    fn open_streamed_file(&mut self, counted: u64, bytes: u64) -> Result<(), HoldingsError> {
        // Totals per year, and pages that are collapsed from URI-Rs later, must be known first.
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

    /// Counts a row that was parsed elsewhere: key column, URL, date, media type and status, as available.
    pub fn add_row(
        &mut self,
        row: &crate::index::Row<'_>,
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

    /// Adds an entry of another map. Its key must be normalized and have the configured number of fields.
    pub fn add_entry(&mut self, entry: &Entry<'_>) -> Result<(), HoldingsError> {
        self.totals.add_entry(entry)?;
        self.sorter.push(entry)
    }

    /// Adds the entries of another map and normalizes their keys. Without `exclusions`, exclusions are dropped and
    /// counted as filtered: another input may hold a page that one map excludes.
    pub fn add_map(
        &mut self,
        reader: &mut MapReader,
        exclusions: bool,
        progress: &Progress,
    ) -> Result<(), HoldingsError> {
        let mut key = Vec::new();
        let mut filtered = 0;
        while let Some(entry) = reader.next_entry()? {
            if entry.key == b"*" || entry.key.starts_with(b"* ") {
                continue;
            }
            if !exclusions && !entry.frequency.is_held() {
                filtered += 1;
                continue;
            }
            key.clear();
            if !entry.write_normal_key(self.row_filter.rules, &mut key) {
                // An invalid key is retained verbatim: a map must not lose keys, and the key may be looked up verbatim.
                key.extend_from_slice(entry.key);
            }
            self.add_entry(&Entry { key: &key, ..entry })?;
            progress.check_cancelled()?;
        }
        reader.line_stats.counted -= filtered;
        reader.line_stats.filtered += filtered;
        Ok(())
    }

    /// Adds the output of [`Builder::write_counts`] of another builder with the same options.
    pub fn add_counts(&mut self, reader: &mut MapReader) -> Result<(), HoldingsError> {
        while let Some(entry) = reader.next_entry()? {
            self.add_entry(&entry)?;
        }
        Ok(())
    }

    /// Writes the counts for another builder: whole keys in order, each once, without a total.
    pub fn write_counts(
        self,
        out: &mut impl Write,
        progress: &Progress,
    ) -> Result<(), HoldingsError> {
        self.sorter.write_to(out, progress)
    }

    /// The counts under whole keys, and the build options.
    pub(super) fn into_uri_counts(self) -> (Sorter, BuildOptions) {
        (self.sorter, self.build_options)
    }

    /// Completes the map started by [`Builder::start_streaming`], with the final header.
    pub fn finish_streaming(
        mut self,
        header: &[u8],
        progress: &Progress,
    ) -> Result<(), HoldingsError> {
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

    /// All counts, each key once, in order.
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

/// Counted keys in order, ready to be written.
pub struct Counts {
    sorter: Sorter,
    totals: Totals,
    fields: usize,
    memory: usize,
}

impl Counts {
    /// Writes the lines of a map, compacted if requested, the total first. Returns the compaction statistics.
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

/// Takes the results of blocks in order.
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
            .open_streamed_file(counted, self.progress.bytes())?;
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
