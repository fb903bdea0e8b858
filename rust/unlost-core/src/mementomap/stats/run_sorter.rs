//! Sorts any number of runs by key, and merges runs of the same key.

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::BufRead;

use super::rows::MONTHS;
use super::runs::{NO_MONTH, Runs};
use crate::mementomap::HoldingsError;
use crate::mementomap::merge_heads::{Keyed, SmallestFirst};
use crate::mementomap::spill_buffer::SpillBuffer;

/// The captures of one URI-R: their number, their years as bits, and the month of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CaptureSummary {
    pub(super) captures: u64,
    pub(super) years: u64,
    pub(super) first: u16,
}

impl CaptureSummary {
    fn add(&mut self, other: Self) {
        self.captures = self.captures.saturating_add(other.captures);
        self.years |= other.years;
        self.first = self.first.min(other.first);
    }
}

/// Sorts runs in memory, and beyond it in files.
pub(super) struct RunSorter {
    memory: usize,
    pending: Runs,
    sorted: Vec<SpillBuffer>,
}

impl RunSorter {
    pub(super) fn new(memory: usize) -> Self {
        Self {
            memory,
            pending: Runs::default(),
            sorted: Vec::new(),
        }
    }

    pub(super) fn push(
        &mut self,
        key: &[u8],
        summary: CaptureSummary,
    ) -> Result<(), HoldingsError> {
        self.pending
            .push(key, summary.captures, summary.years, summary.first);
        if self.pending.size() > self.memory {
            self.sort(0)?;
        }
        Ok(())
    }

    pub(super) fn append(&mut self, runs: &Runs) -> Result<(), HoldingsError> {
        self.pending.append(runs, 0..runs.len());
        if self.pending.size() > self.memory {
            self.sort(0)?;
        }
        Ok(())
    }

    /// Takes a line of [`write_run`]; returns whether it is valid.
    pub(super) fn push_line(&mut self, line: &[u8]) -> Result<bool, HoldingsError> {
        let Some((key, summary)) = read_run(line) else {
            return Ok(false);
        };
        self.push(key, summary)?;
        Ok(true)
    }

    /// Sorts the pending runs, in memory up to a limit.
    fn sort(&mut self, in_memory: usize) -> Result<(), HoldingsError> {
        let count = self.pending.merge_sorted(0..self.pending.len());
        let mut text = SpillBuffer::new(in_memory);
        for at in 0..count {
            let run = self.pending.get(at);
            let summary = CaptureSummary {
                captures: run.captures,
                years: run.years,
                first: run.first,
            };
            text.append(|text| write_run(self.pending.key(run), summary, text))?;
        }
        text.release_memory()?;
        self.pending.clear();
        self.sorted.push(text);
        Ok(())
    }

    /// Calls `emit` with every key once, in order.
    pub(super) fn for_each(
        mut self,
        mut emit: impl FnMut(&[u8], CaptureSummary) -> Result<(), HoldingsError>,
    ) -> Result<(), HoldingsError> {
        if self.pending.len() > 0 {
            self.sort(usize::MAX)?;
        }
        self.pending = Runs::default();
        let mut heads = BinaryHeap::with_capacity(self.sorted.len());
        for text in self.sorted {
            let mut head = Head::of(text.into_reader()?);
            if head.advance()? {
                heads.push(SmallestFirst(head));
            }
        }
        let mut key = Vec::new();
        let mut summary: Option<CaptureSummary> = None;
        while let Some(mut next) = heads.peek_mut() {
            match &mut summary {
                Some(summary) if next.0.key() == key => summary.add(next.0.summary),
                _ => {
                    if let Some(summary) = summary {
                        emit(&key, summary)?;
                    }
                    key.clear();
                    key.extend_from_slice(next.0.key());
                    summary = Some(next.0.summary);
                }
            }
            if !next.0.advance()? {
                PeekMut::pop(next);
            }
        }
        if let Some(summary) = summary {
            emit(&key, summary)?;
        }
        Ok(())
    }
}

