//! Replaces URLs in place; every other byte is unchanged.
//!
//! First the document is parsed as for [`super::find`], and the position of each URL is recorded ([`ParsedDocument`]).
//! The caller provides a replacement for each link, which is then spliced in ([`ParsedDocument::splice`]).

mod byte_offsets;
mod css_token;
mod declared_charset;
mod link_directory;
mod splicing;
mod url_occurrences;
mod url_writer;

use std::borrow::Cow;
use std::ops::Range;

use encoding_rs::{Encoding, ISO_2022_JP, UTF_16BE, UTF_16LE};

use super::document::{DecodedText, Document};
use super::kind::Kind;
use super::parse_context::ParseContext;
use super::resolved_links::{Bases, Links, ResolvedReferences};
use super::{LinkKind, elements, scripts, walker, xhtml};
use url_occurrences::{GuardEffect, UrlOccurrences};

pub use link_directory::{Directory, RelativeLink};
pub use splicing::{EditPlan, Spliced};
pub use url_writer::{ReplacementUrl, SpellingFlags};

/// Options: further changes to a page that moves to another URL.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Options {
    /// Disables `<base>`: links that are not replaced become absolute.
    pub drop_base: bool,
    /// Disables subresource integrity for replaced URLs.
    pub drop_integrity: bool,
    /// Disables the content security policy.
    pub drop_policy: bool,
    /// Also finds URLs that scripts may use: see [`ParsedDocument::candidates`].
    pub candidates: bool,
}

/// A document in which the URLs were found.
#[derive(Default)]
pub struct ParsedDocument {
    occurrences: UrlOccurrences,
    bases: Option<Bases>,
    links: Option<ResolvedReferences>,
    others: Option<ResolvedReferences>,
    candidates: Option<ResolvedReferences>,
    options: Options,
    /// The source of the rewriting if it is not the body itself: decompressed, or transcoded from an encoding that does
    /// not contain ASCII.
    instead: Option<Vec<u8>>,
    declared: Vec<Range<usize>>,
    /// The encoding; `None` if it is not a document with links.
    pub encoding: Option<&'static str>,
    /// Whether the result is in UTF-8 because its encoding cannot be written piece by piece.
    pub transcoded: bool,
    /// Whether the body is compressed; the result is not.
    pub unpacked: bool,
    /// Whether only the beginning of the body is rewritten, or it is damaged.
    pub cut: bool,
}

impl ParsedDocument {
    /// The links that can be replaced.
    pub fn links(&self) -> impl ExactSizeIterator<Item = (&str, LinkKind)> + Clone {
        let links = self.links.as_ref().map(|resolve_all| &resolve_all.links);
        let number = links.map_or(0, Links::len);
        (0..number).map(move |nth| links.map_or(("", LinkKind::Page), |links| links.get(nth)))
    }

    /// URLs that scripts of the page may use: values of `data-*` attributes, strings in event handlers, and navigation
    /// targets in inline scripts. None of them is certain to be a URL, so only known ones should be replaced; the
    /// others stay unchanged.
    pub fn candidates(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        let candidates = self
            .candidates
            .as_ref()
            .map(|resolve_all| &resolve_all.links);
        let number = candidates.map_or(0, Links::len);
        (0..number).map(move |nth| candidates.map_or("", |links| links.get(nth).0))
    }

    /// Whether the page declares a content security policy.
    #[must_use]
    pub fn has_policy(&self) -> bool {
        let mut guards = self.occurrences.guards.iter();
        guards.any(|guard| guard.what == GuardEffect::Policy)
    }

    /// The number of URLs that cannot be replaced because they are too long or too many.
    #[must_use]
    pub fn not_replaced(&self) -> usize {
        self.occurrences.not_replaced + self.links.as_ref().map_or(0, |links| links.dropped)
    }
}

