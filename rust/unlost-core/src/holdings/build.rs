//! From indexes of any size, sorted or not, to counted keys in order.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::blocks::{BLOCK_BYTES, Block, Blocks};
use super::compact::{Shape, compact};
use super::scan::{Scanned, Scanner, Wanted};
use super::sorter::Sorter;
use super::tally::Tally;
use super::totals::Totals;
use super::with_totals::WithTotals;
use super::{Compaction, Count, Entry, Frequency, HoldingsError, MapReader, Progress, Table};
use crate::formats::{Damage, Layout, Source};
use crate::uri::{RuleSet, normal_key};

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
        }
    }

    /// Counts the rows of a file. Without a layout it is told by the first lines.
    pub fn add_file<R: Read + Send>(
        &mut self,
        file: R,
        layout: Option<Layout>,
        progress: &Progress,
    ) -> Result<(Tally, Option<Damage>), HoldingsError> {
        let source = Source::new(Counted { file, progress })?;
        let blocks = Blocks::new(source, self.effort.line_limit, self.effort.block_bytes);
        let mut tally = Tally::default();
        let mut block = Block::default();
        if !blocks.next(&mut block)? {
            return Ok((tally, blocks.damage()));
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
        let wanted = self.wanted.clone();
        let scanner = Scanner {
            layout: &layout,
            wanted: &wanted,
            line_limit: self.effort.line_limit,
        };
        let mut collector = Collector {
            builder: self,
            tally: &mut tally,
            last: Vec::new(),
        };
        let mut first = Scanned::default();
        scanner.scan(&block, &mut first)?;
        progress.add_lines(first.tally.lines);
        collector.collect(&mut first)?;
        scan_all(&blocks, &scanner, &mut collector, progress)?;
        Ok((tally, blocks.damage()))
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
        let mut out = Table::default();
        tally.lines += 1;
        scanner.row(row, tally, &mut out)?;
        for entry in out.iter() {
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
            if !write_normal_key(&entry, self.wanted.rules, &mut key) {
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

    /// What was counted, under its whole keys, and how the work goes on.
    pub(super) fn into_uris(self) -> (Sorter, Effort) {
        (self.sorter, self.effort)
    }

    /// Everything that was counted, each key once, in order.
    pub fn finish(self) -> Result<Counts, HoldingsError> {
        let (sorter, totals) = if self.wanted.queries {
            pages_of(self.sorter, &self.wanted, &self.effort)?
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

/// Whether a text has the header that only maps have.
fn is_map(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n')
        .take_while(|line| line.first() == Some(&b'!'))
        .any(|line| line.starts_with(b"!fields "))
}

/// Appends the key of a map's line with its further key fields, the wildcard kept. Says no if it is none.
fn write_normal_key(entry: &Entry<'_>, rules: RuleSet, out: &mut Vec<u8>) -> bool {
    let (surt, extra) = entry.surt_and_extra();
    let (node, wildcard) = match surt.strip_suffix(b"*") {
        Some(node) => (&node[..node.len() - 1], &surt[node.len() - 1..]),
        None => (surt, &b""[..]),
    };
    let is_host = memchr::memchr(b')', node).is_none();
    let with_end = [node, if is_host { b")/" } else { b"" }].concat();
    if normal_key(&with_end, rules, out).is_err() {
        return false;
    }
    if let Some(query) = memchr::memchr(b'?', out) {
        out.truncate(query);
    }
    if is_host {
        out.truncate(out.len() - 2);
    } else if !wildcard.is_empty() && out.ends_with(b")/") {
        out.pop();
    }
    out.extend_from_slice(wildcard);
    if !extra.is_empty() {
        out.push(b' ');
        out.extend_from_slice(extra);
    }
    true
}

/// Counts the URI-Rs of each page. Their keys are not neighbours: `/a`, `/a-b`, `/a/c`, `/a?q` are in order.
fn pages_of(
    uris: Sorter,
    wanted: &Wanted,
    effort: &Effort,
) -> Result<(Sorter, Totals), HoldingsError> {
    let fields = if wanted.by_year { 2 } else { 1 };
    let mut pages = Sorter::new(fields, effort.memory);
    let mut totals = Totals::default();
    let mut host = Table::default();
    let mut key = Vec::new();
    let mut sorted = uris.finish()?;
    while let Some(entry) = sorted.next_entry()? {
        let (surt, extra) = entry.surt_and_extra();
        key.clear();
        key.extend_from_slice(&surt[..memchr::memchr(b'?', surt).unwrap_or(surt.len())]);
        if !extra.is_empty() {
            key.push(b' ');
            key.extend_from_slice(extra);
        }
        let frequency = Frequency {
            mementos: entry.frequency.mementos,
            resources: Count::exactly(1),
        };
        let page = Entry::new(&key, frequency);
        totals.add_entry(&page)?;
        let host_end = memchr::memchr(b')', &key).unwrap_or(key.len());
        let goes_on = host
            .iter()
            .next()
            .is_some_and(|first| first.key.get(..=host_end) == key.get(..=host_end));
        if !goes_on || host.size() > effort.memory {
            host.sort()?;
            pages.push_sorted(&host)?;
            host.clear();
        }
        host.push(&page)?;
    }
    host.sort()?;
    pages.push_sorted(&host)?;
    Ok((pages, totals))
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
                self.sorter.write_to(&mut out)?;
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
}

impl Collector<'_> {
    fn collect(&mut self, scanned: &mut Scanned) -> Result<(), HoldingsError> {
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
        for entry in scanned.table.iter() {
            self.builder.totals.add_entry(&entry)?;
        }
        self.builder.sorter.push_sorted(&scanned.table)
    }
}

/// A block's number and what it came to.
type Found = Result<(u64, Scanned), HoldingsError>;

/// Scans all blocks with many threads and collects what they come to with this one.
fn scan_all<R: Read + Send>(
    blocks: &Blocks<R>,
    scanner: &Scanner<'_>,
    collector: &mut Collector<'_>,
    progress: &Progress,
) -> Result<(), HoldingsError> {
    let threads = collector.builder.effort.threads.max(1);
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
    collector: &mut Collector<'_>,
) -> Result<(), HoldingsError> {
    let mut waiting = BTreeMap::new();
    // The first block was scanned before.
    let mut next = 1;
    for result in results {
        let (index, scanned) = result.map_err(|error| at_line(error, collector.tally.lines))?;
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
