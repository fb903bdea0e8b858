//! Combines visits to pairs: each successful visit with the previous one to the same page, in bounded memory.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::mementomap::spill_buffer::SpillBuffer;

use super::history::{History, Pair, bit};
use super::hosts::{Hosts, authority};
use super::row::{ParseCache, ROW_BYTES, Row, flag};
use super::states::cell_of;
use super::visit::Visit;

/// Pages are distributed over this many partitions, one of which is in memory when pairs are made.
const PARTITIONS: usize = 64;
/// Bytes of a partition in memory before it spills to disk: 96 MiB for all partitions.
const PARTITION_BYTES: usize = 3 << 19;

/// Visit statistics. Every visit is counted in exactly one of the numbers up to `duplicate`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VisitStats {
    /// Successful, with a body digest.
    pub successful: u64,
    /// Status 304, without a body to compare.
    pub not_modified: u64,
    /// Another status, or no response.
    pub failed: u64,
    /// Successful, without a body digest: skipped.
    pub without_digest: u64,
    /// Not a web URL.
    pub without_host: u64,
    /// Of the successful ones: another at the same time to the same page, dropped.
    pub duplicate: u64,
    /// Of the successful ones: after a later one to the same page in the log.
    pub out_of_order: u64,
    /// Of the successful ones: with a tag.
    pub tagged: u64,
    /// Of the successful ones: with a date.
    pub dated: u64,
    /// Pages that were visited successfully.
    pub pages: u64,
}

impl VisitStats {
    /// Adds the counts that are made while visits are paired.
    fn add(&mut self, other: &Self) {
        self.duplicate += other.duplicate;
        self.out_of_order += other.out_of_order;
        self.pages += other.pages;
    }
}

/// Takes visits in any order.
#[derive(Debug)]
pub struct VisitPairer {
    partitions: Vec<SpillBuffer>,
    hosts: Hosts,
    visit_stats: VisitStats,
    order: u32,
    read: ParseCache,
}

impl Default for VisitPairer {
    fn default() -> Self {
        Self::new(PARTITION_BYTES)
    }
}

impl VisitPairer {
    /// With this much memory per partition.
    #[must_use]
    pub fn new(partition_bytes: usize) -> Self {
        Self {
            partitions: (0..PARTITIONS)
                .map(|_| SpillBuffer::new(partition_bytes))
                .collect(),
            hosts: Hosts::default(),
            visit_stats: VisitStats::default(),
            order: 0,
            read: ParseCache::default(),
        }
    }

    /// Takes one visit.
    pub fn add(&mut self, visit: &Visit<'_>) -> io::Result<()> {
        let prepared = PreparedVisit::of(visit, &mut self.read);
        self.take(&prepared)
    }

