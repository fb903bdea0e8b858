//! A page in its source encoding, whose parts are decoded on demand.

use std::borrow::Cow;
use std::ops::Range;

use encoding_rs::Encoding;

/// A page, or a part of one.
#[derive(Clone, Copy)]
pub enum Source<'t> {
    Text(&'t str),
    /// A single-byte encoding: tags have the same offsets as in the text, and bytes below 128 are ASCII.
    SingleByte(&'t [u8], &'static Encoding),
}

impl<'t> Source<'t> {
    pub fn bytes(self) -> &'t [u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::SingleByte(bytes, _) => bytes,
        }
    }

    pub fn part(self, span: Range<usize>) -> Self {
        match self {
            Self::Text(text) => Self::Text(&text[span]),
            Self::SingleByte(bytes, encoding) => Self::SingleByte(&bytes[span], encoding),
        }
    }

    /// The text of a part; borrowed if it is already UTF-8.
    pub fn read(self, span: Range<usize>) -> Cow<'t, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(&text[span]),
            Self::SingleByte(bytes, encoding) => {
                let bytes = &bytes[span];
                match ascii(bytes) {
                    Some(text) => Cow::Borrowed(text),
                    None => Cow::Owned(encoding.decode_without_bom_handling(bytes).0.into_owned()),
                }
            }
        }
    }
}

fn ascii(bytes: &[u8]) -> Option<&str> {
    if !bytes.is_ascii() {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}
