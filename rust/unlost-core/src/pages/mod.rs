//! What is in a page: the links that lead on from it, its text, and how much that resembles another.
//!
//! Of links, three things are kept apart, since links are found and rewritten: which attributes carry links and what for
//! ([`carriers`]), where in a value the addresses are ([`spans`]), and what is done with them ([`find`], [`rewriting`]).

mod binary;
pub mod carriers;
mod charset;
mod document;
mod elements;
mod feeds;
mod found;
mod html;
mod joining;
mod kind;
mod lists;
mod names;
mod place;
mod references;
pub mod rewriting;
mod scan;
mod scripts;
pub mod shingles;
mod source;
mod spaces;
pub mod spans;
mod tags;
pub mod text;
mod unpacked;
mod window;
mod xhtml;
mod xml;

pub use found::Found;
pub use scripts::{candidates as script_candidates, of_page as page_candidates};

use document::Document;
use found::Bases;
use kind::Kind;
use place::Place;
use references::References;

/// So many bytes of a body are read: pages of more are made by machines, for machines.
pub const MAX_BODY_BYTES: usize = 32 << 20;

/// So many bytes are unpacked of a gzipped one: the sitemap protocol allows 50 MB.
pub const MAX_UNPACKED_BYTES: usize = 64 << 20;

/// Links of one body: twice what a sitemap may have.
pub const MAX_LINKS: usize = 100_000;

/// Longer addresses are left out: servers refuse them.
pub const MAX_ADDRESS_BYTES: usize = 8_000;

/// What a link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Use {
    /// Leads to another page.
    Page,
    /// Is needed to show the page.
    Requisite,
    /// Leads to a list of pages.
    List,
}

impl Use {
    /// The word for it, as in `unlost.html.links.Use`.
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
pub fn find(body: &[u8], mime: Option<&str>, base: &str, charset: Option<&str>) -> Found {
    let document = Document::of(body, mime, base, charset);
    let Some(kind) = document.kind.filter(|kind| kind.has_links()) else {
        return Found::nothing(document.cut);
    };
    let mut references = References::default();
    let (read, encoding) = document.read(kind);
    references.reserve(read.source().bytes().len());
    let whole = Place::whole(read.text());
    match kind {
        Kind::Html => html::walk(&whole, read.source(), &mut references),
        Kind::Xhtml => xhtml::walk(&whole, &mut references),
        Kind::Feed => feeds::read(whole.text, &mut references),
        Kind::Css => elements::style(&whole, &mut references),
        Kind::Robots => lists::robots(whole.text, &mut references),
        Kind::UrlList => lists::urls(whole.text, &mut references),
        Kind::Xml | Kind::Text => {}
    }
    let resolved = Bases::of(&references, base, encoding).resolved(&references);
    Found {
        links: (resolved.links.iter())
            .map(|(uri, purpose)| (uri.to_owned(), purpose))
            .collect(),
        left_out: resolved.left_out,
        cut: document.cut,
    }
}
