//! Incremental Brotli decoder.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::BLOCK_BYTES;
use super::decoder::{ByteSink, DAMAGED, DecodeError, TRUNCATED};

/// Output of a step that ends in an error is lost, so steps are small. The first step is larger: it decides whether the
/// data is Brotli at all.
const FIRST_STEP: usize = 4096;
const STEP: usize = 256;

pub struct Brotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    has_begun: bool,
    is_over: bool,
    buffer: Vec<u8>,
}

impl Brotli {
    pub fn new() -> Self {
        let memory = StandardAlloc::default;
        Self {
            // Rejects large windows (up to 1 GiB), which are not part of RFC 7932.
            state: BrotliState::new_strict(memory(), memory(), memory()),
            has_begun: false,
            is_over: false,
            buffer: vec![0; BLOCK_BYTES],
        }
    }

    pub fn feed(&mut self, data: &[u8], take: &mut ByteSink) -> Result<(), DecodeError> {
        let mut left = data;
        while !left.is_empty() && !self.is_over {
            let size = if self.has_begun { STEP } else { FIRST_STEP };
            let (step, rest) = left.split_at(left.len().min(size));
            self.has_begun = true;
            left = rest;
            if !self.step(step, take)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns false if no more output is needed.
    fn step(&mut self, data: &[u8], take: &mut ByteSink) -> Result<bool, DecodeError> {
        let (mut available, mut offset, mut total) = (data.len(), 0, 0);
        loop {
            let (mut buffer, mut written) = (self.buffer.len(), 0);
            let result = BrotliDecompressStream(
                &mut available,
                &mut offset,
                data,
                &mut buffer,
                &mut written,
                &mut self.buffer,
                &mut total,
                &mut self.state,
            );
            // Bytes after the end of the stream in the same step are not Brotli, so the data before them was not
            // either.
            let is_over = matches!(result, BrotliResult::ResultSuccess);
            if matches!(result, BrotliResult::ResultFailure) || (is_over && available > 0) {
                return Err(DAMAGED);
            }
            if written > 0 && !take(&self.buffer[..written]) {
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

    pub fn end(&self) -> Result<(), DecodeError> {
        if self.is_over { Ok(()) } else { Err(TRUNCATED) }
    }
}
