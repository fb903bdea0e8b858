//! A body with a declared type, and its detected kind.

use std::borrow::Cow;

use encoding_rs::Encoding;

use super::kind::{self, Kind};
use super::source::Source;
use super::{MAX_BODY_BYTES, charset, gunzip};

/// The text of a document.
pub enum DecodedText<'b> {
    Decoded(Cow<'b, str>),
    /// A page in a single-byte encoding, whose parts are decoded on demand.
    SingleByte(&'b [u8], &'static Encoding),
}

impl DecodedText<'_> {
    pub fn source(&self) -> Source<'_> {
        match self {
            Self::Decoded(text) => Source::Text(text),
            Self::SingleByte(bytes, encoding) => Source::SingleByte(bytes, encoding),
        }
    }

    /// The text; empty if only its parts are decoded.
    pub fn text(&self) -> &str {
        match self {
            Self::Decoded(text) => text,
            Self::SingleByte(..) => "",
        }
    }

    /// The text, if its offsets are not those of the bytes.
    pub fn decoded_text(&self) -> Option<&str> {
        match self {
            Self::Decoded(Cow::Owned(text)) => Some(text),
            _ => None,
        }
    }
}

/// The readable part of a body, decompressed.
pub struct Document<'b> {
    pub body: Cow<'b, [u8]>,
    /// `None` if nothing is read from this kind.
    pub kind: Option<Kind>,
    /// The declared encoding, outside of the document.
    pub label: Option<&'b str>,
    /// Whether only the beginning of the body is read.
    pub cut: bool,
}

impl<'b> Document<'b> {
    /// `mime` is its declared type with parameters; `base` its URL; `charset` its declared encoding.
    pub fn of(body: &'b [u8], mime: Option<&'b str>, base: &str, charset: Option<&'b str>) -> Self {
        let mut cut = body.len() > MAX_BODY_BYTES;
        let body = &body[..body.len().min(MAX_BODY_BYTES)];
        let (body, packed) = gunzip::unpacked(body, &mut cut);
        // The declared type is that of the compressed data, not of its content.
        let kind = Kind::of(&body, if packed { None } else { mime }, base);
        let label = charset.or_else(|| kind::parameter(mime?, "charset"));
        Self {
            body,
            kind,
            label,
            cut,
        }
    }

    /// The text of a document of this kind, and its encoding.
    pub fn decoded(&self, kind: Kind) -> (Cow<'_, str>, &'static Encoding) {
        let (encoding, mark) = charset::encoding(&self.body, self.label, kind);
        (charset::text(&self.body[mark..], encoding), encoding)
    }

    /// The same, but a page that can be read in place is not decoded.
    pub fn read(&self, kind: Kind) -> (DecodedText<'_>, &'static Encoding) {
        let (encoding, mark) = charset::encoding(&self.body, self.label, kind);
        let body = &self.body[mark..];
        let read = match kind {
            Kind::Html if encoding.is_single_byte() => DecodedText::SingleByte(body, encoding),
            _ => DecodedText::Decoded(charset::text(body, encoding)),
        };
        (read, encoding)
    }
}
