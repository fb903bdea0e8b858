//! Collects key hashes in bounded memory: in any order; returned sorted and unique.

use std::fs::File;
use std::io::{BufRead, Read, Seek, SeekFrom, Write};
use std::thread;

use super::super::spill_buffer::SpillBuffer;
use super::super::{HoldingsError, Progress};

/// Hashes are partitioned by their first bits, so that only a thousandth of them is sorted at a time.
const BUCKET_BITS: u32 = 10;
const BUCKETS: usize = 1 << BUCKET_BITS;

/// Whether to retain a hash; called once for each.
pub(super) type HashPredicate<'a> = dyn Fn(u64) -> Result<bool, HoldingsError> + Sync + 'a;

/// Unsorted hashes.
#[derive(Debug)]
pub(super) struct Hashes {
    buffered: Vec<u64>,
    /// The maximum in memory; partitioning needs as much again.
    limit: usize,
    spilled: Option<Spilled>,
}

/// Hashes in an unnamed file: runs, each grouped by bucket.
#[derive(Debug)]
struct Spilled {
    file: File,
    /// Where a run begins, and where its buckets end in it, in bytes.
    runs: Vec<(u64, Vec<u64>)>,
    length: u64,
}

impl Hashes {
    /// Uses about `memory` bytes.
    pub(super) fn new(memory: usize) -> Self {
        Self {
            buffered: Vec::new(),
            limit: (memory / 2 / size_of::<u64>()).max(1),
            spilled: None,
        }
    }

    pub(super) fn append(&mut self, mut hashes: &[u64]) -> Result<(), HoldingsError> {
        while !hashes.is_empty() {
            let available = self.limit - self.buffered.len();
            let (now, later) = hashes.split_at(available.min(hashes.len()));
            self.buffered.extend_from_slice(now);
            hashes = later;
            if self.buffered.len() == self.limit {
                self.spill()?;
            }
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<(), HoldingsError> {
        let (hashes, ends) = partition_by_bucket(&self.buffered);
        self.buffered.clear();
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            None => self.spilled.insert(Spilled {
                file: tempfile::tempfile()?,
                runs: Vec::new(),
                length: 0,
            }),
        };
        let ends = ends.into_iter().map(|end| end as u64 * 8).collect();
        spilled.runs.push((spilled.length, ends));
        for some in hashes.chunks(1 << 14) {
            let bytes: Vec<u8> = some.iter().flat_map(|hash| hash.to_le_bytes()).collect();
            spilled.file.write_all(&bytes)?;
        }
        spilled.length += hashes.len() as u64 * 8;
        Ok(())
    }

    /// All retained hashes, sorted and unique.
    pub(super) fn finish(
        mut self,
        threads: usize,
        predicate: &HashPredicate<'_>,
        progress: &Progress,
    ) -> Result<SortedHashes, HoldingsError> {
        if self.spilled.is_some() && !self.buffered.is_empty() {
            self.spill()?;
        }
        match self.spilled {
            None => in_memory(&self.buffered, threads, predicate),
            Some(spilled) => spilled.finish(threads, predicate, progress),
        }
    }
}

/// Hashes stored as 8 bytes each, little-endian.
pub(super) fn hashes_in(bytes: &[u8]) -> Vec<u64> {
    let hash = |bytes: &[u8]| {
        bytes
            .iter()
            .rfold(0, |hash, &byte| hash << 8 | u64::from(byte))
    };
    bytes.chunks_exact(8).map(hash).collect()
}

/// Groups hashes by bucket; returns where each bucket ends.
fn partition_by_bucket(hashes: &[u64]) -> (Vec<u64>, Vec<usize>) {
    // Ten bits are left.
    let bucket = |hash: u64| usize::try_from(hash >> (64 - BUCKET_BITS)).unwrap_or(0);
    let mut ends = vec![0; BUCKETS];
    for &hash in hashes {
        ends[bucket(hash)] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        // Temporarily the start.
        sum += std::mem::replace(end, sum);
    }
    let mut apart = vec![0; hashes.len()];
    for &hash in hashes {
        let at = &mut ends[bucket(hash)];
        apart[*at] = hash;
        *at += 1;
    }
    (apart, ends)
}

/// Moves the retained hashes of a bucket to its beginning, sorted and unique; returns their number.
fn sort_bucket(bucket: &mut [u64], predicate: &HashPredicate<'_>) -> Result<usize, HoldingsError> {
    bucket.sort_unstable();
    let (mut retained, mut before) = (0, None);
    for at in 0..bucket.len() {
        let hash = bucket[at];
        if before.replace(hash) != Some(hash) && predicate(hash)? {
            bucket[retained] = hash;
            retained += 1;
        }
    }
    Ok(retained)
}

fn in_memory(
    hashes: &[u64],
    threads: usize,
    predicate: &HashPredicate<'_>,
) -> Result<SortedHashes, HoldingsError> {
    let (mut hashes, ends) = partition_by_bucket(hashes);
    let mut retained = Vec::with_capacity(BUCKETS);
    let share = BUCKETS.div_ceil(threads.max(1));
    thread::scope(|scope| {
        let (mut rest, mut start) = (hashes.as_mut_slice(), 0);
        let mut workers = Vec::new();
        for ends in ends.chunks(share) {
            let end = ends.last().copied().unwrap_or(start);
            let (mut part, tail_part) = std::mem::take(&mut rest).split_at_mut(end - start);
            rest = tail_part;
            let mut from = std::mem::replace(&mut start, end);
            workers.push(scope.spawn(move || {
                let mut retained = Vec::with_capacity(ends.len());
                for &end in ends {
                    let (bucket, tail_part) = std::mem::take(&mut part).split_at_mut(end - from);
                    retained.push((from, sort_bucket(bucket, predicate)?));
                    (part, from) = (tail_part, end);
                }
                Ok::<_, HoldingsError>(retained)
            }));
        }
        for worker in workers {
            retained.extend(joined(worker)?);
        }
        Ok::<(), HoldingsError>(())
    })?;
    let mut length = 0;
    for (start, count) in retained {
        hashes.copy_within(start..start + count, length);
        length += count;
    }
    hashes.truncate(length);
    Ok(SortedHashes {
        count: length as u64,
        storage: HashStorage::Memory { hashes, at: 0 },
    })
}

impl Spilled {
    fn finish(
        mut self,
        threads: usize,
        predicate: &HashPredicate<'_>,
        progress: &Progress,
    ) -> Result<SortedHashes, HoldingsError> {
        // The sorted buckets take at most as much again, in another file.
        let mut sorted = SpillBuffer::new(0);
        let mut count = 0;
        for first in (0..BUCKETS).step_by(threads.max(1)) {
            progress.check_cancelled()?;
            let last = (first + threads.max(1)).min(BUCKETS);
            let buckets = (first..last)
                .map(|bucket| self.read(bucket))
                .collect::<Result<Vec<_>, _>>()?;
            let tidied = thread::scope(|scope| {
                let start = |mut bucket: Vec<u64>| {
                    scope.spawn(move || {
                        let retained = sort_bucket(&mut bucket, predicate)?;
                        bucket.truncate(retained);
                        Ok(bucket)
                    })
                };
                let workers: Vec<_> = buckets.into_iter().map(start).collect();
                let tidied = workers.into_iter().map(joined);
                tidied.collect::<Result<Vec<Vec<u64>>, HoldingsError>>()
            })?;
            for hash in tidied.into_iter().flatten() {
                count += 1;
                sorted.append(|bytes| bytes.extend_from_slice(&hash.to_le_bytes()))?;
            }
        }
        let storage = HashStorage::File {
            reader: sorted.into_reader()?,
            next: None,
        };
        Ok(SortedHashes { count, storage })
    }