    /// Takes many visits, which are prepared by two threads if there are two processors.
    pub fn add_many<'a>(
        &mut self,
        count: usize,
        visit: impl Fn(usize) -> Visit<'a> + Sync,
    ) -> io::Result<()> {
        let prepared = |range: Range<usize>| -> Vec<PreparedVisit<'a>> {
            let mut read = ParseCache::default();
            range
                .map(|number| PreparedVisit::of(&visit(number), &mut read))
                .collect()
        };
        let middle = if threads() > 1 { count / 2 } else { count };
        let (first, second) = std::thread::scope(|scope| {
            let other = (middle < count).then(|| scope.spawn(|| prepared(middle..count)));
            let first = prepared(0..middle);
            (first, other.map(std::thread::ScopedJoinHandle::join))
        });
        let second = match second {
            None => Vec::new(),
            Some(Ok(second)) => second,
            Some(Err(_)) => return Err(io::Error::other("a thread ended")),
        };
        first
            .iter()
            .chain(&second)
            .try_for_each(|prepared| self.take(prepared))
    }

    fn take(&mut self, prepared: &PreparedVisit<'_>) -> io::Result<()> {
        let host = prepared
            .authority
            .and_then(|authority| self.hosts.number(authority));
        let Some(host) = host else {
            self.visit_stats.without_host += 1;
            return Ok(());
        };
        let mut row = match &prepared.kind {
            Kind::Row(row) => *row,
            Kind::NotModified => {
                self.visit_stats.not_modified += 1;
                return Ok(());
            }
            Kind::Failed => {
                self.visit_stats.failed += 1;
                return Ok(());
            }
            Kind::WithoutDigest => {
                self.visit_stats.without_digest += 1;
                return Ok(());
            }
        };
        (row.host, row.order) = (host, self.order);
        self.order = self.order.wrapping_add(1);
        self.visit_stats.successful += 1;
        self.visit_stats.tagged += u64::from(row.has(flag::ETAG));
        self.visit_stats.dated += u64::from(row.has(flag::DATE));
        let known = &mut self.hosts.all[host as usize];
        known.visits = known.visits.saturating_add(1);
        known.tagged = known.tagged.saturating_add(u32::from(row.has(flag::ETAG)));
        known.dated = known.dated.saturating_add(u32::from(row.has(flag::DATE)));
        if let Some(server) = prepared.server {
            self.hosts.note_server(host, server);
        }
        let partition = usize::try_from(row.page >> 58).unwrap_or_default();
        self.partitions[partition].append(|text| row.write(text))
    }

    /// Makes pairs, with one thread per processor, up to four.
    pub fn finish(mut self) -> io::Result<History> {
        // Allocated at once, a part for each partition: growing would temporarily need twice the memory.
        let count = |partition: &SpillBuffer| {
            usize::try_from(partition.len()).unwrap_or_default() / ROW_BYTES
        };
        let mut partitions = std::mem::take(&mut self.partitions);
        for partition in &mut partitions {
            partition.release_memory()?; // before pairs are allocated, so that both are not in memory at once
        }
        let counts: Vec<usize> = partitions.iter().map(count).collect();
        let mut pairs = vec![Pair::default(); counts.iter().sum()];
        let mut rest = pairs.as_mut_slice();
        let mut work = Vec::new();
        for (partition, &count) in partitions.into_iter().zip(&counts) {
            let (part, tail_part) = rest.split_at_mut(count);
            rest = tail_part;
            work.push((partition, part));
        }
        let work = Mutex::new(work.into_iter().enumerate());
        let done = Mutex::new(vec![0; counts.len()]);
        let visit_stats = Mutex::new(&mut self.visit_stats);
        let each = || -> io::Result<()> {
            let mut rows = Partition::default();
            loop {
                let Some((number, (partition, part))) = locked(&work).next() else {
                    return Ok(());
                };
                let mut paired = Paired::new(part);
                rows.read(partition)?;
                paired.pair(&rows);
                locked(&done)[number] = paired.count;
                locked(&visit_stats).add(&paired.visit_stats);
            }
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads()).map(|_| scope.spawn(each)).collect();
            let mine = each();
            others
                .into_iter()
                .map(|other| {
                    other
                        .join()
                        .unwrap_or_else(|_| Err(io::Error::other("a thread ended")))
                })
                .fold(mine, io::Result::and)
        })?;
        let done = done.into_inner().unwrap_or_default();
        let mut end = 0;
        let mut begin = 0;
        for (count, done) in counts.into_iter().zip(done) {
            pairs.copy_within(begin..begin + done, end);
            begin += count;
            end += done;
        }
        pairs.truncate(end);
        Ok(History::new(pairs, self.hosts, self.visit_stats))
    }
}

/// A visit with everything that can be computed without the others.
struct PreparedVisit<'a> {
    authority: Option<&'a [u8]>,
    server: Option<&'a [u8]>,
    kind: Kind,
}

/// The outcome of a visit.
enum Kind {
    Row(Row),
    NotModified,
    Failed,
    WithoutDigest,
}