/// Finds the URLs of a page, an SVG or a style sheet; the arguments are those of [`super::find`].
#[must_use]
pub fn find(
    body: &[u8],
    mime: Option<&str>,
    base: &str,
    charset: Option<&str>,
    options: Options,
) -> ParsedDocument {
    let document = Document::of(body, mime, base, charset);
    let kind = match document.kind {
        Some(kind @ (Kind::Html | Kind::Xhtml | Kind::Css)) if !document.cut => kind,
        _ => {
            return ParsedDocument {
                cut: document.cut,
                ..ParsedDocument::default()
            };
        }
    };
    let (read, encoding) = document.read(kind);
    let mut occurrences = UrlOccurrences::default();
    occurrences.host = options.candidates.then(|| scripts::host_of(base));
    occurrences.read(&read, kind);
    let bases = Bases::of(&occurrences.links, base, encoding);
    let links = bases.resolve_all(&occurrences.links);
    let others = (occurrences.others.len() > 0).then(|| bases.resolve_all(&occurrences.others));
    let candidates =
        (occurrences.candidates.len() > 0).then(|| bases.resolve_all(&occurrences.candidates));
    let is_foreign = [UTF_16LE, UTF_16BE, ISO_2022_JP].contains(&encoding);
    let mark = Encoding::for_bom(&document.body).map_or(0, |(_, length)| length);
    let transcoded = is_foreign && read.decoded_text().is_some();
    let mut declared = Vec::new();
    if transcoded {
        declared = declared_charset::names(read.text(), kind);
    } else if mark > 0 || read.decoded_text().is_some() {
        occurrences.map_to_body_offsets(&document.body, mark, read.decoded_text());
    }
    let text = transcoded.then(|| read.text().as_bytes().to_vec());
    let (unpacked, packed) = match document.body {
        Cow::Owned(unpacked) => (Some(unpacked), true),
        Cow::Borrowed(_) => (None, false),
    };
    ParsedDocument {
        occurrences,
        bases: Some(bases),
        links: Some(links),
        others,
        candidates,
        options,
        instead: text.or(unpacked),
        declared,
        encoding: Some(encoding.name()),
        transcoded,
        unpacked: packed,
        cut: false,
    }
}

impl UrlOccurrences {
    /// Reads the whole document.
    fn read(&mut self, read: &DecodedText<'_>, kind: Kind) {
        self.reserve(read.source().bytes().len());
        let whole = ParseContext::whole(read.text());
        match kind {
            Kind::Html => walker::walk(&whole, read.source(), self),
            Kind::Xhtml => xhtml::walk(&whole, self),
            _ => elements::add_style(&whole, self),
        }
    }

    /// Maps offsets in the text to those in the body, whose first `mark` bytes are not in the text. `text` is `None` if
    /// the bytes are the text.
    fn map_to_body_offsets(&mut self, body: &[u8], mark: usize, text: Option<&str>) {
        let mut offsets: Vec<usize> = Vec::new();
        let mut mapped = Vec::new();
        if let Some(text) = text {
            let occurrences = self.written.iter();
            offsets.extend(
                occurrences
                    .flat_map(|occurrence| [occurrence.start, occurrence.end, occurrence.whole_end])
                    .map(at),
            );
            offsets.extend(self.guards.iter().map(|guard| at(guard.name_at)));
            offsets.sort_unstable();
            offsets.dedup();
            mapped = byte_offsets::body_offsets(text, &body[mark..], &offsets);
        }
        let offset = |in_text: u32| {
            let offset = match text {
                None => Some(at(in_text)),
                Some(_) => offsets
                    .binary_search(&at(in_text))
                    .ok()
                    .and_then(|nth| mapped[nth]),
            };
            offset.and_then(|offset| u32::try_from(offset + mark).ok())
        };
        for occurrence in &mut self.written {
            let whole = (
                offset(occurrence.start),
                offset(occurrence.end),
                offset(occurrence.whole_end),
            );
            if let (Some(start), Some(end), Some(whole_end)) = whole {
                (occurrence.start, occurrence.end, occurrence.whole_end) = (start, end, whole_end);
            } else {
                // The offset is unknown: it cannot be replaced.
                (occurrence.start, occurrence.end, occurrence.whole_end) = (u32::MAX, 0, 0);
                self.not_replaced += 1;
            }
        }
        self.guards.retain_mut(|guard| match offset(guard.name_at) {
            Some(name_at) => {
                guard.name_at = name_at;
                true
            }
            None => false,
        });
    }
}

fn at(offset: u32) -> usize {
    offset as usize
}
