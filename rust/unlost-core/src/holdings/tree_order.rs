//! From the order of bytes to that of the tree.

use super::order::write_tree_key;
use super::sorter::{Sorted, Sorter};
use super::{Entry, HoldingsError, MapReader, Progress, Table};

/// Something that gives entries in the order of their bytes.
pub trait Entries {
    /// The next of them.
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

/// Entries in the order of the tree, and behind those of the batch before.
pub(super) type Batch = Table;

/// A batch is given on when it takes so much memory and its last host has ended.
const BATCH_BYTES: usize = 256 << 10;

/// Puts entries into the order of the tree. That differs from the order of bytes only within hosts, so it is enough to
/// sort some hosts at a time.
pub(super) struct TreeOrder<F> {
    memory: usize,
    batch: Batch,
    /// The host of the last entry, with its `)`.
    host: Vec<u8>,
    key: Vec<u8>,
    /// A host that does not fit in memory.
    overflow: Option<Sorter>,
    /// Takes a batch, and returns an empty one.
    emit: F,
}

impl<F: FnMut(Batch) -> Result<Batch, HoldingsError>> TreeOrder<F> {
    pub(super) fn new(memory: usize, emit: F) -> Self {
        Self {
            memory,
            batch: Batch::default(),
            host: Vec::new(),
            key: Vec::new(),
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
                progress.go_on()?;
            }
        }
        self.end_host()?;
        self.emit_batch()
    }

    fn push(&mut self, entry: &Entry<'_>) -> Result<(), HoldingsError> {
        if !(entry.key.starts_with(&self.host) && self.host.ends_with(b")")) {
            self.end_host()?;
            let (surt, _) = entry.surt_and_extra();
            let end = memchr::memchr(b')', surt).map_or(0, |end| end + 1);
            self.host.clear();
            self.host.extend_from_slice(&surt[..end]);
        }
        self.key.clear();
        write_tree_key(entry.key, self.host.len(), &mut self.key);
        let entry = Entry {
            key: &self.key,
            ..*entry
        };
        if let Some(overflow) = &mut self.overflow {
            return overflow.push(&entry);
        }
        self.batch.push(&entry)?;
        if self.batch.size() > self.memory * 3 {
            let mut overflow = Sorter::new(1, self.memory);
            for entry in self.batch.iter() {
                overflow.push(&entry)?;
            }
            self.batch = Batch::default();
            self.overflow = Some(overflow);
        }
        Ok(())
    }

    fn end_host(&mut self) -> Result<(), HoldingsError> {
        if let Some(overflow) = self.overflow.take() {
            let mut sorted = overflow.finish()?;
            while let Some(entry) = sorted.next_entry()? {
                self.batch.push(&entry)?;
                if self.batch.size() > BATCH_BYTES {
                    self.emit_batch()?;
                }
            }
        }
        if self.batch.size() > BATCH_BYTES {
            self.emit_batch()?;
        }
        Ok(())
    }

    fn emit_batch(&mut self) -> Result<(), HoldingsError> {
        self.batch.sort()?;
        let batch = std::mem::take(&mut self.batch);
        self.batch = (self.emit)(batch)?;
        Ok(())
    }
}
