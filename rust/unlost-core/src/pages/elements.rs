//! What an element refers to, by its attributes.

use std::borrow::Cow;
use std::ops::Range;

use super::carriers::{self, CARRIERS, Holds};
use super::place::{self, Layer, Place};
use super::spans::{css, refresh, srcset};
use super::{Use, html, names, scripts};

/// What an attribute's value stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quote {
    Double,
    Single,
    None,
    /// There is no value.
    Missing,
}

impl Quote {
    pub fn of(mark: u8) -> Self {
        if mark == b'"' {
            Self::Double
        } else {
            Self::Single
        }
    }
}

/// An attribute as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute<'t> {
    pub name: &'t [u8],
    pub value: Cow<'t, str>,
    /// Where the name begins.
    pub name_at: usize,
    /// Where the value begins, without its quote.
    pub at: usize,
    pub quote: Quote,
}

/// A start tag as it is written. `inner` is one in a page that is itself inside a page: `<noscript>`, `srcdoc`.
pub struct Element<'e, 't> {
    pub name: &'t [u8],
    pub attributes: &'e [Attribute<'t>],
    pub inner: bool,
    /// The text that it stands in.
    pub place: &'e Place<'e>,
}

/// How an address stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// By itself.
    Alone,
    /// Between blanks and commas, with sizes after it.
    Candidate,
    /// Between blanks and commas.
    Listed,
    /// In a refresh; `true` if `url=` is before it.
    Refresh(bool),
    /// In CSS: the token that it is, quotes, brackets and all.
    Css,
    /// In a script: all of a string between such quotes.
    Script(Quote),
}

/// A part of a text that is an address.
pub struct Spot<'p> {
    pub place: &'p Place<'p>,
    pub span: Range<usize>,
    pub form: Form,
}

