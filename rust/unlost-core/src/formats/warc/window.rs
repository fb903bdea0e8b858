//! A stretch of the input in memory: read ahead as far as asked for, and a little way back.

use std::io::{ErrorKind, Read, Result};

/// Bytes per read: large enough that system calls do not show, small enough to stay in the cache.
const STEP: usize = 1 << 18;

/// Bytes of the first read; each one after it may be twice as long. Of a file in which a single record is looked for, far
/// less is wanted than of one that is read to its end.
const FIRST_STEP: usize = 1 << 14;

/// How far back the window can be put after damage: many times the size of an ordinary record.
pub const MAX_STEP_BACK: u64 = 1 << 20;

/// Input with its offset. Memory is bounded by [`MAX_STEP_BACK`], a step, and what is asked for at once.
pub struct Window<R> {
    source: R,
    /// Room for what is read, of which the part up to `filled` is.
    bytes: Vec<u8>,
    filled: usize,
    step: usize,
    next: usize,
    base: u64,
    retained_from: u64,
    ended: bool,
    is_broken: bool,
}

impl<R: Read> Window<R> {
    pub fn new(source: R, offset: u64) -> Self {
        Self {
            source,
            bytes: Vec::new(),
            filled: 0,
            step: FIRST_STEP,
            next: 0,
            base: offset,
            retained_from: offset,
            ended: false,
            is_broken: false,
        }
    }

    /// Where the next byte is, from the start of the file.
    pub fn offset(&self) -> u64 {
        self.base + self.next as u64
    }

    /// The bytes to come: at least `count`, unless the input ends before.
    pub fn peek(&mut self, count: usize) -> Result<&[u8]> {
        while self.filled - self.next < count && !self.ended {
            self.refill()?;
        }
        Ok(self.available())
    }

    /// The bytes to come, as far as they were read.
    pub fn available(&self) -> &[u8] {
        &self.bytes[self.next..self.filled]
    }

    /// Whether the input ended because what it is decompressed from is corrupt.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Step over bytes that were seen.
    pub fn consume(&mut self, count: usize) {
        self.next += count;
    }

    /// Keep what comes from this offset on, as far as [`MAX_STEP_BACK`] goes.
    pub fn retain_from(&mut self, offset: u64) {
        self.retained_from = offset;
    }

    /// Step back to an offset, or as near to it as is kept.
    pub fn step_back(&mut self, offset: u64) {
        let offset = offset.clamp(self.base, self.offset());
        self.next = usize::try_from(offset - self.base).unwrap_or(self.next);
    }

    fn refill(&mut self) -> Result<()> {
        let oldest = self
            .offset()
            .saturating_sub(MAX_STEP_BACK)
            .max(self.retained_from);
        let dead = usize::try_from(oldest.min(self.offset()) - self.base.min(oldest)).unwrap_or(0);
        if dead >= STEP || dead == self.filled {
            self.bytes.copy_within(dead..self.filled, 0);
            self.filled -= dead;
            self.next -= dead;
            self.base += dead as u64;
        }
        // What is there of the room is never cleared again: that would take as long as reading does.
        let end = self.filled + self.step;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.step = (2 * self.step).min(STEP);
        let read = loop {
            match self.source.read(&mut self.bytes[self.filled..end]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.filled += *read.as_ref().unwrap_or(&0);
        self.ended = match read {
            Ok(count) => count == 0,
            // No disk says this, only a decompressor that the input comes from: what came before it counts.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::InvalidInput | ErrorKind::InvalidData
                ) =>
            {
                self.is_broken = true;
                true
            }
            Err(error) => return Err(error),
        };
        Ok(())
    }
}
