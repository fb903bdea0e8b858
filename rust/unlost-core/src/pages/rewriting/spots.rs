//! Where in a document the addresses stand, and what else has to change with them.

use std::ops::Range;

use super::css_token;
use super::writing::{Between, Manner};
use crate::pages::Use;
use crate::pages::elements::{Element, Form, Sink, Spot};
use crate::pages::references::{self, References};

/// Addresses that are kept of one body, each of some ten bytes in memory: ten times what there may be of different links.
const MAX_SPOTS: usize = 10 * crate::pages::MAX_LINKS;

/// An address that is written in a document; places are of the text at first, of the bytes in the end.
#[derive(Debug)]
pub struct Written {
    pub start: u32,
    /// Where the address ends, and where its fragment does.
    pub end: u32,
    pub whole_end: u32,
    pub manner: Manner,
    /// Where it is in the references, and in which of them.
    pub reference: u32,
    pub is_link: bool,
    /// The fragment, if its place is not known.
    pub fragment: Option<Box<str>>,
    /// How many semicolons must be before it.
    pub semicolons: u8,
}

/// An attribute that gets another name if one of the addresses of its element changes.
#[derive(Debug)]
pub struct Guard {
    pub name_at: u32,
    pub prefix: &'static str,
    pub what: Guarded,
    /// Which of the spots are those of the element.
    pub spots: Range<usize>,
}

/// What an attribute does to the addresses of its element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarded {
    /// It makes browsers refuse copies.
    Content,
    /// It makes addresses relative to another.
    Codebase,
    /// It is the `href` of a `<base>`, or what makes a `<meta>` a policy, and has no address beside it.
    Base,
    Policy,
}

/// All of a document.
#[derive(Default)]
pub struct Spots {
    /// The links.
    pub links: References,
    /// What is no link, but relative to the base.
    pub others: References,
    pub written: Vec<Written>,
    pub guards: Vec<Guard>,
    pub left: usize,
    begun: Vec<usize>,
}

impl Spots {
    fn note(&mut self, spot: &Spot<'_>, meant: &str, reference: usize, is_link: bool) {
        let written = (self.written.len() < MAX_SPOTS)
            .then(|| located(spot, meant, reference, is_link))
            .flatten();
        match written {
            Some(written) => self.written.push(written),
            None => self.left += 1,
        }
    }

    fn guard(&mut self, element: &Element<'_, '_>, name: &str, name_at: usize, what: Guarded) {
        let spots = self.begun.last().map_or(0, |&begun| begun)..self.written.len();
        // Nobody writes an entity without its end right before a name.
        if element.place.unended(name_at) > 0 {
            self.left += 1;
            return;
        }
        let name_at = element.place.outward(name_at..name_at).start;
        // No name may be there twice in XML.
        let is_there = element.attributes.iter().any(|attribute| {
            let other = attribute.name.as_bytes();
            other.len() == name.len() + 5
                && other[..5].eq_ignore_ascii_case(b"data-")
                && other[5..].eq_ignore_ascii_case(name.as_bytes())
        });
        if let Ok(name_at) = u32::try_from(name_at)
            && self.guards.len() < MAX_SPOTS
        {
            self.guards.push(Guard {
                name_at,
                prefix: if is_there { "data-was-" } else { "data-" },
                what,
                spots,
            });
        } else {
            self.left += 1;
        }
    }
}

impl Sink for Spots {
    fn add(&mut self, spot: Spot<'_>, written: &str, purpose: Use, within: Option<&str>) {
        if let Some(reference) = self.links.place(written, purpose, within) {
            self.note(&spot, written, reference, true);
        }
    }

    fn add_base(&mut self, element: &Element<'_, '_>, name_at: usize, written: &str) {
        self.links.add_base(element, name_at, written);
        self.guard(element, "href", name_at, Guarded::Base);
    }

    fn add_other(&mut self, spot: Spot<'_>, written: &str) {
        if let Some(reference) = self.others.place(written, Use::Page, None) {
            self.note(&spot, written, reference, false);
        }
    }

    fn begin(&mut self, _element: &Element<'_, '_>) {
        self.begun.push(self.written.len());
    }

    fn end(&mut self, element: &Element<'_, '_>) {
        for attribute in element.attributes {
            // Most names are none of these, which their lengths tell.
            let what = match attribute.name.len() {
                9 | 11 if is_one_of(attribute.name, &["integrity", "crossorigin"]) => {
                    Guarded::Content
                }
                8 if is_one_of(attribute.name, &["codebase"]) => Guarded::Codebase,
                10 if is_one_of(attribute.name, &["http-equiv"])
                    && is_one_of(element.name, &["meta"])
                    && element.is_about("content-security-policy") =>
                {
                    Guarded::Policy
                }
                _ => continue,
            };
            self.guard(element, attribute.name, attribute.name_at, what);
        }
        self.begun.pop();
    }
}

fn is_one_of(name: &str, known: &[&str]) -> bool {
    known.iter().any(|each| name.eq_ignore_ascii_case(each))
}

/// Where an address stands in the whole document. `None` if it stands too deep.
fn located(spot: &Spot<'_>, meant: &str, reference: usize, is_link: bool) -> Option<Written> {
    let mut between = Between::from(spot.form);
    let mut span = spot.span.clone();
    let mut is_plain = true;
    if spot.form == Form::Css {
        let token = css_token::inside(&spot.place.text[span.clone()]);
        span = span.start + token.span.start..span.start + token.span.end;
        (between, is_plain) = (token.between, token.is_plain);
    }
    let manner = Manner::of(spot, between)?;
    let mut address = span.clone();
    let mut fragment = None;
    if is_plain {
        let text = &spot.place.text[span.clone()];
        let inside = references::address(text);
        address = span.start + inside.start..span.start + inside.end;
        span.end = span.start + text.trim_end_matches(references::is_outside).len();
    } else {
        // Where the fragment begins among escapes is not known, but what it is.
        let meant = meant.trim_matches(references::is_outside);
        fragment = meant.find('#').map(|at| meant[at..].into());
    }
    let semicolons = u8::try_from(spot.place.unended(address.start)).ok()?;
    let address = spot.place.outward(address);
    let whole_end = spot.place.outward(span.end..span.end).end;
    Some(Written {
        start: u32::try_from(address.start).ok()?,
        end: u32::try_from(address.end).ok()?,
        whole_end: u32::try_from(whole_end).ok()?,
        manner,
        reference: u32::try_from(reference).ok()?,
        is_link,
        fragment,
        semicolons,
    })
}
