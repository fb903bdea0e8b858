//! A body that was told to be something, and what it is.

use std::borrow::Cow;

use encoding_rs::Encoding;

use super::kind::{self, Kind};
use super::source::Source;
use super::{MAX_BODY_BYTES, charset, gunzip};

/// What is written in a document.
pub enum DecodedText<'b> {
    Decoded(Cow<'b, str>),
    /// A page with a byte for each letter, whose parts are read where they stand.
    SingleByte(&'b [u8], &'static Encoding),
}

impl DecodedText<'_> {
    pub fn source(&self) -> Source<'_> {
        match self {
            Self::Decoded(text) => Source::Text(text),
            Self::SingleByte(bytes, encoding) => Source::SingleByte(bytes, encoding),
        }
    }

    /// The text; empty if only its parts are read.
    pub fn text(&self) -> &str {
        match self {
            Self::Decoded(text) => text,
            Self::SingleByte(..) => "",
        }
    }

    /// The text, if its places are not those of the bytes.
    pub fn decoded_text(&self) -> Option<&str> {
        match self {
            Self::Decoded(Cow::Owned(text)) => Some(text),
            _ => None,
        }
    }
}

/// A body as far as it is read, unpacked.
pub struct Document<'b> {
    pub body: Cow<'b, [u8]>,
    /// `None` if it is of a kind that nothing is read from.
    pub kind: Option<Kind>,
    /// What it was said to be written in, outside of it.
    pub label: Option<&'b str>,
    /// Whether there is more of it than is read.
    pub cut: bool,
}

impl<'b> Document<'b> {
    /// `mime` is its type as it was told, parameters and all; `base` the address that it was found at; `charset` what it
    /// was said to be written in.
    pub fn of(body: &'b [u8], mime: Option<&'b str>, base: &str, charset: Option<&'b str>) -> Self {
        let mut cut = body.len() > MAX_BODY_BYTES;
        let body = &body[..body.len().min(MAX_BODY_BYTES)];
        let (body, packed) = gunzip::unpacked(body, &mut cut);
        // What is packed was told to be that, and not what is in it.
        let kind = Kind::of(&body, if packed { None } else { mime }, base);
        let label = charset.or_else(|| kind::parameter(mime?, "charset"));
        Self {
            body,
            kind,
            label,
            cut,
        }
    }

    /// What is written in it, if it is a document of this kind, and in which encoding.
    pub fn decoded(&self, kind: Kind) -> (Cow<'_, str>, &'static Encoding) {
        let (encoding, mark) = charset::encoding(&self.body, self.label, kind);
        (charset::text(&self.body[mark..], encoding), encoding)
    }

    /// The same, not decoded if it is a page that can be read as it stands.
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
