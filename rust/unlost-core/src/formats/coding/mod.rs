//! Transfer and content codings undone, piece by piece, without trust in what headers say.
//!
//! ```text
//! stored bytes ─┬─► chunks ─► coding ─► … ─► output (digest, length, the first bytes)
//!               └─► output, for what cannot be undone
//! ```
//!
//! What is not in the coding that a header names passes as it is; what is, and breaks off, is given up to there, and said
//! to be broken. `unlost.formats.contentcoding` does the same in Python, and is what the tests compare with.

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

/// Bytes that are worked on at once. Every coding gets its input in blocks of exactly so many, so that what is found
/// does not depend on how it came.
const BLOCK_BYTES: usize = 1 << 16;

/// In one body: nobody packs more than twice, and more is no mistake but an attack.
const MAX_CODINGS: usize = 4;

/// Why a body is left as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is in a coding that cannot be undone, or in too many.
    Coding,
    /// Without its codings it would be longer than wanted.
    TooLong,
}

/// What a body is, without its codings or, if they cannot be undone, with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Its SHA-1, if that was wanted.
    pub digest: Option<[u8; 20]>,
    /// How many bytes it has; no more than the limit, if more were not looked at.
    pub len: u64,
    /// Its first bytes, as many as were wanted.
    pub head: Vec<u8>,
    /// Whether it breaks off, or is damaged.
    pub is_broken: bool,
    /// Why this is the body as it is stored.
    pub refusal: Option<Refusal>,
}

/// One body, whose stored bytes come piece by piece.
pub struct BodyDecoder {
    stage: Stage,
    /// The same bytes as they are stored, where there is a coding that might not be undone.
    stored: Option<Output>,
    has_too_many: bool,
}

impl BodyDecoder {
    /// Undoes these codings, as [`codings_of`] gives them.
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

    /// Takes some more of the body as it is stored.
    pub fn feed(&mut self, data: &[u8]) {
        if let Some(stored) = &mut self.stored {
            stored.feed(data);
        }
        self.stage.feed(data);
    }

    /// Whether more of the body would change nothing in what is wanted of it.
    #[must_use]
    pub fn has_enough(&self) -> bool {
        self.stage.is_over()
    }

    /// What the body was, now that all of it was fed.
    #[must_use]
    pub fn finish(mut self) -> Body {
        self.stage.end();
        let Outcome {
            output,
            is_broken,
            is_refused,
            is_too_long,
        } = self.stage.outcome();
        let refusal = if is_refused || self.has_too_many {
            Some(Refusal::Coding)
        } else {
            is_too_long.then_some(Refusal::TooLong)
        };
        match (refusal, self.stored) {
            (Some(_), Some(stored)) => stored.into_body(false, refusal),
            _ => output.into_body(is_broken, refusal),
        }
    }

    /// The first bytes of the body, and whether there are more; the limit was as many as were wanted.
    #[must_use]
    pub fn finish_with_head(mut self) -> (Body, bool) {
        self.stage.end();
        let outcome = self.stage.outcome();
        match self.stored {
            Some(stored) if outcome.is_refused => {
                let is_over = stored.len() > stored.head_len();
                (stored.into_body(false, Some(Refusal::Coding)), is_over)
            }
            _ => {
                let is_over = outcome.is_too_long;
                (outcome.output.into_body(outcome.is_broken, None), is_over)
            }
        }
    }
}

/// What came of a stage and all behind it.
struct Outcome {
    output: Output,
    is_broken: bool,
    is_refused: bool,
    /// Whether more came of it, or of a step on its way, than is wanted.
    is_too_long: bool,
}

/// One step on the way to the body.
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

    /// Whether there was more than is wanted.
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
        assert_eq!(body.refusal, Some(Refusal::TooLong));
        assert_eq!(body.head, b"5\r\nhello\r\n0\r\n\r\n");
    }

    #[test]
    fn body_with_too_many_codings_is_not_decoded() {
        let body = decode_body(&["gzip"; 5], b"\x1f\x8b\x08", 100);
        assert_eq!((body.refusal, body.len), (Some(Refusal::Coding), 3));
    }
}
