//! Gzip members one after the other: every byte before damage, and the kind of damage.

use std::io::{Read, Result};

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::window::Window;

/// The maximum length of a member's header. An extra field has at most 64 KiB (RFC 1952, 2.3.1.1); the rest is our
/// limit for the name and the comment.
const MAX_HEADER: usize = 1 << 17;

/// Damage of a compressed member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The file ends inside the member.
    Truncated,
    /// The member is complete, but its checksum does not match.
    BadChecksum,
    /// The rest of the member cannot be decompressed.
    Corrupt,
}

/// The result of a decompression step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The number of bytes of text, possibly 0.
    Text(usize),
    /// The member ended and is valid.
    End,
    /// The member ended and is damaged.
    Damage(Damage),
}

/// What the bytes at a position begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A member, with a header of this length.
    Header(usize),
    /// The file ends inside the header.
    Truncated,
    /// Not a member.
    Other,
}

/// Inspects the start of a member. The bytes must be the last ones of the file, or at least [`MAX_HEADER`].
pub fn start(bytes: &[u8]) -> Start {
    const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
    let known = bytes.len().min(MAGIC.len());
    if bytes.is_empty() || bytes[..known] != MAGIC[..known] {
        return Start::Other;
    }
    let (Some(&flags), Some(_)) = (bytes.get(3), bytes.get(9)) else {
        return Start::Truncated;
    };
    if flags & 0xe0 != 0 {
        return Start::Other;
    }
    match header_len(bytes, flags) {
        Some(len) if len <= bytes.len() => Start::Header(len),
        _ if bytes.len() >= MAX_HEADER => Start::Other,
        _ => Start::Truncated,
    }
}

fn header_len(bytes: &[u8], flags: u8) -> Option<usize> {
    let mut len = 10;
    if flags & 4 != 0 {
        let extra = [*bytes.get(len)?, *bytes.get(len + 1)?];
        len += 2 + usize::from(u16::from_le_bytes(extra));
    }
    // A name, then a comment, each terminated by a NUL.
    for flag in [8, 16] {
        if flags & flag != 0 {
            len += memchr::memchr(0, bytes.get(len..)?)? + 1;
        }
    }
    Some(len + if flags & 2 != 0 { 2 } else { 0 })
}

/// Decompresses members, one at a time.
pub struct Inflater {
    state: Decompress,
    checksum: Crc,
    in_trailer: bool,
}

impl Inflater {
    pub fn new() -> Self {
        Self {
            state: Decompress::new(false),
            checksum: Crc::new(),
            in_trailer: false,
        }
    }

    /// Begins a member at the window's position, if there is one.
    pub fn begin<R: Read>(&mut self, window: &mut Window<R>) -> Result<Start> {
        let mut member_start = start(window.peek(10)?);
        if member_start == Start::Truncated {
            member_start = start(window.peek(MAX_HEADER)?);
        }
        if let Start::Header(len) = member_start {
            window.consume(len);
            self.reset();
        }
        Ok(member_start)
    }

    fn reset(&mut self) {
        self.state.reset(false);
        self.checksum.reset();
        self.in_trailer = false;
    }

    /// Decompresses more of the member into `out`.
    pub fn step<R: Read>(&mut self, window: &mut Window<R>, out: &mut [u8]) -> Result<Step> {
        if self.in_trailer {
            return self.check(window);
        }
        let input = window.peek(1)?;
        // At the end of the file, the state may still hold text that did not fit the buffer.
        let is_over = input.is_empty();
        let (read, written) = (self.state.total_in(), self.state.total_out());
        let outcome = self.state.decompress(input, out, FlushDecompress::None);
        let read = usize::try_from(self.state.total_in() - read).unwrap_or(0);
        let written = usize::try_from(self.state.total_out() - written).unwrap_or(0);
        window.consume(read);
        self.checksum.update(&out[..written]);
        match outcome {
            Ok(Status::StreamEnd) => self.in_trailer = true,
            Ok(_) if read > 0 || written > 0 => {}
            // Bytes before the damage are returned first; the next call finds the same state.
            _ if written > 0 => {}
            _ if is_over => return Ok(Step::Damage(Damage::Truncated)),
            _ => return Ok(Step::Damage(Damage::Corrupt)),
        }
        Ok(Step::Text(written))
    }

    fn check<R: Read>(&mut self, window: &mut Window<R>) -> Result<Step> {
        let trailer = window.peek(8)?;
        let Some(written) = trailer.first_chunk::<8>() else {
            let rest = trailer.len();
            window.consume(rest);
            return Ok(Step::Damage(Damage::Truncated));
        };
        // The checksum, then the length of the text, both 32 bits.
        let written = u64::from_le_bytes(*written);
        window.consume(8);
        let counted = u64::from(self.checksum.amount()) << 32 | u64::from(self.checksum.sum());
        let is_sound = written == counted;
        Ok(if is_sound {
            Step::End
        } else {
            Step::Damage(Damage::BadChecksum)
        })
    }

    /// The first bytes of text of the member that begins here, as far as these bytes allow.
    pub fn probe(&mut self, bytes: &[u8], out: &mut [u8]) -> usize {
        let Start::Header(len) = start(bytes) else {
            return 0;
        };
        self.reset();
        // Output before an error counts, too.
        let _ = self
            .state
            .decompress(&bytes[len..], out, FlushDecompress::None);
        usize::try_from(self.state.total_out()).unwrap_or(0)
    }
}
