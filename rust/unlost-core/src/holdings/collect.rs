//! Many threads that read blocks of one file, and one that takes what they find, in the order of the blocks.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::blocks::{Block, Blocks};
use super::scan::{Scanned, Scanner};
use super::{HoldingsError, Progress};

/// Takes what blocks came to, in the order of the blocks.
pub(super) trait Collect {
    fn collect(&mut self, scanned: &mut Scanned) -> Result<(), HoldingsError>;

    /// How many lines were collected.
    fn lines(&self) -> u64;
}

/// A block's number and what it came to.
type Found = Result<(u64, Scanned), HoldingsError>;

/// Scans all blocks with many threads and collects what they come to with this one.
pub(super) fn scan_all<R: Read + Send>(
    blocks: &Blocks<R>,
    scanner: &Scanner<'_>,
    threads: usize,
    collector: &mut impl Collect,
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

fn work<R: Read + Send>(
    blocks: &Blocks<R>,
    scanner: &Scanner<'_>,
    free: &Mutex<Receiver<Scanned>>,
    send: &Sender<Found>,
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

fn collect_all(
    results: &Receiver<Found>,
    give: &Sender<Scanned>,
    collector: &mut impl Collect,
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
