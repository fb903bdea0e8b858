//! Map entries in one allocation.

use std::cmp::Ordering;
use std::ops::Range;

use super::tree_key::write_tree_key;
use super::{Entry, Frequency, HoldingsError};

/// Entries in insertion order, until they are sorted.
#[derive(Debug, Default)]
pub struct Table {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    /// Whether a key was added after a larger one, and whether that was of another host.
    is_unsorted: bool,
    has_unsorted_hosts: bool,
    has_tails: bool,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    start: usize,
    key_len: u32,
    tail_len: u32,
    frequency: Frequency,
}

impl Slot {
    fn key<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start..self.start + self.key_len as usize]
    }
}

impl Table {
    /// Appends an entry; merges it with the last one if they have the same key.
    pub fn push(&mut self, entry: &Entry<'_>) -> Result<(), HoldingsError> {
        if let Some(last) = self.slots.last_mut() {
            match last.key(&self.bytes).cmp(entry.key) {
                Ordering::Less => {}
                Ordering::Equal => return merge_into(last, entry, &self.bytes),
                Ordering::Greater => {
                    self.is_unsorted = true;
                    self.has_unsorted_hosts |= host(last.key(&self.bytes)) != host(entry.key);
                }
            }
        }
        self.append(entry);
        Ok(())
    }

    /// Appends an entry with a new key, in any order.
    pub(super) fn append(&mut self, entry: &Entry<'_>) {
        // Lines are at most a few megabytes long.
        let length = |part: &[u8]| u32::try_from(part.len()).unwrap_or(u32::MAX);
        let slot = Slot {
            start: self.bytes.len(),
            key_len: length(entry.key),
            tail_len: length(entry.tail),
            frequency: entry.frequency,
        };
        self.bytes.extend_from_slice(entry.key);
        self.bytes.extend_from_slice(entry.tail);
        self.has_tails |= !entry.tail.is_empty();
        self.slots.push(slot);
    }

    /// The key of the last entry; empty if there is none.
    pub(super) fn last_key(&self) -> &[u8] {
        self.slots.last().map_or(&[], |last| last.key(&self.bytes))
    }

    /// Converts all keys to tree order.
    pub(super) fn write_tree_keys(&mut self) {
        if !self.has_tails {
            // Converting all at once is many times as fast.
            return write_tree_key(&mut self.bytes);
        }
        for slot in &self.slots {
            write_tree_key(&mut self.bytes[slot.start..slot.start + slot.key_len as usize]);
        }
    }

    /// Sorts some of the entries, whose keys are different and have the same first `common` bytes.
    pub(super) fn sort_part(&mut self, part: Range<usize>, common: usize) {
        let bytes = &self.bytes;
        self.slots[part].sort_by(|a, b| a.key(bytes)[common..].cmp(&b.key(bytes)[common..]));
    }

    /// Whether the keys are in byte order.
    pub(super) fn is_sorted(&self) -> bool {
        !self.is_unsorted
    }

