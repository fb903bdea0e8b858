//! Reads HTML and related documents: links, text, and the resemblance of texts.
//!
//! Links are both found and rewritten, so three concerns are separate: the attributes that contain links
//! ([`link_attributes`]), the positions of URLs in a value ([`spans`]), and the operation on them ([`find`],
//! [`rewriting`]).

mod attribute_names;
mod binary;
mod byte_scan;
mod charset;
mod document;
mod elements;
mod fast_url_join;
mod feeds;
mod foreign_content;
mod gunzip;
mod kind;
pub mod link_attributes;
mod lists;
mod parse_context;
mod references;
mod resolved_links;
pub mod rewriting;
mod scripts;
pub mod shingles;
mod simd_scanner;
mod source;
pub mod spans;
mod tags;
pub mod text;
mod walker;
mod xhtml;
mod xml;

pub use resolved_links::ExtractedLinks;
pub use scripts::{candidates as script_candidates, of_page as page_candidates};

use document::Document;
use kind::Kind;
use parse_context::ParseContext;
use references::References;
use resolved_links::Bases;

/// The maximum length of a body. Our limit: larger documents are generated data, not pages.
pub const MAX_BODY_BYTES: usize = 32 << 20;

/// The maximum decompressed length of a gzipped body. The sitemap protocol (sitemaps.org) allows 50 MB.
pub const MAX_UNPACKED_BYTES: usize = 64 << 20;

/// The maximum number of links of a body: twice the 50,000 URLs that the sitemap protocol allows.
pub const MAX_LINKS: usize = 100_000;

/// The maximum length of a URL; longer ones are dropped. RFC 9110, 4.1 recommends to support at least 8,000 octets, and
/// common servers reject longer request lines.
pub const MAX_URL_BYTES: usize = 8_000;

/// The kind of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinkKind {
    /// Another page.
    Page,
    /// A page requisite: needed to render the page.
    Requisite,
    /// A list of pages.
    List,
}

impl LinkKind {
    /// Its name, as in `unlost.html.links.LinkKind`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Requisite => "requisite",
            Self::List => "list",
        }
    }
}

/// Finds the links of a body.
///
/// `mime` is its declared type with parameters; `base` its URL; `charset` its declared encoding. Any input gives a
/// result, in time linear in the length of the body.
#[must_use]
pub fn find(body: &[u8], mime: Option<&str>, base: &str, charset: Option<&str>) -> ExtractedLinks {
    let document = Document::of(body, mime, base, charset);
    let Some(kind) = document.kind.filter(|kind| kind.has_links()) else {
        return ExtractedLinks::nothing(document.cut);
    };
    let mut references = References::default();
    let (read, encoding) = document.read(kind);
    references.reserve(read.source().bytes().len());
    let whole = ParseContext::whole(read.text());
    match kind {
        Kind::Html => walker::walk(&whole, read.source(), &mut references),
        Kind::Xhtml => xhtml::walk(&whole, &mut references),
        Kind::Feed => feeds::read(whole.text, &mut references),
        Kind::Css => elements::add_style(&whole, &mut references),
        Kind::Robots => lists::robots(whole.text, &mut references),
        Kind::UrlList => lists::urls(whole.text, &mut references),
        Kind::Xml | Kind::Text => {}
    }
    let resolve_all = Bases::of(&references, base, encoding).resolve_all(&references);
    ExtractedLinks {
        links: (resolve_all.links.iter())
            .map(|(uri, kind)| (uri.to_owned(), kind))
            .collect(),
        dropped: resolve_all.dropped,
        cut: document.cut,
    }
}
