//! Many threads that read blocks of one file, and one that takes what they find, in the order of the blocks.
//!
//! So maps and filters are made of the same rows.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::blocks::{Block, Blocks};
use super::build::Effort;
use super::harvest::Harvest;
use super::scan::{Scanned, Scanner, Wanted};
use super::{HoldingsError, Progress};
use crate::formats::{Damage, Layout, Source};

/// Takes what blocks came to, in the order of the blocks.
pub(super) trait Collect {
    /// What that is.
    type Harvest: Harvest;

    fn collect(&mut self, scanned: &mut Scanned<Self::Harvest>) -> Result<(), HoldingsError>;

    /// How many lines were collected.
    fn lines(&self) -> u64;
}

/// Collects the rows of a file. Without a layout it is told by the first lines.
pub(super) fn collect_file<R: Read + Send>(
    file: R,
    layout: Option<Layout>,
    wanted: &Wanted,
    effort: &Effort,
    collector: &mut impl Collect,
    progress: &Progress,
) -> Result<Option<Damage>, HoldingsError> {
    let source = Source::new(Counted { file, progress })?;
    let blocks = Blocks::new(source, effort.line_limit, effort.block_bytes);
    let mut block = Block::default();
    if !blocks.next(&mut block)? {
        return Ok(blocks.damage());
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

/// Whether a text has the header that only maps have.
fn is_map(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n')
        .take_while(|line| line.first() == Some(&b'!'))
        .any(|line| line.starts_with(b"!fields "))
}

/// A block's number and what it came to.
type Found<H> = Result<(u64, Scanned<H>), HoldingsError>;

/// Scans all blocks with many threads and collects what they come to with this one.
fn scan_all<R: Read + Send, C: Collect>(
    blocks: &Blocks<R>,
    scanner: &Scanner<'_>,
    threads: usize,
    collector: &mut C,
    progress: &Progress,
) -> Result<(), HoldingsError> {
    let threads = threads.max(1);
    let (give, free) = channel();
    // So many results are under way at most, however unevenly the threads work.
    for _ in 0..threads * 4 {
        // Cannot fail: the other end is in this function.
        let _ = give.send(Scanned::default());
    }
    let free = Mutex::new(free);
    let (send, results) = channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (free, send) = (&free, send.clone());
            scope.spawn(move || work(blocks, scanner, free, &send, progress));
        }
        drop(send);
        let result = collect_all(&results, &give, collector);
        // Without it, threads would wait for results to come back that nobody collects any more.
        drop(give);
        result
    })
}

fn work<R: Read + Send, H: Harvest>(
    blocks: &Blocks<R>,
    scanner: &Scanner<'_>,
    free: &Mutex<Receiver<Scanned<H>>>,
    send: &Sender<Found<H>>,
    progress: &Progress,
) {
    let mut block = Block::default();
    loop {
        let next = free.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut found) = next else {
            return;
        };
        let result = progress
            .go_on()
            .and_then(|()| Ok(blocks.next(&mut block)?))
            .and_then(|more| {
                if more {
                    scanner.scan(&block, &mut found)?;
                }
                Ok(more)
            });
        let message = match result {
            Ok(false) => return,
            Ok(true) => {
                progress.add_lines(found.tally.lines);
                Ok((block.index, found))
            }
            Err(error) => Err(error),
        };
        let failed = message.is_err();
        if send.send(message).is_err() || failed {
            return;
        }
    }
}

fn collect_all<C: Collect>(
    results: &Receiver<Found<C::Harvest>>,
    give: &Sender<Scanned<C::Harvest>>,
    collector: &mut C,
) -> Result<(), HoldingsError> {
    let mut waiting = BTreeMap::new();
    // The first block was scanned before.
    let mut next = 1;
    for result in results {
        let (index, scanned) = result.map_err(|error| at_line(error, collector.lines()))?;
        waiting.insert(index, scanned);
        while let Some(mut scanned) = waiting.remove(&next) {
            collector.collect(&mut scanned)?;
            next += 1;
            // If all threads have ended, nobody needs it.
            let _ = give.send(scanned);
        }
    }
    Ok(())
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
