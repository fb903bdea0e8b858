//! Builds filters from indexes of any size.

use std::fs::File;
use std::io::Write;
use std::thread;

use super::super::block_output::BlockOutput;
use super::super::build::BuildOptions;
use super::super::in_order_sink::process_file;
use super::super::row_filter::RowFilter;
use super::super::scan::Scanner;
use super::super::spill_buffer::SpillBuffer;
use super::super::{HoldingsError, LineStats, MapReader, Progress};
use super::dates::DateRange;
use super::file::Filter;
use super::fuse::Fuse;
use super::hash::xxh64;
use super::hashes::{Hashes, hashes_in, joined};
use super::header::{ENTRY_BYTES, Extent, Header, KeyKind, Partition};
use crate::index::Layout;
use crate::index::Row;
use crate::input::Damage;
use crate::input::Input;

/// The maximum average number of keys per partition. A partition of this size is built in a few megabytes, which fit a
/// processor's cache, and needs hardly more slots per key than a larger one.
const PARTITION_KEYS: u64 = 1 << 18;

/// Collects the keys of indexes, then writes a filter of them.
pub struct FilterBuilder {
    row_filter: RowFilter,
    build_options: BuildOptions,
    hashes: Hashes,
    dates: DateRange,
}

/// The hashes of a block's keys.
#[derive(Debug, Default)]
struct HashedKeys {
    hashes: Vec<u64>,
    dates: DateRange,
}

impl BlockOutput for HashedKeys {
    fn clear(&mut self) {
        self.hashes.clear();
        self.dates = DateRange::default();
    }

    fn push(&mut self, key: &[u8], _count: u64) -> Result<(), HoldingsError> {
        let hash = xxh64(key);
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
        Ok(())
    }

    fn on_date(&mut self, date: &[u8]) {
        self.dates.add(date);
    }
}

impl FilterBuilder {
    /// Creates a builder. The option `by_year` has no effect.
    #[must_use]
    pub fn new(row_filter: RowFilter, build_options: BuildOptions) -> Self {
        Self {
            hashes: Hashes::new(build_options.memory),
            row_filter: RowFilter {
                by_year: false,
                ..row_filter
            },
            build_options,
            dates: DateRange::default(),
        }
    }

    /// Takes the rows of a file. Without a layout it is detected from the first lines.
    pub fn add_file<R: Input + Send + Sync>(
        &mut self,
        file: R,
        layout: Option<Layout>,
        progress: &Progress,
    ) -> Result<(LineStats, Option<Damage>), HoldingsError> {
        let (row_filter, build_options) = (self.row_filter.clone(), self.build_options.clone());
        let take = |block_keys: &mut HashedKeys| {
            self.dates.append(&block_keys.dates);
            self.hashes.append(&block_keys.hashes)
        };
        process_file(file, layout, (&row_filter, &build_options), progress, take)
    }

    /// Takes a row that was parsed elsewhere.
    pub fn add_row(
        &mut self,
        row: &Row<'_>,
        line_stats: &mut LineStats,
    ) -> Result<(), HoldingsError> {
        let scanner = Scanner {
            layout: &Layout::Cdxj,
            row_filter: &self.row_filter,
            line_limit: self.build_options.line_limit,
        };
        let mut block_keys = HashedKeys::default();
        line_stats.lines += 1;
        scanner.row(row, line_stats, &mut block_keys)?;
        self.dates.append(&block_keys.dates);
        self.hashes.append(&block_keys.hashes)
    }

    /// Takes the normalized keys of a map that are held: exclusions are counted as filtered. A wildcard covers unknown
    /// pages, so it is an error.
    pub fn add_map(
        &mut self,
        reader: &mut MapReader,
        progress: &Progress,
    ) -> Result<(), HoldingsError> {
        let mut key = Vec::new();
        let mut filtered = 0;
        while let Some(entry) = reader.next_entry()? {
            if entry.key == b"*" {
                continue;
            }
            if !entry.frequency.is_held() {
                filtered += 1;
                continue;
            }
            if entry.key.ends_with(b"*") {
                return Err(HoldingsError::Wildcard {
                    key: entry.key.to_vec(),
                });
            }
            key.clear();
            if !entry.write_normal_key(self.row_filter.rules, &mut key) {
                // An invalid key is retained verbatim, since it may be looked up verbatim.
                key.extend_from_slice(entry.key);
            }
            self.hashes.append(&[xxh64(&key)])?;
            progress.check_cancelled()?;
        }
        reader.line_stats.counted -= filtered;
        reader.line_stats.filtered += filtered;
        Ok(())
    }

    /// Takes hashes that [`FilterBuilder::write_hashes`] of another builder wrote.
    pub fn add_hashes(&mut self, bytes: &[u8]) -> Result<(), HoldingsError> {
        self.hashes.append(&hashes_in(bytes))
    }

