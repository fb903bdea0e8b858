//! Resolves references.

use std::borrow::Cow;
use std::ops::Range;

use encoding_rs::{EncoderResult, Encoding};
use url::Url;

use super::fast_url_join::FastUrlJoiner;
use super::references::{Distinct, Reference, References};
use super::{LinkKind, MAX_LINKS, MAX_URL_BYTES};

/// The total length of all URLs: a long base can turn a hundred thousand short references into long URLs.
const MAX_BYTES: usize = 64 << 20;

/// The average length of a URL, for allocation. Measured on real pages: 60 bytes.
const BYTES_PER_URL: usize = 64;

/// The links of a body.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExtractedLinks {
    /// URLs of http and https without fragments, in order of appearance, unique by kind.
    pub links: Vec<(String, LinkKind)>,
    /// The number of links that were dropped because they are too long or too many.
    pub dropped: usize,
    /// Whether only the beginning of the body was read.
    pub cut: bool,
}

impl ExtractedLinks {
    pub(super) fn nothing(cut: bool) -> Self {
        Self {
            cut,
            ..Self::default()
        }
    }
}

/// URLs, unique by kind.
#[derive(Default)]
pub(super) struct Links {
    /// Concatenated: a string for each would take longer to allocate than to find.
    text: String,
    all: Distinct<(Range<usize>, LinkKind)>,
}

impl Links {
    pub fn len(&self) -> usize {
        self.all.all().len()
    }

    pub fn get(&self, nth: usize) -> (&str, LinkKind) {
        let (span, kind) = &self.all.all()[nth];
        (&self.text[span.clone()], *kind)
    }

    /// In order of appearance.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, LinkKind)> + Clone {
        (0..self.len()).map(|nth| self.get(nth))
    }

    /// Adds the URL that was written after all others, if it is new and there is room for it; returns its index.
    fn add(&mut self, start: usize, kind: LinkKind) -> Option<usize> {
        let url = &self.text[start..];
        let is_short = url.len() <= MAX_URL_BYTES && self.text.len() <= MAX_BYTES;
        let text = self.text.as_bytes();
        let is = |(span, other): &(Range<usize>, LinkKind)| {
            text[span.clone()] == *url.as_bytes() && *other == kind
        };
        // The kind is not hashed: a URL has at most three.
        let index = match self.all.index_of(url, is) {
            _ if !is_short => None,
            Ok(index) => Some(index),
            Err(_) if self.len() >= MAX_LINKS => None,
            Err(hash) => {
                let span = start..self.text.len();
                return Some(self.all.add(hash, (span, kind)));
            }
        };
        self.text.truncate(start);
        index
    }
}

/// References and the URLs that they resolve to.
pub(super) struct ResolvedReferences {
    pub links: Links,
    /// For each reference, the index of its link; `None` if it is not a link, or was dropped.
    pub which: Vec<Option<u32>>,
    pub dropped: usize,
}

/// The base URLs of references.
pub(super) struct Bases {
    /// The URL of the document.
    pub own: Option<Url>,
    /// The base URL: that of the document, or the one that it declares.
    pub base: Option<Url>,
    pub encoding: &'static Encoding,
}

impl Bases {
    pub fn of(references: &References, own: &str, encoding: &'static Encoding) -> Self {
        let own = Url::parse(own).ok().filter(is_web);
        let base = references
            .base
            .as_deref()
            .and_then(|written| join(own.as_ref(), written, encoding))
            .filter(|base| base.as_str().len() <= MAX_URL_BYTES)
            .or_else(|| own.clone());
        Self {
            own,
            base,
            encoding,
        }
    }

    /// Resolves a reference against a base, without a fragment.
    pub fn resolve(&self, base: Option<&Url>, reference: Reference<'_>) -> Option<Url> {
        let within = reference
            .within
            .and_then(|written| join(base, written, self.encoding));
        self.resolve_without_codebase(within.as_ref().or(base), reference)
    }

    /// The same without the codebase of the reference.
    pub fn resolve_without_codebase(
        &self,
        base: Option<&Url>,
        reference: Reference<'_>,
    ) -> Option<Url> {
        let mut url = join(base, reference.written, self.encoding)?;
        url.set_fragment(None);
        Some(url)
    }

    pub fn resolve_all(&self, references: &References) -> ResolvedReferences {
        let mut links = Links::default();
        links.all.reserve(references.len());
        links.text.reserve(references.len() * BYTES_PER_URL);
        let mut dropped = references.dropped;
        let fast_joiner = self.base.as_ref().map(FastUrlJoiner::of);
        let which = references.all().map(|reference| {
            let start = links.text.len();
            let is_plain = reference.within.is_none()
                && fast_joiner.as_ref().is_some_and(|fast_joiner| {
                    fast_joiner.join(reference.written, &mut links.text)
                });
            if !is_plain {
                let url = self.resolve(self.base.as_ref(), reference)?;
                links.text.push_str(&as_requested(url.as_str()));
            }
            let index = links.add(start, reference.kind);
            dropped += usize::from(index.is_none());
            u32::try_from(index?).ok()
        });
        let which = which.collect();
        ResolvedReferences {
            links,
            which,
            dropped,
        }
    }
}

/// The URL as Chromium requests it. It escapes two characters in paths that the parser does not: `^`, as the standard
/// now requires, and `|`.
pub(super) fn as_requested(url: &str) -> Cow<'_, str> {
    let path = url.split('?').next().unwrap_or_default();
    if memchr::memchr2(b'^', b'|', path.as_bytes()).is_none() {
        return Cow::Borrowed(url);
    }
    let query = &url[path.len()..];
    Cow::Owned(path.replace('^', "%5E").replace('|', "%7C") + query)
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// Resolves a URL if it is a web URL. The query is escaped in the encoding of the page.
fn join(base: Option<&Url>, written: &str, encoding: &'static Encoding) -> Option<Url> {
    let escape: &dyn Fn(&str) -> Cow<'_, [u8]> = &|text| Cow::Owned(encoded(text, encoding));
    // The parser is faster without a custom encoding.
    let is_own = encoding.output_encoding() == encoding_rs::UTF_8;
    Url::options()
        .base_url(base)
        .encoding_override((!is_own).then_some(escape))
        .parse(written)
        .ok()
        .filter(is_web)
}

/// The bytes of a query. An unencodable character becomes a numeric reference, as in browsers (WHATWG URL standard,
/// "percent-encode after encoding").
fn encoded(text: &str, encoding: &'static Encoding) -> Vec<u8> {
    let encoding = encoding.output_encoding();
    if encoding == encoding_rs::UTF_8 {
        return text.as_bytes().to_vec();
    }
    let mut encoder = encoding.new_encoder();
    let mut out = Vec::with_capacity(text.len() + 16);
    let mut rest = text;
    loop {
        out.reserve(rest.len() * 4 + 16);
        let (result, read) =
            encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut out, true);
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => return out,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(character) => {
                out.extend_from_slice(format!("%26%23{}%3B", u32::from(character)).as_bytes());
            }
        }
    }
}
