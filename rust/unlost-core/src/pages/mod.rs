//! What is in a page: the links that lead on from it.
//!
//! Three things are kept apart, since links are to be rewritten one day where they are now only found: which attributes
//! carry links and what for ([`carriers`]), where in a value the addresses are ([`spans`]), and what is done with them.

pub mod carriers;
mod charset;
mod elements;
mod feeds;
mod found;
mod html;
mod kind;
mod lists;
mod references;
pub mod spans;
mod unpacked;
mod xhtml;
mod xml;

pub use found::Found;

use kind::Kind;
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
    /// The word for it, as in `unlost.pages.link.Use`.
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
    let mut cut = body.len() > MAX_BODY_BYTES;
    let body = &body[..body.len().min(MAX_BODY_BYTES)];
    let (body, packed) = unpacked::unpacked(body, &mut cut);
    let label = charset.or_else(|| kind::parameter(mime?, "charset"));
    let kind = Kind::of(&body, if packed { None } else { mime }, base);
    let mut references = References::default();
    let Some(kind) = kind else {
        return Found::nothing(cut);
    };
    let (text, encoding) = charset::decoded(&body, label, kind);
    match kind {
        Kind::Html => html::walk(&text, &mut references),
        Kind::Xhtml => xhtml::walk(&text, &mut references),
        Kind::Feed => feeds::read(&text, &mut references),
        Kind::Css => elements::style(&text, &mut references),
        Kind::Robots => lists::robots(&text, &mut references),
        Kind::UrlList => lists::urls(&text, &mut references),
    }
    found::resolved(&references, base, encoding, cut)
}