    /// Writes the sorted, unique hashes of all keys, 8 bytes each, little-endian. Returns their number, and the dates.
    pub fn write_hashes(
        self,
        out: &mut impl Write,
        progress: &Progress,
    ) -> Result<(u64, DateRange), HoldingsError> {
        let threads = self.build_options.threads.max(1);
        let mut hashes = self.hashes.finish(threads, &|_| Ok(true), progress)?;
        for some in 1..=STEPS {
            progress.check_cancelled()?;
            for hash in hashes.take(last_hash(some - 1, STEPS))? {
                out.write_all(&hash.to_le_bytes())?;
            }
        }
        Ok((hashes.count, self.dates))
    }

    /// Writes the filter. With a base, writes it unchanged, followed by a layer of the keys that it does not contain.
    ///
    /// Sets the kind and number of keys and the dates in the header. Returns the number of keys in the new layer, and
    /// the bytes written.
    pub fn write<B: AsRef<[u8]> + Sync>(
        self,
        header: Header,
        base: Option<&Filter<B>>,
        out: &mut File,
        progress: &Progress,
    ) -> Result<(u64, u64), HoldingsError> {
        let is_new = |hash| match base {
            None => Ok(true),
            // A false positive of the base stays one.
            Some(base) => Ok(!base.has(hash)?),
        };
        let threads = self.build_options.threads.max(1);
        let mut hashes = self.hashes.finish(threads, &is_new, progress)?;
        let partitions = partitions_of(hashes.count);
        let mut directory = Vec::new();
        let mut body = SpillBuffer::new(self.build_options.memory / 2);
        for first in (0..partitions).step_by(threads) {
            progress.check_cancelled()?;
            let last = partitions.min(first + threads as u64);
            let parts = (first..last)
                .map(|part| hashes.take(last_hash(part, partitions)))
                .collect::<Result<Vec<_>, _>>()?;
            let fuses: Vec<Fuse> = thread::scope(|scope| {
                let start = |part| scope.spawn(move || Fuse::of(part, header.bits));
                let workers: Vec<_> = parts.iter().map(Vec::as_slice).map(start).collect();
                workers.into_iter().map(joined).collect()
            });
            for (part, fuse) in parts.iter().zip(fuses) {
                write_entry(part, &fuse, &mut directory);
                body.write_all(&fuse.bytes)?;
            }
        }
        let header = Header {
            kind: if self.row_filter.queries {
                KeyKind::Urir
            } else {
                KeyKind::Hxpx
            },
            rules: self.row_filter.rules,
            keys: hashes.count,
            dates: self.dates,
            ..header
        };
        let head = filter_header(&header, &directory, body.len());
        let before = base.map_or(&b""[..], Filter::bytes);
        let written = (before.len() + head.len()) as u64 + body.len();
        out.write_all(before)?;
        out.write_all(&head)?;
        body.copy_to(out)?;
        out.flush()?;
        Ok((header.keys, written))
    }
}

/// The number of pieces in which hashes are written.
const STEPS: u64 = 256;

/// The number of partitions for this many keys: a power of two.
#[must_use]
pub fn partitions_of(keys: u64) -> u64 {
    keys.div_ceil(PARTITION_KEYS).max(1).next_power_of_two()
}

/// Appends a partition's directory entry.
fn write_entry(part: &[u64], fuse: &Fuse, directory: &mut Vec<u8>) {
    let partition = Partition {
        checksum: xxh64(&fuse.bytes),
        // A few hundred thousand.
        keys: u32::try_from(part.len()).unwrap_or(u32::MAX),
        seed: fuse.seed,
        shape: fuse.shape,
    };
    partition.write(directory);
}

/// Builds a range of a filter's partitions from all hashes that belong to them, in the format of
/// [`FilterBuilder::write_hashes`]. Returns their directory entries, and their bytes.
#[must_use]
pub fn make_partitions(
    hashes: &[u8],
    range: std::ops::Range<u64>,
    partitions: u64,
    bits: u8,
) -> (Vec<u8>, Vec<u8>) {
    let hashes = hashes_in(hashes);
    let (mut directory, mut body) = (Vec::new(), Vec::new());
    let mut rest = hashes.as_slice();
    for partition in range {
        let last = last_hash(partition, partitions);
        let (part, tail_part) = rest.split_at(rest.partition_point(|&hash| hash <= last));
        rest = tail_part;
        let fuse = Fuse::of(part, bits);
        write_entry(part, &fuse, &mut directory);
        body.extend_from_slice(&fuse.bytes);
    }
    (directory, body)
}

/// The data before the partitions of a layer with `bytes` bytes: its header, its directory and their checksum.
#[must_use]
pub fn filter_header(header: &Header, directory: &[u8], bytes: u64) -> Vec<u8> {
    let extent = Extent {
        partitions: directory.len() / ENTRY_BYTES,
        bytes,
    };
    let mut head = header.write(extent);
    head.extend_from_slice(directory);
    let checksum = xxh64(&head);
    head.extend_from_slice(&checksum.to_le_bytes());
    head
}

/// The largest hash of a partition: the first bits of a hash are the partition's number.
fn last_hash(partition: u64, partitions: u64) -> u64 {
    let shift = 64 - partitions.trailing_zeros();
    // The last or only partition has no upper bound.
    if partition + 1 == partitions {
        u64::MAX
    } else {
        ((partition + 1) << shift) - 1
    }
}
