//! Addresses replaced where they stand; every other byte stays as it was.
//!
//! First the document is read like for [`super::find`], and where each address stands is kept ([`Spotted`]). Whoever wants
//! it rewritten answers for each link; then what is new is put in its place ([`Spotted::splice`]).

mod css_token;
mod declared;
mod directory;
mod raw;
mod splicing;
mod spots;
mod writing;

use std::borrow::Cow;
use std::ops::Range;

use encoding_rs::{Encoding, ISO_2022_JP, UTF_16BE, UTF_16LE};

use super::document::{Document, Read};
use super::found::{Bases, Links, Resolved};
use super::kind::Kind;
use super::place::Place;
use super::{Use, elements, html, scripts, xhtml};
use spots::{Guarded, Spots};

pub use directory::{Directory, Sign};
pub use splicing::{Plan, Spliced};
pub use writing::{Answer, Spelled};

/// What else is to change in a page that is opened elsewhere.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Options {
    /// A `<base>` has no effect any more: links that are not replaced get the address that they had by it.
    pub drop_base: bool,
    /// Nothing compares what a replaced address leads to with what was there once.
    pub drop_integrity: bool,
    /// No policy says from where a page may load what.
    pub drop_policy: bool,
    /// What scripts may use is found, too: see [`Spotted::candidates`].
    pub candidates: bool,
}

/// A document in which the addresses have been found.
#[derive(Default)]
pub struct Spotted {
    spots: Spots,
    bases: Option<Bases>,
    links: Option<Resolved>,
    others: Option<Resolved>,
    candidates: Option<Resolved>,
    options: Options,
    /// What is rewritten if it is not the body itself: what was packed, or in an encoding that has no ASCII.
    instead: Option<Vec<u8>>,
    declared: Vec<Range<usize>>,
    /// What it is written in; `None` if it is no document that has links.
    pub encoding: Option<&'static str>,
    /// Whether what is rewritten will be in UTF-8 since its encoding cannot be written piece by piece.
    pub transcoded: bool,
    /// Whether the body is packed, and what is rewritten is not.
    pub unpacked: bool,
    /// Whether it is longer than what is rewritten, or damaged.
    pub cut: bool,
}

impl Spotted {
    /// The links to answer for.
    pub fn links(&self) -> impl ExactSizeIterator<Item = (&str, Use)> + Clone {
        let links = self.links.as_ref().map(|resolved| &resolved.links);
        let number = links.map_or(0, Links::len);
        (0..number).map(move |nth| links.map_or(("", Use::Page), |links| links.get(nth)))
    }

    /// URLs that scripts of the page may use, to answer for: values of `data-*` attributes, strings in event handlers, and
    /// those in inline scripts that the browser is sent to. None of them must be a URL, so only one that is known to be there
    /// should get an answer; without one it stays as it is written.
    pub fn candidates(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        let candidates = self.candidates.as_ref().map(|resolved| &resolved.links);
        let number = candidates.map_or(0, Links::len);
        (0..number).map(move |nth| candidates.map_or("", |links| links.get(nth).0))
    }

    /// Whether a page says itself what it may load from where.
    #[must_use]
    pub fn has_policy(&self) -> bool {
        let mut guards = self.spots.guards.iter();
        guards.any(|guard| guard.what == Guarded::Policy)
    }

    /// How many addresses cannot be replaced since they are too long or too many.
    #[must_use]
    pub fn left(&self) -> usize {
        self.spots.left + self.links.as_ref().map_or(0, |links| links.left_out)
    }
}

/// Finds the addresses of a page, a drawing or a style sheet; what is asked is as in [`super::find`].
#[must_use]
pub fn find(
    body: &[u8],
    mime: Option<&str>,
    base: &str,
    charset: Option<&str>,
    options: Options,
) -> Spotted {
    let document = Document::of(body, mime, base, charset);
    let kind = match document.kind {
        Some(kind @ (Kind::Html | Kind::Xhtml | Kind::Css)) if !document.cut => kind,
        _ => {
            return Spotted {
                cut: document.cut,
                ..Spotted::default()
            };
        }
    };
    let (read, encoding) = document.read(kind);
    let mut spots = Spots::default();
    spots.host = options.candidates.then(|| scripts::host_of(base));
    spots.read(&read, kind);
    let bases = Bases::of(&spots.links, base, encoding);
    let links = bases.resolved(&spots.links);
    let others = (spots.others.len() > 0).then(|| bases.resolved(&spots.others));
    let candidates = (spots.candidates.len() > 0).then(|| bases.resolved(&spots.candidates));
    let is_foreign = [UTF_16LE, UTF_16BE, ISO_2022_JP].contains(&encoding);
    let mark = Encoding::for_bom(&document.body).map_or(0, |(_, length)| length);
    let transcoded = is_foreign && read.moved().is_some();
    let mut declared = Vec::new();
    if transcoded {
        declared = declared::names(read.text(), kind);
    } else if mark > 0 || read.moved().is_some() {
        spots.place_in(&document.body, mark, read.moved());
    }
    let text = transcoded.then(|| read.text().as_bytes().to_vec());
    let (unpacked, packed) = match document.body {
        Cow::Owned(unpacked) => (Some(unpacked), true),
        Cow::Borrowed(_) => (None, false),
    };
    Spotted {
        spots,
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

impl Spots {
    /// Reads all of a document.
    fn read(&mut self, read: &Read<'_>, kind: Kind) {
        self.reserve(read.source().bytes().len());
        let whole = Place::whole(read.text());
        match kind {
            Kind::Html => html::walk(&whole, read.source(), self),
            Kind::Xhtml => xhtml::walk(&whole, self),
            _ => elements::style(&whole, self),
        }
    }

    /// Makes places in the text those in the body, whose first `mark` bytes are not in the text. `text` is none if the
    /// bytes are the text.
    fn place_in(&mut self, body: &[u8], mark: usize, text: Option<&str>) {
        let mut wanted: Vec<usize> = Vec::new();
        let mut found = Vec::new();
        if let Some(text) = text {
            let spots = self.written.iter();
            wanted.extend(
                spots
                    .flat_map(|spot| [spot.start, spot.end, spot.whole_end])
                    .map(at),
            );
            wanted.extend(self.guards.iter().map(|guard| at(guard.name_at)));
            wanted.sort_unstable();
            wanted.dedup();
            found = raw::places(text, &body[mark..], &wanted);
        }
        let place = |in_text: u32| {
            let place = match text {
                None => Some(at(in_text)),
                Some(_) => wanted
                    .binary_search(&at(in_text))
                    .ok()
                    .and_then(|nth| found[nth]),
            };
            place.and_then(|place| u32::try_from(place + mark).ok())
        };
        for spot in &mut self.written {
            let whole = (place(spot.start), place(spot.end), place(spot.whole_end));
            if let (Some(start), Some(end), Some(whole_end)) = whole {
                (spot.start, spot.end, spot.whole_end) = (start, end, whole_end);
            } else {
                // Nothing is there: it cannot be replaced.
                (spot.start, spot.end, spot.whole_end) = (u32::MAX, 0, 0);
                self.left += 1;
            }
        }
        self.guards.retain_mut(|guard| match place(guard.name_at) {
            Some(name_at) => {
                guard.name_at = name_at;
                true
            }
            None => false,
        });
    }
}

fn at(place: u32) -> usize {
    place as usize
}