    /// Memory use in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len() + self.slots.len() * size_of::<Slot>()
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Drops all entries and retains the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
        self.has_unsorted_hosts = false;
        self.is_unsorted = false;
        self.has_tails = false;
    }

    /// The entry at a position.
    #[must_use]
    pub fn get(&self, index: usize) -> Entry<'_> {
        let slot = self.slots[index];
        let tail = slot.start + slot.key_len as usize;
        Entry {
            key: slot.key(&self.bytes),
            frequency: slot.frequency,
            tail: &self.bytes[tail..tail + slot.tail_len as usize],
        }
    }

    /// The entries in order.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Entry<'_>> + ExactSizeIterator {
        (0..self.slots.len()).map(|index| self.get(index))
    }

    /// The entries of a sorted table without those of its first and last host, which may continue elsewhere.
    pub(super) fn inner_hosts(&self) -> Range<usize> {
        let (Some(first), Some(last)) = (self.slots.first(), self.slots.last()) else {
            return 0..0;
        };
        let is_of =
            |slot: &Slot, other: &Slot| host(slot.key(&self.bytes)) == host(other.key(&self.bytes));
        let start = self.slots.partition_point(|slot| is_of(slot, first));
        let end = self.slots.partition_point(|slot| !is_of(slot, last));
        start..end.max(start)
    }

    /// The number of leading entries of a sorted table that are not after a key.
    pub(super) fn late_keys(&self, count: usize, key: &[u8]) -> usize {
        self.slots[..count].partition_point(|slot| slot.key(&self.bytes) <= key)
    }

    /// Sorts the entries and merges equal keys. Linear if they are already sorted. Returns whether their hosts came in
    /// order.
    pub(super) fn sort(&mut self) -> Result<bool, HoldingsError> {
        if self.is_sorted() {
            return Ok(true);
        }
        self.is_unsorted = false;
        let bytes = &self.bytes;
        let compare = |a: &Slot, b: &Slot| a.key(bytes).cmp(b.key(bytes));
        let has_unsorted_hosts = std::mem::take(&mut self.has_unsorted_hosts);
        if has_unsorted_hosts {
            self.slots.sort_by(compare);
        } else {
            // Sorting each host is faster than sorting all entries together, and most hosts are in order.
            let same_host = |a: &Slot, b: &Slot| {
                let host = host(a.key(bytes));
                b.key(bytes).get(..=host.len()) == a.key(bytes).get(..=host.len())
            };
            for part in self.slots.chunk_by_mut(same_host) {
                part.sort_by(compare);
            }
        }
        let mut failure = Ok(());
        let mut last = 0;
        for next in 1..self.slots.len() {
            let slot = self.slots[next];
            if slot.key(bytes) == self.slots[last].key(bytes) {
                let tail = slot.start + slot.key_len as usize;
                let entry = Entry {
                    key: slot.key(bytes),
                    frequency: slot.frequency,
                    tail: &bytes[tail..tail + slot.tail_len as usize],
                };
                failure = failure.and(merge_into(&mut self.slots[last], &entry, bytes));
            } else {
                last += 1;
                self.slots[last] = slot;
            }
        }
        self.slots.truncate(last + 1);
        failure.map(|()| !has_unsorted_hosts)
    }
}

/// A key's host, by which entries are grouped.
pub(super) fn host(key: &[u8]) -> &[u8] {
    &key[..memchr::memchr(b')', key).unwrap_or(key.len())]
}

/// Adds an entry to the one of the same key. A tail stays only if both have it: a statement about one of them does not
/// hold for both.
fn merge_into(slot: &mut Slot, entry: &Entry<'_>, bytes: &[u8]) -> Result<(), HoldingsError> {
    let overflow = || HoldingsError::Overflow {
        key: slot.key(bytes).to_vec(),
    };
    let sum = slot.frequency.plus(entry.frequency).ok_or_else(overflow)?;
    let tail = slot.start + slot.key_len as usize;
    if &bytes[tail..tail + slot.tail_len as usize] != entry.tail {
        slot.tail_len = 0;
    }
    slot.frequency = sum;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(lines: &[&str]) -> Table {
        let mut table = Table::default();
        for line in lines {
            let (entry, _) = Entry::read(line.as_bytes(), 1).expect(line);
            table.push(&entry).expect("small");
        }
        table
    }

    fn lines(table: &Table) -> Vec<String> {
        let line = |entry: Entry<'_>| {
            let mut out = Vec::new();
            entry.write(&mut out);
            String::from_utf8(out).expect("ascii").trim_end().to_owned()
        };
        table.iter().map(line).collect()
    }

    #[test]
    fn equal_keys_are_merged() {
        let mut table = table(&["b 1", "b 2", "a 1 {x}", "b 1+", "a 2 {x}", "c 1 {x}", "c 1"]);
        table.sort().expect("small");
        assert_eq!(lines(&table), ["a 3 {x}", "b 4+", "c 2"]);
        table.sort().expect("small");
        assert_eq!(lines(&table), ["a 3 {x}", "b 4+", "c 2"]);
    }

    #[test]
    fn overflowing_sum_is_an_error() {
        let mut table = table(&["a 999999999999999999", "b 1", "a 1"]);
        let error = table.sort().expect_err("too much");
        assert!(error.to_string().contains("under a"), "{error}");
    }
}
