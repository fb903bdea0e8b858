//! Zstd frames one after the other, with the dictionary that the first one may contain.

use std::io::{Read, Result};

use zstd::stream::raw::{DParameter, Decoder, Operation};

use super::gzip::{Damage, Start, Step};
use super::window::Window;

/// The magic number of a frame (RFC 8878, 3.1.1).
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The IIPC proposal for `.warc.zst` allows windows and dictionaries of 8 MiB.
pub const WINDOW_LOG: u32 = 23;
const MAX_DICTIONARY: usize = 1 << WINDOW_LOG;
const DICTIONARY_MAGIC: u32 = 0x184d_2a5d;

/// Decompresses frames, one at a time.
pub struct FrameDecoder {
    state: Decoder<'static>,
    /// The input size that the decoder requests next.
    hint: usize,
    /// Whether it may hold text that did not fit the buffer.
    is_full: bool,
    is_over: bool,
}

/// The header of a block, which the decoder requests together with the previous block.
const BLOCK_HEADER: usize = 3;

impl FrameDecoder {
    /// A decoder for frames with this dictionary, which may be empty, and windows of at most `1 << window_log` bytes.
    pub fn new(dictionary: &[u8], window_log: u32) -> Result<Self> {
        // An invalid dictionary is hostile or damaged: frames that need it are reported as corrupt, others are not.
        let mut state =
            Decoder::with_dictionary(dictionary).or_else(|_| Decoder::with_dictionary(&[]))?;
        state.set_parameter(DParameter::WindowLogMax(window_log))?;
        Ok(Self {
            state,
            hint: 0,
            is_full: false,
            is_over: false,
        })
    }

    /// Begins a frame at the window's position, if there is one. Skippable frames are skipped.
    pub fn begin<R: Read>(&mut self, window: &mut Window<R>) -> Result<Start> {
        while let Some((_, len)) = skippable(window.peek(8)?) {
            window.consume(8);
            let mut left = len;
            while left > 0 {
                let available = window
                    .peek(1)?
                    .len()
                    .min(usize::try_from(left).unwrap_or(usize::MAX));
                if available == 0 {
                    return Ok(Start::Truncated);
                }
                window.consume(available);
                left -= available as u64;
            }
        }
        let bytes = window.peek(4)?;
        let known = bytes.len().min(4);
        if known == 0 || bytes[..known] != MAGIC[..known] {
            return Ok(Start::Other);
        }
        if known < 4 {
            return Ok(Start::Truncated);
        }
        self.state.reinit()?;
        self.hint = MAGIC.len();
        self.is_full = false;
        self.is_over = false;
        Ok(Start::Header(0))
    }

    /// Decompresses more of the frame into `out`.
    pub fn step<R: Read>(&mut self, window: &mut Window<R>, out: &mut [u8]) -> Result<Step> {
        if self.is_over {
            return Ok(Step::End);
        }
        let input = window.peek(1)?;
        let at_end = input.is_empty();
        // One block at a time, and only after the text of the last one is returned: on an error, the decoder discards
        // the output of the same call.
        let requested = match self.hint {
            _ if self.is_full => 0,
            hint if hint > BLOCK_HEADER => hint - BLOCK_HEADER,
            hint => hint.max(1),
        };
        let input = &input[..input.len().min(requested)];
        match self.state.run_on_buffers(input, out) {
            Err(_) => Ok(Step::Damage(Damage::Corrupt)),
            Ok(done) => {
                window.consume(done.bytes_read);
                self.hint = done.remaining;
                self.is_full = done.bytes_written == out.len();
                self.is_over = done.remaining == 0;
                Ok(if done.bytes_written == 0 && at_end && !self.is_over {
                    Step::Damage(Damage::Truncated)
                } else {
                    Step::Text(done.bytes_written)
                })
            }
        }
    }

    /// The first bytes of text of the frame that begins here, as far as these bytes allow.
    pub fn probe(&mut self, bytes: &[u8], out: &mut [u8]) -> usize {
        if !bytes.starts_with(&MAGIC) || self.state.reinit().is_err() {
            return 0;
        }
        self.state
            .run_on_buffers(bytes, out)
            .map_or(0, |done| done.bytes_written)
    }
}

/// The dictionary at the start of a file; empty if it has none. Skips its frame.
pub fn read_dictionary<R: Read>(window: &mut Window<R>) -> Result<Vec<u8>> {
    let Some((DICTIONARY_MAGIC, len)) = skippable(window.peek(8)?) else {
        return Ok(Vec::new());
    };
    let Some(len) = usize::try_from(len)
        .ok()
        .filter(|&len| len <= MAX_DICTIONARY)
    else {
        return Ok(Vec::new());
    };
    let frame = window.peek(8 + len)?;
    let Some(packed) = frame.get(8..8 + len).map(<[u8]>::to_vec) else {
        // The file ends in it, which is reported when the frame is skipped.
        return Ok(Vec::new());
    };
    window.consume(8 + len);
    Ok(decompress_dictionary(packed))
}

/// The magic number and length of a skippable frame.
pub fn skippable(bytes: &[u8]) -> Option<(u32, u64)> {
    let both = u64::from_le_bytes(*bytes.first_chunk::<8>()?);
    let magic = u32::try_from(both & 0xffff_ffff).ok()?;
    (magic & 0xffff_fff0 == 0x184d_2a50).then_some((magic, both >> 32))
}

/// A dictionary, which may itself be compressed. An unreadable one is dropped, and its frames are reported as corrupt.
fn decompress_dictionary(packed: Vec<u8>) -> Vec<u8> {
    if !packed.starts_with(&MAGIC) {
        return packed;
    }
    let mut dictionary = Vec::new();
    let read = zstd::stream::read::Decoder::new(packed.as_slice()).and_then(|decoder| {
        decoder
            .take(MAX_DICTIONARY as u64)
            .read_to_end(&mut dictionary)
    });
    if read.is_err() {
        dictionary.clear();
    }
    dictionary
}
