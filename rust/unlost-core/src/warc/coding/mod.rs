//! Removes transfer and content codings incrementally, without trusting headers.
//!
//! ```text
//! stored bytes ─┬─► chunks ─► coding ─► … ─► output (digest, length, the first bytes)
//!               └─► output, for codings that cannot be removed
//! ```
//!
//! Data that is not in the coding that a header names passes unchanged. Truncated data is decoded up to that point and
//! reported as broken. `unlost.http.content_encoding` does the same in Python; the tests compare with it.

mod brotli;
mod chunks;
mod decoder;
mod layer;
mod names;
mod output;
mod zlib;
mod zstd;

pub use names::codings_of;
pub use output::BodyOptions;

use chunks::Chunks;
use layer::Layer;
use output::Output;

/// Input per step. Every decoder gets its input in blocks of exactly this size, so that results do not depend on how
/// the data arrives.
const BLOCK_BYTES: usize = 1 << 16;

/// The maximum number of codings per body. Our limit: servers use at most two.
const MAX_CODINGS: usize = 4;

/// The reasons why a body is not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDecoded {
    /// The coding is not supported, or there are too many codings.
    Coding,
    /// The decoded body would be longer than the limit.
    TooLong,
}

/// A body without its codings or, if they cannot be removed, with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The SHA-1 of the body, if requested.
    pub digest: Option<[u8; 20]>,
    /// The length in bytes; at most the limit, if decoding stopped there.
    pub len: u64,
    /// The first bytes, up to the requested number.
    pub head: Vec<u8>,
    /// Whether the body is truncated or damaged.
    pub is_broken: bool,
    /// Why the body is not decoded; `None` if it is.
    pub not_decoded: Option<NotDecoded>,
}

/// Decodes one body whose stored bytes arrive in pieces.
pub struct BodyDecoder {
    stage: Stage,
    /// The same bytes as stored, if there is a coding that might not be removable.
    stored: Option<Output>,
    has_too_many: bool,
}

impl BodyDecoder {
    /// Removes these codings, as [`codings_of`] returns them.
    #[must_use]
    pub fn new(codings: &[String], options: BodyOptions) -> Self {
        let has_too_many = codings.len() > MAX_CODINGS;
        let supported = if has_too_many { &[] } else { codings };
        Self {
            stage: Stage::of(supported, options),
            stored: (!supported.is_empty()).then(|| Output::new(options.without_limit())),
            has_too_many,
        }
    }

    /// Takes the next bytes of the stored body.
    pub fn feed(&mut self, data: &[u8]) {
        if let Some(stored) = &mut self.stored {
            stored.feed(data);
        }
        self.stage.feed(data);
    }

    /// Whether more input cannot change the result.
    #[must_use]
    pub fn has_enough(&self) -> bool {
        self.stage.is_over()
    }

    /// The body, after all input.
    #[must_use]
    pub fn finish(mut self) -> Body {
        self.stage.end();
        let Outcome {
            output,
            is_broken,
            is_refused,
            is_too_long,
        } = self.stage.outcome();
        let not_decoded = if is_refused || self.has_too_many {
            Some(NotDecoded::Coding)
        } else {
            is_too_long.then_some(NotDecoded::TooLong)
        };
        match (not_decoded, self.stored) {
            (Some(_), Some(stored)) => stored.into_body(false, not_decoded),
            _ => output.into_body(is_broken, not_decoded),
        }
    }

    /// The first bytes of the body, and whether there are more; the limit is the requested number.
    #[must_use]
    pub fn finish_with_head(mut self) -> (Body, bool) {
        self.stage.end();
        let outcome = self.stage.outcome();
        match self.stored {
            Some(stored) if outcome.is_refused => {
                let is_over = stored.len() > stored.head_len();
                (stored.into_body(false, Some(NotDecoded::Coding)), is_over)
            }
            _ => {
                let is_over = outcome.is_too_long;
                (outcome.output.into_body(outcome.is_broken, None), is_over)
            }
        }
    }
}

/// The result of a stage and all stages after it.
struct Outcome {
    output: Output,
    is_broken: bool,
    is_refused: bool,
    /// Whether it, or an intermediate stage, produced more than the limit.
    is_too_long: bool,
}

/// One stage of decoding.
enum Stage {
    Output(Box<Output>),
    Layer(Box<Layer>),
    Chunks(Box<Chunks>),
}

impl Stage {
    fn of(codings: &[String], options: BodyOptions) -> Self {
        match codings {
            [] => Self::Output(Box::new(Output::new(options))),
            [first, rest @ ..] if first == names::CHUNKED => Self::Chunks(Box::new(Chunks::new(
                Self::of(rest, options),
                Self::of(rest, options),
            ))),
            [first, rest @ ..] => {
                let next = Self::of(rest, options);
                Self::Layer(Box::new(Layer::new(first.clone(), next, options.limit)))
            }
        }
    }

    fn feed(&mut self, data: &[u8]) {
        match self {
            Self::Output(output) => output.feed(data),
            Self::Layer(layer) => layer.feed(data),
            Self::Chunks(chunks) => chunks.feed(data),
        }
    }

    fn end(&mut self) {
        match self {
            Self::Output(_) => {}
            Self::Layer(layer) => layer.end(),
            Self::Chunks(chunks) => chunks.end(),
        }
    }

    /// Whether there was more output than the limit.
    fn is_over(&self) -> bool {
        match self {
            Self::Output(output) => output.is_over(),
            Self::Layer(layer) => layer.is_over(),
            Self::Chunks(chunks) => chunks.is_over(),
        }
    }

    fn outcome(self) -> Outcome {
        match self {
            Self::Output(output) => Outcome {
                is_too_long: output.is_over(),
                output: *output,
                is_broken: false,
                is_refused: false,
            },
            Self::Layer(layer) => layer.outcome(),
            Self::Chunks(chunks) => chunks.outcome(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_body(codings: &[&str], data: &[u8], limit: u64) -> Body {
        let codings: Vec<String> = codings.iter().map(|name| (*name).to_owned()).collect();
        let options = BodyOptions {
            with_digest: false,
            head: 1 << 20,
            limit,
        };
        let mut undoing = BodyDecoder::new(&codings, options);
        data.chunks(3).for_each(|piece| undoing.feed(piece));
        undoing.finish()
    }

    #[test]
    fn unchunked_body_passes_unchanged() {
        let body = decode_body(&["chunked"], b"5\r\nhello world", 100);
        assert_eq!(
            (body.head.as_slice(), body.is_broken),
            (&b"5\r\nhello world"[..], false)
        );
        let body = decode_body(&["chunked"], b"5\r\nhello\r\n0\r\n\r\n", 100);
        assert_eq!(
            (body.head.as_slice(), body.is_broken),
            (&b"hello"[..], false)
        );
        let body = decode_body(&["chunked"], b"5\r\nhel", 100);
        assert_eq!((body.head.as_slice(), body.is_broken), (&b"hel"[..], true));
    }

    #[test]
    fn body_over_the_limit_is_returned_as_stored() {
        let body = decode_body(&["chunked"], b"5\r\nhello\r\n0\r\n\r\n", 4);
        assert_eq!(body.not_decoded, Some(NotDecoded::TooLong));
        assert_eq!(body.head, b"5\r\nhello\r\n0\r\n\r\n");
    }

    #[test]
    fn body_with_too_many_codings_is_not_decoded() {
        let body = decode_body(&["gzip"; 5], b"\x1f\x8b\x08", 100);
        assert_eq!((body.not_decoded, body.len), (Some(NotDecoded::Coding), 3));
    }
}
