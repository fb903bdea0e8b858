//! Scans the blocks of one file in many threads and collects the results in order.
//!
//! Maps, filters and statistics are thereby built from the same rows.

use std::io::{self, Read};
use std::marker::PhantomData;

use super::block_output::BlockOutput;
use super::build::BuildOptions;
use super::row_filter::RowFilter;
use super::scan::{BlockResult, Scanner};
use super::{HoldingsError, LineStats, Progress};
use crate::index::Layout;
use crate::input::Block;
use crate::input::Blocks;
use crate::input::Damage;
use crate::input::Input;
use crate::input::process_in_order;

/// Receives the results of blocks in order.
pub(super) trait InOrderSink {
    /// The result type of a block.
    type BlockOutput: BlockOutput;

    fn collect(
        &mut self,
        scanned: &mut BlockResult<Self::BlockOutput>,
    ) -> Result<(), HoldingsError>;

    /// The number of lines so far.
    fn lines(&self) -> u64;
}

/// Counts the lines of blocks, and passes on their results.
struct LineStatsSink<H, T> {
    take: T,
    line_stats: LineStats,
    output: PhantomData<fn(H)>,
}

impl<H: BlockOutput, T: FnMut(&mut H) -> Result<(), HoldingsError>> InOrderSink
    for LineStatsSink<H, T>
{
    type BlockOutput = H;

    fn collect(&mut self, scanned: &mut BlockResult<H>) -> Result<(), HoldingsError> {
        self.line_stats
            .append(std::mem::take(&mut scanned.line_stats));
        (self.take)(&mut scanned.output)
    }

    fn lines(&self) -> u64 {
        self.line_stats.lines
    }
}

/// Like [`collect_file`], for callers that need only the results of blocks: passes each to `take`, and returns the line
/// statistics.
pub(super) fn process_file<R: Input + Send + Sync, H: BlockOutput>(
    file: R,
    layout: Option<Layout>,
    (row_filter, build_options): (&RowFilter, &BuildOptions),
    progress: &Progress,
    take: impl FnMut(&mut H) -> Result<(), HoldingsError> + Send,
) -> Result<(LineStats, Option<Damage>), HoldingsError> {
    let mut collector = LineStatsSink {
        take,
        line_stats: LineStats::default(),
        output: PhantomData,
    };
    let damage = collect_file(
        file,
        layout,
        row_filter,
        build_options,
        &mut collector,
        progress,
    )?;
    Ok((collector.line_stats, damage))
}

/// Collects the rows of a file. Without a layout it is detected from the first lines.
pub(super) fn collect_file<R: Input + Send + Sync>(
    file: R,
    layout: Option<Layout>,
    row_filter: &RowFilter,
    build_options: &BuildOptions,
    collector: &mut (impl InOrderSink + Send),
    progress: &Progress,
) -> Result<Option<Damage>, HoldingsError> {
    let counted = MeteredInput { file, progress };
    let blocks = Blocks::new(counted, build_options.line_limit, build_options.block_bytes)?;
    let mut block = Block::default();
    if !blocks.next(&mut block)? {
        return Ok(blocks.damage());
    }
    if has_bare_returns(block.text()) {
        return Err(HoldingsError::Unreadable {
            line: 1,
            message: "the lines end in bare CR: write them with LF first (`tr '\\r' '\\n'`)"
                .to_owned(),
        });
    }
    if layout.is_none() && is_map(block.text()) {
        return Err(HoldingsError::Unreadable {
            line: 1,
            message: "a map, not an index: say so with --input map, and give it as a file"
                .to_owned(),
        });
    }
    let Some(layout) = layout.or_else(|| Layout::detect(block.text())) else {
        return Err(HoldingsError::Unreadable {
            line: 1,
            message: "expected lines of CDX or CDXJ: a key, a date, and columns or an object; --input says what else it is"
                .to_owned(),
        });
    };
    let scanner = Scanner {
        layout: &layout,
        row_filter,
        line_limit: build_options.line_limit,
    };
    let mut first = BlockResult::default();
    scanner.scan(&block, &mut first)?;
    progress.add_lines(first.line_stats.lines);
    collector.collect(&mut first)?;
    scan_all(
        &blocks,
        &scanner,
        build_options.threads,
        collector,
        progress,
    )?;
    Ok(blocks.damage())
}

/// Whether the first line of a text contains a CR, as in a file whose lines end in CR alone.
fn has_bare_returns(text: &[u8]) -> bool {
    let line = &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())];
    memchr::memchr(b'\r', line).is_some_and(|at| at + 1 < line.len())
}

/// Whether a text has the header of a map.
fn is_map(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n')
        .take_while(|line| line.first() == Some(&b'!'))
        .any(|line| line.starts_with(b"!fields "))
}

/// Scans all remaining blocks in many threads and collects the results.
fn scan_all<R: Input + Send + Sync, C: InOrderSink + Send>(
    blocks: &Blocks<R>,
    scanner: &Scanner<'_>,
    threads: usize,
    collector: &mut C,
    progress: &Progress,
) -> Result<(), HoldingsError> {
    let scan = |block: &Block, result: &mut BlockResult<C::BlockOutput>| {
        progress.check_cancelled()?;
        scanner.scan(block, result)?;
        progress.add_lines(result.line_stats.lines);
        Ok(())
    };
    process_in_order(blocks, threads, scan, |result| collector.collect(result))
        .map_err(|error| at_line(error, collector.lines()))
}

/// Line numbers in a block are relative to it. While earlier blocks are in progress, the absolute number is too low;
/// but then the file has to be split, and the message contains the position.
fn at_line(error: HoldingsError, lines: u64) -> HoldingsError {
    match error {
        HoldingsError::Unreadable { line, message } => HoldingsError::Unreadable {
            line: lines + line,
            message,
        },
        other => other,
    }
}

/// Counts the bytes of a file as they are read.
struct MeteredInput<'a, R> {
    file: R,
    progress: &'a Progress,
}

impl<R: Read> Read for MeteredInput<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.progress.add_bytes(read);
        Ok(read)
    }
}

impl<R: Input> Input for MeteredInput<'_, R> {
    fn length(&self) -> Option<u64> {
        self.file.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(buffer, offset)?;
        self.progress.add_bytes(read);
        Ok(read)
    }
}
