//! Converts entries from byte order to tree order.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::Scope;

use super::runs::Sorted;
use super::sorter::Sorter;
use super::tree_key::{common_len, is_tree_ordered, restore_key, tree_byte, write_tree_key};
use super::{Entry, HoldingsError, MapReader, Progress, Table};

/// A source of entries in byte order.
pub trait Entries {
    /// The next entry.
    fn next_entry(&mut self) -> Result<Option<Entry<'_>>, HoldingsError>;
}

impl Entries for MapReader {
    fn next_entry(&mut self) -> Result<Option<Entry<'_>>, HoldingsError> {
        Self::next_entry(self)
    }
}

impl Entries for Sorted {
    fn next_entry(&mut self) -> Result<Option<Entry<'_>>, HoldingsError> {
        Self::next_entry(self)
    }
}

/// Entries that follow those of the previous batch, in tree order after [`Batch::sort`].
#[derive(Default)]
pub(super) struct Batch {
    pub(super) table: Table,
    /// Hosts that are not in that order yet, and the lengths of their names.
    unsorted: Vec<(Range<usize>, usize)>,
}

impl Batch {
    pub(super) fn sort(&mut self) {
        self.table.write_tree_keys();
        for (host, common) in self.unsorted.drain(..) {
            self.table.sort_part(host, common);
        }
    }
}

/// The number of batches between two threads.
const BATCHES: usize = 4;

/// Entries in tree order, converted by another thread.
pub(super) struct Ordered {
    batches: Receiver<Result<Batch, HoldingsError>>,
    used: Sender<Batch>,
    batch: Batch,
    next: usize,
}

/// Converts entries to tree order in a background thread.
pub(super) fn order_in_thread<'scope, 'env, E: Entries + Send>(
    scope: &'scope Scope<'scope, 'env>,
    entries: &'env mut E,
    memory: usize,
    progress: &'env Progress,
) -> Ordered {
    let (send, batches) = sync_channel(BATCHES);
    let (give_back, used) = channel();
    scope.spawn(move || {
        let mut order = TreeOrder::new(memory, |batch: Batch| {
            send.send(Ok(batch)).map_err(|_| HoldingsError::Cancelled)?;
            Ok(used.try_recv().unwrap_or_default())
        });
        if let Err(error) = order.push_all(entries, progress) {
            drop(order);
            // If the receiver was dropped, its thread failed and reports the error.
            let _ = send.send(Err(error));
        }
    });
    Ordered {
        batches,
        used: give_back,
        batch: Batch::default(),
        next: 0,
    }
}

impl Ordered {
    /// Moves to the next entry; returns whether there is one.
    pub(super) fn advance(&mut self) -> Result<bool, HoldingsError> {
        while self.next == self.batch.table.len() {
            let Ok(batch) = self.batches.recv() else {
                return Ok(false);
            };
            let mut old = std::mem::replace(&mut self.batch, batch?);
            old.table.clear();
            // If the other thread has ended, the batch is not needed.
            let _ = self.used.send(old);
            self.batch.sort();
            self.next = 0;
        }
        self.next += 1;
        Ok(true)
    }

    /// The current entry.
    pub(super) fn entry(&self) -> Entry<'_> {
        self.batch.table.get(self.next - 1)
    }
}

/// A batch is sent when it takes this much memory and its last host has ended.
const BATCH_BYTES: usize = 256 << 10;

/// Converts entries to tree order. That differs from byte order only within hosts, so it is enough to sort some hosts
/// separately.
pub(super) struct TreeOrder<F> {
    memory: usize,
    batch: Batch,
    /// The length of the last key's host, with the `)`. 0 if there is none.
    host_len: usize,
    /// Where that host begins in the batch, and whether it came in tree order.
    host_start: usize,
    is_ordered: bool,
    /// A host that does not fit in memory, and its entries.
    overflow: Option<(Vec<u8>, Sorter)>,
    /// Takes a batch, and returns an empty one.
    emit: F,
}

impl<F: FnMut(Batch) -> Result<Batch, HoldingsError>> TreeOrder<F> {
    pub(super) fn new(memory: usize, emit: F) -> Self {
        Self {
            memory,
            batch: Batch::default(),
            host_len: 0,
            host_start: 0,
            is_ordered: true,
            overflow: None,
            emit,
        }
    }

    pub(super) fn push_all(
        &mut self,
        entries: &mut impl Entries,
        progress: &Progress,
    ) -> Result<(), HoldingsError> {
        let mut lines = 0_u64;
        while let Some(entry) = entries.next_entry()? {
            self.push(&entry)?;
            lines += 1;
            if lines % 4096 == 0 {
                progress.check_cancelled()?;
            }
        }
        self.end_host()?;
        self.emit_batch()
    }

    fn push(&mut self, entry: &Entry<'_>) -> Result<(), HoldingsError> {
        if let Some((host, files)) = &mut self.overflow {
            if !host.is_empty() && entry.key.starts_with(host) {
                let mut key = entry.key.to_vec();
                write_tree_key(&mut key);
                return files.push(&Entry {
                    key: &key,
                    ..*entry
                });
            }
        }
        let last = self.batch.table.last_key();
        let common = common_len(last, entry.key);
        if self.host_len > 0 && common >= self.host_len {
            let order = |key: &[u8]| key.get(common).copied().map(tree_byte);
            self.is_ordered &= order(last) < order(entry.key);
        } else {
            self.end_host()?;
            let (surt, _) = entry.surt_and_extra();
            self.host_len = memchr::memchr(b')', surt).map_or(0, |end| end + 1);
            let host = match self.host_len.checked_sub(1) {
                Some(end) => &surt[..end],
                None => surt.strip_suffix(b",*").unwrap_or(surt),
            };
            if surt != b"*" && !is_tree_ordered(host) {
                return Err(HoldingsError::Misplaced { key: surt.to_vec() });
            }
        }
        self.batch.table.append(entry);
        if self.batch.table.size() > self.memory * 3 {
            self.overflow(&entry.key[..self.host_len])?;
        }
        Ok(())
    }

    /// Moves the batch, which has become too large, to files.
    fn overflow(&mut self, host: &[u8]) -> Result<(), HoldingsError> {
        let mut files = Sorter::new(1, self.memory);
        let mut batch = std::mem::take(&mut self.batch);
        batch.table.write_tree_keys();
        for entry in batch.table.iter() {
            files.push(&entry)?;
        }
        self.overflow = Some((host.to_vec(), files));
        Ok(())
    }

    fn end_host(&mut self) -> Result<(), HoldingsError> {
        if let Some((_, files)) = self.overflow.take() {
            let mut sorted = files.finish()?;
            let mut key = Vec::new();
            while let Some(entry) = sorted.next_entry()? {
                key.clear();
                key.extend_from_slice(entry.key);
                restore_key(&mut key);
                self.batch.table.append(&Entry { key: &key, ..entry });
                if self.batch.table.size() > BATCH_BYTES {
                    self.emit_batch()?;
                }
            }
        } else if !self.is_ordered {
            let host = self.host_start..self.batch.table.len();
            self.batch.unsorted.push((host, self.host_len));
        }
        if self.batch.table.size() > BATCH_BYTES {
            self.emit_batch()?;
        }
        self.is_ordered = true;
        self.host_start = self.batch.table.len();
        Ok(())
    }

    fn emit_batch(&mut self) -> Result<(), HoldingsError> {
        let batch = std::mem::take(&mut self.batch);
        self.batch = (self.emit)(batch)?;
        Ok(())
    }
}