    /// The content of a bucket from all runs.
    fn read(&mut self, bucket: usize) -> Result<Vec<u64>, HoldingsError> {
        let mut bytes = Vec::new();
        for (start, ends) in &self.runs {
            let from = if bucket == 0 { 0 } else { ends[bucket - 1] };
            let length = ends[bucket] - from;
            if length > 0 {
                self.file.seek(SeekFrom::Start(start + from))?;
                (&mut self.file).take(length).read_to_end(&mut bytes)?;
            }
        }
        Ok(hashes_in(&bytes))
    }
}

/// The result of a thread. A panic in the thread is a bug, and is propagated.
pub(super) fn joined<T>(worker: thread::ScopedJoinHandle<'_, T>) -> T {
    match worker.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Sorted, unique hashes.
pub(super) struct SortedHashes {
    /// Their total number.
    pub(super) count: u64,
    storage: HashStorage,
}

enum HashStorage {
    Memory {
        hashes: Vec<u64>,
        at: usize,
    },
    File {
        reader: Box<dyn BufRead + Send>,
        next: Option<u64>,
    },
}

impl SortedHashes {
    /// The next hashes, up to `last`.
    pub(super) fn take(&mut self, last: u64) -> Result<Vec<u64>, HoldingsError> {
        match &mut self.storage {
            HashStorage::Memory { hashes, at } => {
                let start = *at;
                *at += hashes[start..].partition_point(|&hash| hash <= last);
                Ok(hashes[start..*at].to_vec())
            }
            HashStorage::File { reader, next } => {
                let mut found = Vec::new();
                loop {
                    let hash = match next.take() {
                        Some(hash) => hash,
                        None if reader.fill_buf()?.is_empty() => return Ok(found),
                        None => {
                            let mut bytes = [0; 8];
                            reader.read_exact(&mut bytes)?;
                            u64::from_le_bytes(bytes)
                        }
                    };
                    if hash > last {
                        *next = Some(hash);
                        return Ok(found);
                    }
                    found.push(hash);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash::xxh64;
    use super::*;

    #[test]
    fn hashes_are_returned_sorted_and_unique() {
        for count in [0, 1, 100, 5000] {
            let hashes: Vec<u64> = (0..count)
                .map(|i: u64| xxh64(&(i % 3000).to_le_bytes()))
                .chain([u64::MAX; 2].into_iter().take(usize::from(count > 1)))
                .collect();
            let row_filter = |hash: &u64| hash % 5 != 0;
            let mut expected: Vec<u64> = hashes.iter().copied().filter(row_filter).collect();
            expected.sort_unstable();
            expected.dedup();
            for memory in [0, 16 * 700, 1 << 20] {
                for threads in [1, 3] {
                    let mut all = Hashes::new(memory);
                    for some in hashes.chunks(999) {
                        all.append(some).expect("disk");
                    }
                    let predicate = |hash| Ok(row_filter(&hash));
                    let mut sorted = all
                        .finish(threads, &predicate, &Progress::default())
                        .expect("disk");
                    assert_eq!(sorted.count, expected.len() as u64);
                    let mut found = Vec::new();
                    for part in 0..4u64 {
                        found.extend(sorted.take((part << 62) | (u64::MAX >> 2)).expect("disk"));
                    }
                    assert_eq!(found, expected, "{memory} {threads}");
                }
            }
        }
    }
}
