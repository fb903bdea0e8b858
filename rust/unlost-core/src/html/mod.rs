//! What is in a page: the links that lead on from it, its text, and how much that resembles another.
//!
//! Of links, three things are kept apart, since links are found and rewritten: which attributes carry links and what for
//! ([`carriers`]), where in a value the addresses are ([`spans`]), and what is done with them ([`find`], [`rewriting`]).

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

/// So many bytes of a body are read: pages of more are made by machines, for machines.
pub const MAX_BODY_BYTES: usize = 32 << 20;

/// So many bytes are unpacked of a gzipped one: the sitemap protocol allows 50 MB.
pub const MAX_UNPACKED_BYTES: usize = 64 << 20;

/// Links of one body: twice what a sitemap may have.
pub const MAX_LINKS: usize = 100_000;

/// Longer addresses are left out: servers refuse them.
pub const MAX_URL_BYTES: usize = 8_000;

/// What a link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinkKind {
    /// Leads to another page.
    Page,
    /// Is needed to show the page.
    Requisite,
    /// Leads to a list of pages.
    List,
}

impl LinkKind {
    /// The word for it, as in `unlost.pages.link.LinkKind`.
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
/// `mime` is its type as it was told, parameters and all; `base` the address that it was found at; `charset` what it was
/// said to be written in. Whatever these or the body are, there is an answer, in time that grows with the body's length.
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
            .map(|(uri, purpose)| (uri.to_owned(), purpose))
            .collect(),
        dropped: resolve_all.dropped,
        cut: document.cut,
    }
}
