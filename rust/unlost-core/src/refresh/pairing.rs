//! From visits to pairs: each successful visit with the one before it to the same page, in bounded memory.

use std::io;

use crate::holdings::spool::Spool;

use super::history::{History, Pair, bit};
use super::hosts::Hosts;
use super::row::{ROW_BYTES, Row, flag};
use super::states::cell_of;
use super::visit::Visit;

/// Pages are dealt out to so many heaps, of which one at a time is in memory when pairs are made.
const HEAPS: usize = 64;
/// Bytes of a heap that stay in memory before it goes to the disk: with all heaps, 96 MiB.
const HEAP_BYTES: usize = 3 << 19;

/// What became of the visits of a log. Every one of them is in exactly one of the numbers up to `duplicate`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Successful, with the digest of a body.
    pub successful: u64,
    /// Answered with 304, which has no body to compare.
    pub not_modified: u64,
    /// Answered with another status, or not at all.
    pub failed: u64,
    /// Successful, but nobody knows the body: skipped.
    pub without_digest: u64,
    /// At an address that is none of the web.
    pub without_host: u64,
    /// Of the successful ones: another at the same moment to the same page, left out.
    pub duplicate: u64,
    /// Of the successful ones: stood in the log behind a later one to the same page.
    pub out_of_order: u64,
    /// Of the successful ones: with a tag, with a date.
    pub tagged: u64,
    /// See there.
    pub dated: u64,
    /// Pages that were visited successfully.
    pub pages: u64,
}

/// Takes visits in any order.
#[derive(Debug)]
pub struct Pairing {
    heaps: Vec<Spool>,
    hosts: Hosts,
    tally: Tally,
    order: u32,
}

impl Default for Pairing {
    fn default() -> Self {
        Self::new(HEAP_BYTES)
    }
}

impl Pairing {
    /// Keeps so many bytes of each heap in memory.
    #[must_use]
    pub fn new(heap_bytes: usize) -> Self {
        Self {
            heaps: (0..HEAPS).map(|_| Spool::new(heap_bytes)).collect(),
            hosts: Hosts::default(),
            tally: Tally::default(),
            order: 0,
        }
    }

    /// Takes one visit.
    pub fn add(&mut self, visit: &Visit<'_>) -> io::Result<()> {
        let Some(host) = self.hosts.number(visit.uri) else {
            self.tally.without_host += 1;
            return Ok(());
        };
        if !(200..300).contains(&visit.status) {
            let is_304 = visit.status == 304;
            *(if is_304 {
                &mut self.tally.not_modified
            } else {
                &mut self.tally.failed
            }) += 1;
            return Ok(());
        }
        let Some(digest) = visit.digest else {
            self.tally.without_digest += 1;
            return Ok(());
        };
        let row = Row::of(visit, digest, host, self.order);
        self.order = self.order.wrapping_add(1);
        self.tally.successful += 1;
        self.tally.tagged += u64::from(row.has(flag::ETAG));
        self.tally.dated += u64::from(row.has(flag::DATE));
        let known = &mut self.hosts.all[host as usize];
        known.visits = known.visits.saturating_add(1);
        known.tagged = known.tagged.saturating_add(u32::from(row.has(flag::ETAG)));
        known.dated = known.dated.saturating_add(u32::from(row.has(flag::DATE)));
        if let Some(server) = visit.server {
            self.hosts.note_server(host, server);
        }
        let heap = usize::try_from(row.page >> 58).unwrap_or_default();
        self.heaps[heap].append(|text| row.write(text))
    }

    /// Pairs them.
    pub fn finish(mut self) -> io::Result<History> {
        // At once: growing would need twice the room in between.
        let mut pairs =
            Vec::with_capacity(usize::try_from(self.tally.successful).unwrap_or_default());
        let mut rows = Vec::new();
        for heap in std::mem::take(&mut self.heaps) {
            rows.clear();
            let mut reader = heap.into_reader()?;
            let mut bytes = [0; ROW_BYTES];
            while !reader.fill_buf()?.is_empty() {
                reader.read_exact(&mut bytes)?;
                rows.push(Row::read(&bytes));
            }
            rows.sort_unstable_by_key(|row| (row.page, row.time, row.order));
            self.pair(&rows, &mut pairs);
        }
        Ok(History::new(pairs, self.hosts, self.tally))
    }

    fn pair(&mut self, rows: &[Row], pairs: &mut Vec<Pair>) {
        let mut last: Option<&Row> = None;
        let mut latest = 0;
        for row in rows {
            let Some(before) = last.filter(|before| before.page == row.page) else {
                self.tally.pages += 1;
                (last, latest) = (Some(row), row.order);
                continue;
            };
            if row.time == before.time {
                self.tally.duplicate += 1;
                continue;
            }
            if row.order < latest {
                self.tally.out_of_order += 1;
            }
            latest = latest.max(row.order);
            pairs.push(paired(before, row));
            last = Some(row);
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
        cell: u16::try_from(cell_of(before, row)).unwrap_or_default(),
        bits,
    }
}
