//! The decoder of one coding.

use super::brotli::Brotli;
use super::zlib::{Container, Zlib};
use super::zstd::Zstd;

/// Input that is invalid in a coding, or ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Whether the whole input is the beginning of a valid stream, whose rest is missing.
    pub is_truncated: bool,
}

pub const DAMAGED: DecodeError = DecodeError {
    is_truncated: false,
};

pub const TRUNCATED: DecodeError = DecodeError { is_truncated: true };

/// Receives decoded bytes, at most one block per call; returns whether more are needed.
pub type ByteSink<'a> = dyn FnMut(&[u8]) -> bool + 'a;

pub enum CodingDecoder {
    Zlib(Box<Zlib>),
    Brotli(Box<Brotli>),
    Zstd(Box<Zstd>),
}

impl CodingDecoder {
    /// Returns the decoder for a coding, judged by the first bytes of a body; None if they cannot be in it.
    ///
    /// Data that begins like gzip is gzip, whichever coding is declared.
    pub fn of(coding: &str, head: &[u8]) -> Option<Self> {
        if is_gzip(head) && (coding == "gzip" || head.len() > 2) {
            return Some(Self::Zlib(Box::new(Zlib::new(Container::Gzip))));
        }
        match coding {
            "deflate" => {
                // Deflate with the zlib header that the standard requires, or without it, as some servers have always
                // sent it.
                let first = u32::from(*head.first()?);
                let both = head
                    .get(1)
                    .map_or(first, |&second| first << 8 | u32::from(second));
                let has_header = first & 0x0f == 8 && both % 31 == 0;
                let form = if has_header {
                    Container::Zlib
                } else {
                    Container::Raw
                };
                Some(Self::Zlib(Box::new(Zlib::new(form))))
            }
            "br" => Some(Self::Brotli(Box::new(Brotli::new()))),
            "zstd" => Zstd::of(head).map(|zstd| Self::Zstd(Box::new(zstd))),
            _ => None,
        }
    }

    /// Whether the first bytes prove the coding.
    pub fn is_certain(&self) -> bool {
        match self {
            Self::Zlib(zlib) => zlib.is_gzip(),
            Self::Brotli(_) => false,
            Self::Zstd(_) => true,
        }
    }

    /// Decodes more input, until `take` returns false.
    pub fn feed(&mut self, data: &[u8], take: &mut ByteSink) -> Result<(), DecodeError> {
        match self {
            Self::Zlib(zlib) => zlib.feed(data, take),
            Self::Brotli(brotli) => brotli.feed(data, take),
            Self::Zstd(zstd) => zstd.feed(data, take),
        }
    }

    /// Whether the stream was complete.
    pub fn end(&self) -> Result<(), DecodeError> {
        match self {
            Self::Zlib(zlib) => zlib.end(),
            Self::Brotli(brotli) => brotli.end(),
            Self::Zstd(zstd) => zstd.end(),
        }
    }
}

/// Checks the start of a gzip member (RFC 1952, 2.3): two magic bytes, the method, and the three reserved flags, which
/// must be zero.
fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(&[0x1f, 0x8b])
        && head.get(2).is_none_or(|&method| method == 8)
        && head.get(3).is_none_or(|&flags| flags & 0xe0 == 0)
}