/// Takes what is found.
pub trait Sink {
    /// An address as it is meant, what it is for, and what it is relative to beside the page's base.
    fn add(&mut self, spot: Spot<'_>, written: &str, purpose: Use, within: Option<&str>);

    /// The address that others are relative to.
    fn add_base(&mut self, element: &Element<'_, '_>, written: &str);

    /// An address that is no link, but relative to the base like one.
    fn add_other(&mut self, _spot: Spot<'_>, _written: &str) {}

    /// Whether what scripts read and run is told, too.
    fn wants_scripts(&self) -> bool {
        false
    }

    /// The value of a `data-*` attribute that is no link by itself.
    fn add_data(&mut self, _value: &Place<'_>) {}

    /// An event handler.
    fn add_handler(&mut self, _code: &Place<'_>) {}

    /// A script between tags.
    fn add_script(&mut self, _code: &Place<'_>) {}

    /// An element is about to tell what it refers to.
    fn begin(&mut self, _element: &Element<'_, '_>) {}

    /// It has told.
    fn end(&mut self, _element: &Element<'_, '_>) {}
}

// Seen attributes are kept in the bits of a number.
const _: () = assert!(CARRIERS.len() <= 64);

impl<'t> Element<'_, 't> {
    /// The value of an attribute without entities; empty if there is none.
    pub fn value(&self, name: &str) -> Cow<'_, str> {
        self.attribute(name).map_or(Cow::Borrowed(""), |attribute| {
            place::value(&attribute.value)
        })
    }

    /// The first attribute of a name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute<'t>> {
        debug_assert!(names::may_matter(name.as_bytes()), "{name} is not kept");
        self.attributes
            .iter()
            .find(|attribute| attribute.name.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// Tells what the element refers to.
    pub fn collect(&self, out: &mut impl Sink) {
        out.begin(self);
        let mut seen = 0_u64;
        let name = carriers::key(self.name);
        for attribute in self.attributes {
            let mut is_link = false;
            for (turn, place) in carriers::named(attribute.name).enumerate() {
                if turn == 0 {
                    // Of two attributes of one name, the first counts.
                    if seen & (1 << place) != 0 {
                        break;
                    }
                    seen |= 1 << place;
                }
                if carriers::is_on(place, name) {
                    is_link = true;
                    self.read(attribute, |value| {
                        self.add(CARRIERS[place].holds, value, out);
                    });
                    break;
                }
            }
            if !is_link && out.wants_scripts() && names::is_for_scripts(attribute.name) {
                self.read(attribute, |value| {
                    if names::is_data(attribute.name) {
                        out.add_data(value);
                    } else {
                        out.add_handler(value);
                    }
                });
            }
        }
        out.end(self);
    }

    /// Gives the value of an attribute, where it stands.
    #[inline]
    fn read(&self, attribute: &Attribute<'t>, take: impl FnOnce(&Place<'_>)) {
        let text = place::value(&attribute.value);
        let layer = Layer::Value(attribute.quote);
        let read;
        let value = if let Cow::Borrowed(written) = &attribute.value {
            (self.place).escaped_part(attribute.at, layer, written, &text)
        } else {
            read = self.place.read(attribute.at, &attribute.value);
            read.escaped(layer, &text)
        };
        take(&value);
    }

    fn add(&self, holds: Holds, value: &Place<'_>, out: &mut impl Sink) {
        match holds {
            Holds::Address(purpose) => add_whole(value, purpose, None, out),
            Holds::Candidates => {
                for span in srcset::addresses(value.text) {
                    add_part(value, span, Form::Candidate, Use::Requisite, None, out);
                }
            }
            Holds::Style => style(value, out),
            Holds::Base => out.add_base(self, value.text),
            Holds::Other => out.add_other(whole(value), value.text),
            Holds::Lazy if value.text.contains("url(") => style(value, out),
            Holds::Lazy => {
                if scripts::looks_like_address(value.text) {
                    add_whole(value, Use::Requisite, None, out);
                }
            }
            Holds::Markup if self.inner => {}
            Holds::ByRelation => {
                let (rel, destination, mime) =
                    (self.value("rel"), self.value("as"), self.value("type"));
                if let Some(purpose) = carriers::by_relation(&rel, &destination, &mime) {
                    add_whole(value, purpose, None, out);
                }
            }
            Holds::ByMeta => self.add_meta(value, out),
            Holds::ImageButton => {
                if self.value("type").trim().eq_ignore_ascii_case("image") {
                    add_whole(value, Use::Requisite, None, out);
                }
            }
            Holds::Parameter => {
                if carriers::is_parameter(&self.value("name")) {
                    add_whole(value, Use::Requisite, None, out);
                }
            }
            Holds::Code => add_whole(value, Use::Requisite, self.codebase().as_deref(), out),
            Holds::CodeList => {
                let codebase = self.codebase();
                let mut start = 0;
                for address in value.text.split([',', ' ', '\t', '\n', '\r', '\x0c']) {
                    let span = start..start + address.len();
                    start = span.end + 1;
                    let within = codebase.as_deref();
                    add_part(value, span, Form::Listed, Use::Requisite, within, out);
                }
            }
            Holds::Markup => html::walk_inner(value, out),
        }
    }

    fn add_meta(&self, content: &Place<'_>, out: &mut impl Sink) {
        if self.is_about("refresh") {
            if let Some(span) = refresh::address(content.text) {
                let named = content.text[..span.start].contains('=');
                let form = Form::Refresh(named);
                add_part(content, span, form, Use::Page, None, out);
            }
        } else if carriers::is_picture(&self.value("property"))
            || carriers::is_picture(&self.value("name"))
        {
            add_whole(content, Use::Requisite, None, out);
        }
    }

    /// Whether its `http-equiv` is this.
    pub fn is_about(&self, header: &str) -> bool {
        self.value("http-equiv").trim().eq_ignore_ascii_case(header)
    }

    fn codebase(&self) -> Option<Cow<'_, str>> {
        Some(self.value("codebase")).filter(|codebase| !codebase.is_empty())
    }
}

/// All of a text as an address.
pub fn whole<'p>(place: &'p Place<'p>) -> Spot<'p> {
    Spot {
        place,
        span: 0..place.text.len(),
        form: Form::Alone,
    }
}

/// Tells a text that is an address.
pub fn add_whole(place: &Place<'_>, purpose: Use, within: Option<&str>, out: &mut impl Sink) {
    out.add(whole(place), place.text, purpose, within);
}

fn add_part(
    place: &Place<'_>,
    span: Range<usize>,
    form: Form,
    purpose: Use,
    within: Option<&str>,
    out: &mut impl Sink,
) {
    let written = &place.text[span.clone()];
    out.add(Spot { place, span, form }, written, purpose, within);
}

/// Tells what CSS refers to.
pub fn style(place: &Place<'_>, out: &mut impl Sink) {
    // Most declarations need nothing, and seeing that is much cheaper than reading them.
    if memchr::memchr2(b'(', b'@', place.text.as_bytes()).is_some() {
        css::addresses(place.text, |address| {
            let spot = Spot {
                place,
                span: address.span,
                form: Form::Css,
            };
            out.add(spot, &address.value, Use::Requisite, None);
        });
    }
}
