//! Many threads that scan blocks of one file, and one that collects what they find.

use std::io::Read;

use super::scan::{Scanned, Scanner};
use super::{HoldingsError, Progress};
use crate::formats::{Blocks, work_in_order};

/// Takes what blocks came to, in the order of the blocks.
pub(super) trait Collect {
    fn collect(&mut self, scanned: &mut Scanned) -> Result<(), HoldingsError>;

    /// How many lines were collected.
    fn lines(&self) -> u64;
}

/// Scans all blocks that are left with many threads and collects what they come to with this one.
pub(super) fn scan_all<R: Read + Send>(
    blocks: &Blocks<R>,
    scanner: &Scanner<'_>,
    threads: usize,
    collector: &mut (impl Collect + Send),
    progress: &Progress,
) -> Result<(), HoldingsError> {
    let scan = |block: &_, found: &mut Scanned| {
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
