//! Many threads that scan the blocks of one file, whose findings are collected in the order of the blocks.
//!
//! So maps, filters and statistics are made of the same rows.

use std::io::{self, Read};
use std::marker::PhantomData;

use super::build::Effort;
use super::harvest::Harvest;
use super::scan::{Scanned, Scanner};
use super::wanted::Wanted;
use super::{HoldingsError, Progress, Tally};
use crate::formats::{Block, Blocks, Damage, Input, Layout, work_in_order};

/// Takes what blocks came to, in the order of the blocks.
pub(super) trait Collect {
    /// What that is.
    type Harvest: Harvest;

    fn collect(&mut self, scanned: &mut Scanned<Self::Harvest>) -> Result<(), HoldingsError>;

    /// How many lines were collected.
    fn lines(&self) -> u64;
}

/// Counts the lines of blocks, and hands on what these came to.
struct Tallied<H, T> {
    take: T,
    tally: Tally,
    harvest: PhantomData<fn(H)>,
}

impl<H: Harvest, T: FnMut(&mut H) -> Result<(), HoldingsError>> Collect for Tallied<H, T> {
    type Harvest = H;

    fn collect(&mut self, scanned: &mut Scanned<H>) -> Result<(), HoldingsError> {
        self.tally.append(std::mem::take(&mut scanned.tally));
        (self.take)(&mut scanned.harvest)
    }

    fn lines(&self) -> u64 {
        self.tally.lines
    }
}

/// The same for whoever needs nothing but what blocks came to: gives each to `take`, and returns what became of the lines.
pub(super) fn tally_file<R: Input + Send + Sync, H: Harvest>(
    file: R,
    layout: Option<Layout>,
    (wanted, effort): (&Wanted, &Effort),
    progress: &Progress,
    take: impl FnMut(&mut H) -> Result<(), HoldingsError> + Send,
) -> Result<(Tally, Option<Damage>), HoldingsError> {
    let mut collector = Tallied {
        take,
        tally: Tally::default(),
        harvest: PhantomData,
    };
    let damage = collect_file(file, layout, wanted, effort, &mut collector, progress)?;
    Ok((collector.tally, damage))
}

/// Collects the rows of a file. Without a layout it is told by the first lines.
pub(super) fn collect_file<R: Input + Send + Sync>(
    file: R,
    layout: Option<Layout>,
    wanted: &Wanted,
    effort: &Effort,
    collector: &mut (impl Collect + Send),
    progress: &Progress,
) -> Result<Option<Damage>, HoldingsError> {
    let counted = Counted { file, progress };
    let blocks = Blocks::new(counted, effort.line_limit, effort.block_bytes)?;
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
    let Some(layout) = layout.or_else(|| Layout::told_by(block.text())) else {
        return Err(HoldingsError::Unreadable {
            line: 1,
            message: "expected lines of CDX or CDXJ: a key, a date, and columns or an object; --input says what else it is"
                .to_owned(),
        });
    };
    let scanner = Scanner {
        layout: &layout,
        wanted,
        line_limit: effort.line_limit,
    };
    let mut first = Scanned::default();
    scanner.scan(&block, &mut first)?;
    progress.add_lines(first.tally.lines);
    collector.collect(&mut first)?;
    scan_all(&blocks, &scanner, effort.threads, collector, progress)?;
    Ok(blocks.damage())
}

/// Whether the first line of a text has a CR in it, as a file of lines has that end in CR alone.
fn has_bare_returns(text: &[u8]) -> bool {
    let line = &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())];
    memchr::memchr(b'\r', line).is_some_and(|at| at + 1 < line.len())
}

/// Whether a text has the header that only maps have.
fn is_map(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n')
        .take_while(|line| line.first() == Some(&b'!'))
        .any(|line| line.starts_with(b"!fields "))
}

/// Scans all blocks that are left with many threads and collects what they come to.
fn scan_all<R: Input + Send + Sync, C: Collect + Send>(
    blocks: &Blocks<R>,
    scanner: &Scanner<'_>,
    threads: usize,
    collector: &mut C,
    progress: &Progress,
) -> Result<(), HoldingsError> {
    let scan = |block: &Block, found: &mut Scanned<C::Harvest>| {
        progress.go_on()?;
        scanner.scan(block, found)?;
        progress.add_lines(found.tally.lines);
        Ok(())
    };
    work_in_order(blocks, threads, scan, |found| collector.collect(found))
        .map_err(|error| at_line(error, collector.lines()))
}

/// Blocks count their lines from their own beginning. Where blocks before are still under way the number is too low, but
/// then it is the file that has to be split, and the message says at what.
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
struct Counted<'a, R> {
    file: R,
    progress: &'a Progress,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.progress.add_bytes(read);
        Ok(read)
    }
}

impl<R: Input> Input for Counted<'_, R> {
    fn length(&self) -> Option<u64> {
        self.file.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(buffer, offset)?;
        self.progress.add_bytes(read);
        Ok(read)
    }
}
