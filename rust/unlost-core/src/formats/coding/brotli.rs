//! Brotli, in steps.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::PIECE;
use super::unpacker::{Broken, CUT, DAMAGED, Take};

/// What is made in one step with damage is lost: so steps are small, but for the first, which tells whether it is Brotli
/// at all.
const FIRST: usize = 4096;
const STEP: usize = 256;

pub struct Brotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    has_begun: bool,
    is_over: bool,
    room: Vec<u8>,
}

impl Brotli {
    pub fn new() -> Self {
        let memory = StandardAlloc::default;
        Self {
            // Without the windows of a gigabyte that are no part of the standard.
            state: BrotliState::new_strict(memory(), memory(), memory()),
            has_begun: false,
            is_over: false,
            room: vec![0; PIECE],
        }
    }

    pub fn feed(&mut self, data: &[u8], take: &mut Take) -> Result<(), Broken> {
        let mut left = data;
        while !left.is_empty() && !self.is_over {
            let size = if self.has_begun { STEP } else { FIRST };
            let (step, rest) = left.split_at(left.len().min(size));
            self.has_begun = true;
            left = rest;
            if !self.step(step, take)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// False if no more is wanted.
    fn step(&mut self, data: &[u8], take: &mut Take) -> Result<bool, Broken> {
        let (mut available, mut offset, mut total) = (data.len(), 0, 0);
        loop {
            let (mut room, mut written) = (self.room.len(), 0);
            let result = BrotliDecompressStream(
                &mut available,
                &mut offset,
                data,
                &mut room,
                &mut written,
                &mut self.room,
                &mut total,
                &mut self.state,
            );
            // What comes behind its end together with it is not Brotli, so nor was the rest.
            let is_over = matches!(result, BrotliResult::ResultSuccess);
            if matches!(result, BrotliResult::ResultFailure) || (is_over && available > 0) {
                return Err(DAMAGED);
            }
            if written > 0 && !take(&self.room[..written]) {
                return Ok(false);
            }
            if is_over {
                self.is_over = true;
                return Ok(true);
            }
            if matches!(result, BrotliResult::NeedsMoreInput) {
                return Ok(true);
            }
        }
    }

    pub fn end(&self) -> Result<(), Broken> {
        if self.is_over { Ok(()) } else { Err(CUT) }
    }
}