impl<'a> PreparedVisit<'a> {
    fn of(visit: &Visit<'a>, read: &mut ParseCache) -> Self {
        let kind = match (visit.status, visit.digest) {
            (200..300, Some(digest)) => Kind::Row(Row::of(visit, digest, 0, 0, read)),
            (200..300, None) => Kind::WithoutDigest,
            (304, _) => Kind::NotModified,
            _ => Kind::Failed,
        };
        Self {
            authority: authority(visit.uri),
            server: visit.server,
            kind,
        }
    }
}

/// The number of threads: each holds the rows of one partition in memory.
pub(super) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get().min(4))
}

/// A poisoned lock is harmless: the failed thread has reported an error already.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rows of one partition, page by page.
#[derive(Default)]
struct Partition {
    bytes: Vec<u8>,
    /// The page of each row, then the row's number, as one sortable number. Rows are far larger.
    sort_keys: Vec<u128>,
}

impl Partition {
    fn read(&mut self, partition: SpillBuffer) -> io::Result<()> {
        self.bytes.clear();
        partition.into_reader()?.read_to_end(&mut self.bytes)?;
        self.sort_keys.clear();
        let rows = self.bytes.chunks_exact(ROW_BYTES).zip(0_u128..);
        self.sort_keys
            .extend(rows.map(|(row, number)| u128::from(Row::page_of(row)) << 64 | number));
        self.sort_keys.sort_unstable();
        Ok(())
    }

    fn row(&self, sort_key: u128) -> Row {
        let number = usize::try_from(sort_key & u128::from(u64::MAX)).unwrap_or_default();
        Row::read(&self.bytes[number * ROW_BYTES..][..ROW_BYTES])
    }
}

/// The pairs of one partition, and its statistics.
struct Paired<'a> {
    pairs: &'a mut [Pair],
    count: usize,
    visit_stats: VisitStats,
}

impl<'a> Paired<'a> {
    fn new(pairs: &'a mut [Pair]) -> Self {
        Self {
            pairs,
            count: 0,
            visit_stats: VisitStats::default(),
        }
    }

    fn pair(&mut self, partition: &Partition) {
        let mut rows = Vec::new();
        for page in partition
            .sort_keys
            .chunk_by(|one, other| one >> 64 == other >> 64)
        {
            rows.clear();
            rows.extend(page.iter().map(|&sort_key| partition.row(sort_key)));
            if !rows.is_sorted_by_key(|row: &Row| row.time) {
                rows.sort_by_key(|row| row.time); // stable: equal times stay in input order
            }
            self.pair_page(&rows);
        }
    }

    fn pair_page(&mut self, rows: &[Row]) {
        self.visit_stats.pages += 1;
        let mut last = &rows[0];
        let mut latest = last.order;
        for row in &rows[1..] {
            if row.time == last.time {
                self.visit_stats.duplicate += 1;
                continue;
            }
            if row.order < latest {
                self.visit_stats.out_of_order += 1;
            }
            latest = latest.max(row.order);
            self.pairs[self.count] = paired(last, row);
            self.count += 1;
            last = row;
        }
    }
}

fn paired(before: &Row, row: &Row) -> Pair {
    let mut bits = 0;
    if before.digest != row.digest {
        bits |= bit::CHANGED;
    }
    if before.has(flag::TEXT) && row.has(flag::TEXT) {
        bits |= bit::TEXT_KNOWN;
        if before.text != row.text {
            bits |= bit::TEXT_CHANGED;
        }
    }
    let seconds = |time: i64| u32::try_from(time.div_euclid(1000).max(0)).unwrap_or(u32::MAX);
    Pair {
        host: row.host,
        time: seconds(row.time),
        interval: seconds(row.time.saturating_sub(before.time)),
        weight: row.weight,
        bits: u16::try_from(cell_of(before, row)).unwrap_or_default() | bits,
    }
}