/// The first line of sorted runs that was not taken yet.
struct Head {
    line: Vec<u8>,
    key_len: usize,
    summary: CaptureSummary,
    rest: Box<dyn BufRead + Send>,
}

impl Head {
    fn of(rest: Box<dyn BufRead + Send>) -> Self {
        Self {
            line: Vec::new(),
            key_len: 0,
            summary: CaptureSummary {
                captures: 0,
                years: 0,
                first: 0,
            },
            rest,
        }
    }

    /// Moves to the next line; returns whether there is one.
    fn advance(&mut self) -> Result<bool, HoldingsError> {
        self.line.clear();
        if self.rest.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(false);
        }
        // They are our own output.
        if let Some((key, summary)) = read_run(&self.line) {
            (self.key_len, self.summary) = (key.len(), summary);
        }
        Ok(true)
    }
}

impl Keyed for Head {
    fn key(&self) -> &[u8] {
        &self.line[..self.key_len]
    }
}

/// Writes a run as a line: its key, captures, years and first month.
pub(super) fn write_run(key: &[u8], summary: CaptureSummary, out: &mut Vec<u8>) {
    write_numbers(
        key,
        [summary.captures, summary.years, u64::from(summary.first)],
        out,
    );
}

/// Parses it. `None` for an invalid line, also for an invalid month.
fn read_run(line: &[u8]) -> Option<(&[u8], CaptureSummary)> {
    let (key, [captures, years, first]) = read_numbers(line)?;
    let first = u16::try_from(first).ok()?;
    let is_month = first == NO_MONTH || usize::from(first) < MONTHS;
    let summary = CaptureSummary {
        captures,
        years,
        first,
    };
    is_month.then_some((key, summary))
}

/// Writes a key and numbers as a line.
pub(super) fn write_numbers(key: &[u8], numbers: [u64; 3], out: &mut Vec<u8>) {
    out.extend_from_slice(key);
    for number in numbers {
        out.push(b' ');
        out.extend_from_slice(number.to_string().as_bytes());
    }
    out.push(b'\n');
}

/// Parses a key, which may be anything, and the three numbers after it.
pub(super) fn read_numbers(line: &[u8]) -> Option<(&[u8], [u64; 3])> {
    let mut rest = line.strip_suffix(b"\n").unwrap_or(line);
    let mut numbers = [0; 3];
    for number in numbers.iter_mut().rev() {
        let space = memchr::memrchr(b' ', rest)?;
        *number = std::str::from_utf8(&rest[space + 1..]).ok()?.parse().ok()?;
        rest = &rest[..space];
    }
    (!rest.is_empty()).then_some((rest, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_sorted_and_unique_with_any_memory_limit() {
        for memory in [0, 500, 1 << 20] {
            let mut sorter = RunSorter::new(memory);
            for number in (0..300_u16).rev().chain(0..150) {
                let key = format!("com,a)/{number:03} x");
                let summary = CaptureSummary {
                    captures: 2,
                    years: 1 << (number % 3),
                    first: number,
                };
                sorter.push(key.as_bytes(), summary).expect("disk");
            }
            assert!(sorter.push_line(b"com,a)/007 x 1 8 5\n").expect("disk"));
            for wrong in [
                &b"com,a)/ 1 2"[..],
                b"com,a)/ 1 2 70000",
                b"com,a)/ 1 2 768",
                b"com,a)/ 1 2 x",
                b" 1 2 3",
            ] {
                assert!(!sorter.push_line(wrong).expect("disk"));
            }
            let mut found = Vec::new();
            let mut text = Vec::new();
            sorter
                .for_each(|key, summary| {
                    found.push(summary);
                    write_run(key, summary, &mut text);
                    Ok(())
                })
                .expect("disk");
            assert_eq!(found.len(), 300);
            assert!(text.split(|&byte| byte == b'\n').take(300).is_sorted());
            assert_eq!(
                found.iter().map(|summary| summary.captures).sum::<u64>(),
                901
            );
            let seventh = CaptureSummary {
                captures: 5,
                years: 0b1010,
                first: 5,
            };
            assert_eq!(found[7], seventh);
        }
    }
}
