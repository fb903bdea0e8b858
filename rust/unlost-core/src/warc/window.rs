//! A window over the input: reads ahead as requested, and allows a limited way back.

use std::io::{ErrorKind, Read, Result};

/// Bytes per read: large enough to make system calls cheap, small enough to stay in the cache.
const STEP: usize = 1 << 18;

/// Bytes of the first read; each later one may be twice as long. A look-up of a single record needs far less than a
/// full scan.
const FIRST_STEP: usize = 1 << 14;

/// How far the window can be moved back after damage: many times the size of an ordinary record.
pub const MAX_STEP_BACK: u64 = 1 << 20;

/// Input with its offset. Memory is bounded by [`MAX_STEP_BACK`], a step, and the largest request.
pub struct Window<R> {
    source: R,
    /// The buffer; the part up to `filled` contains data.
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

    /// The offset of the next byte in the file.
    pub fn offset(&self) -> u64 {
        self.base + self.next as u64
    }

    /// The next bytes: at least `count`, unless the input ends before.
    pub fn peek(&mut self, count: usize) -> Result<&[u8]> {
        while self.filled - self.next < count && !self.ended {
            self.refill()?;
        }
        Ok(self.available())
    }

    /// The next bytes, as far as they were read.
    pub fn available(&self) -> &[u8] {
        &self.bytes[self.next..self.filled]
    }

    /// Whether the input ended because its compressed source is corrupt.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Skips available bytes.
    pub fn consume(&mut self, count: usize) {
        self.next += count;
    }

    /// Retains the input from this offset on, up to [`MAX_STEP_BACK`].
    pub fn retain_from(&mut self, offset: u64) {
        self.retained_from = offset;
    }

    /// Moves back to an offset, or as near to it as is retained.
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
        // The buffer is never cleared again: that would take as long as reading.
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
            // Only a decompressor that provides the input returns this error; bytes that it returned before are valid.
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
