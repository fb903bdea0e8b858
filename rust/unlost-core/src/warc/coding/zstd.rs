//! Zstandard: consecutive frames, some of them skippable, with NULs between them.

use zstd::stream::raw::{DParameter, Decoder, Operation};

use super::BLOCK_BYTES;
use super::decoder::{ByteSink, DAMAGED, DecodeError};
use crate::warc::zstd::{MAGIC, skippable};

/// The maximum window: 128 MiB, the largest that the `zstd` command decompresses without `--long`.
const WINDOW_LOG: u32 = 27;

enum Position {
    /// Before a frame; the bytes of its header so far.
    Between(Vec<u8>),
    /// Within a frame.
    Frame,
    /// Within a skippable frame; the bytes left of it.
    Skipped(u64),
}

pub struct Zstd {
    state: Decoder<'static>,
    position: Position,
    buffer: Vec<u8>,
}

impl Zstd {
    /// None if a frame cannot begin like this.
    pub fn of(head: &[u8]) -> Option<Self> {
        let is_frame =
            head.starts_with(&MAGIC) || matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
        let mut state = Decoder::new().ok().filter(|_| is_frame)?;
        state
            .set_parameter(DParameter::WindowLogMax(WINDOW_LOG))
            .ok()?;
        Some(Self {
            state,
            position: Position::Between(Vec::new()),
            buffer: vec![0; BLOCK_BYTES],
        })
    }

    pub fn feed(&mut self, data: &[u8], take: &mut ByteSink) -> Result<(), DecodeError> {
        let mut left = data;
        while !left.is_empty() {
            left = match &mut self.position {
                Position::Between(_) => self.begin(left)?,
                Position::Skipped(count) => {
                    let passed = left
                        .len()
                        .min(usize::try_from(*count).unwrap_or(usize::MAX));
                    *count -= passed as u64;
                    if *count == 0 {
                        self.position = Position::Between(Vec::new());
                    }
                    &left[passed..]
                }
                Position::Frame => match self.unpack(left, take)? {
                    Some(rest) => rest,
                    None => return Ok(()),
                },
            };
        }
        Ok(())
    }

    /// Searches for a frame byte by byte: its magic number may be split across two inputs.
    fn begin<'a>(&mut self, data: &'a [u8]) -> Result<&'a [u8], DecodeError> {
        let Position::Between(seen) = &mut self.position else {
            return Ok(data);
        };
        for (at, &byte) in data.iter().enumerate() {
            if seen.is_empty() && byte == 0 {
                continue;
            }
            seen.push(byte);
            if seen.starts_with(&MAGIC) {
                self.state.reinit().map_err(|_| DAMAGED)?;
                self.state
                    .run_on_buffers(&MAGIC, &mut self.buffer)
                    .map_err(|_| DAMAGED)?;
                self.position = Position::Frame;
                return Ok(&data[at + 1..]);
            }
            if let Some((_, count)) = skippable(seen) {
                self.position = if count == 0 {
                    Position::Between(Vec::new())
                } else {
                    Position::Skipped(count)
                };
                return Ok(&data[at + 1..]);
            }
            if seen.len() >= 8 || !may_begin(seen) {
                return Err(DAMAGED);
            }
        }
        Ok(&[])
    }

    /// The input after the frame; None if no more output is needed.
    fn unpack<'a>(
        &mut self,
        data: &'a [u8],
        take: &mut ByteSink,
    ) -> Result<Option<&'a [u8]>, DecodeError> {
        let mut left = data;
        loop {
            let done = self
                .state
                .run_on_buffers(left, &mut self.buffer)
                .map_err(|_| DAMAGED)?;
            left = &left[done.bytes_read..];
            if done.bytes_written > 0 && !take(&self.buffer[..done.bytes_written]) {
                return Ok(None);
            }
            if done.remaining == 0 {
                self.position = Position::Between(Vec::new());
                return Ok(Some(left));
            }
            if left.is_empty() && done.bytes_written < self.buffer.len() {
                return Ok(Some(left));
            }
            if done.bytes_read == 0 && done.bytes_written == 0 {
                return Err(DAMAGED);
            }
        }
    }

    pub fn end(&self) -> Result<(), DecodeError> {
        match &self.position {
            Position::Between(seen) if seen.is_empty() => Ok(()),
            _ => Err(DAMAGED),
        }
    }
}

/// Whether a frame, or a skippable one, may begin like this.
fn may_begin(seen: &[u8]) -> bool {
    let known = seen.len().min(4);
    seen[..known] == MAGIC[..known]
        || (matches!(seen[0], 0x50..=0x5f) && seen[1..known] == [0x2a, 0x4d, 0x18][..known - 1])
}
