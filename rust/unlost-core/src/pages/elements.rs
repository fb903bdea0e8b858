//! What an element refers to, by its attributes.

use std::borrow::Cow;

use super::carriers::{self, CARRIERS, Holds};
use super::references::References;
use super::spans::{css, refresh, srcset};
use super::{Use, html};

/// An attribute as it is written.
#[derive(Clone, Copy)]
pub struct Attribute<'t> {
    pub name: &'t str,
    pub value: &'t str,
}

/// A start tag as it is written. `inner` is one in a page that is itself inside a page: `<noscript>`, `srcdoc`.
pub struct Element<'e, 't> {
    pub name: &'t str,
    pub attributes: &'e [Attribute<'t>],
    pub inner: bool,
}

// Seen attributes are kept in the bits of a number.
const _: () = assert!(CARRIERS.len() <= 64);

impl<'t> Element<'_, 't> {
    /// The value of an attribute without entities; empty if there is none.
    fn value(&self, name: &str) -> Cow<'t, str> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name.eq_ignore_ascii_case(name))
            .map_or(Cow::Borrowed(""), |attribute| plain(attribute.value))
    }

    /// Adds what the element refers to.
    pub fn collect(&self, out: &mut References) {
        let mut seen = 0_u64;
        for attribute in self.attributes {
            for (turn, (place, carrier)) in carriers::named(attribute.name).enumerate() {
                if turn == 0 {
                    // Of two attributes of one name, the first counts.
                    if seen & (1 << place) != 0 {
                        break;
                    }
                    seen |= 1 << place;
                }
                if carrier.is_on(self.name) {
                    self.add(carrier.holds, &plain(attribute.value), out);
                    break;
                }
            }
        }
    }

    fn add(&self, holds: Holds, value: &str, out: &mut References) {
        match holds {
            Holds::Address(purpose) => out.add(value, purpose),
            Holds::Candidates => {
                for span in srcset::addresses(value) {
                    out.add(&value[span], Use::Requisite);
                }
            }
            Holds::Style => style(value, out),
            Holds::Base | Holds::Markup if self.inner => {}
            Holds::Base => out.set_base(value),
            Holds::ByRelation => {
                let (rel, destination, mime) =
                    (self.value("rel"), self.value("as"), self.value("type"));
                if let Some(purpose) = carriers::by_relation(&rel, &destination, &mime) {
                    out.add(value, purpose);
                }
            }
            Holds::ByMeta => self.add_meta(value, out),
            Holds::ImageButton => {
                if self.value("type").trim().eq_ignore_ascii_case("image") {
                    out.add(value, Use::Requisite);
                }
            }
            Holds::Parameter => {
                if carriers::is_parameter(&self.value("name")) {
                    out.add(value, Use::Requisite);
                }
            }
            Holds::Code => out.add_within(value, Use::Requisite, self.codebase().as_deref()),
            Holds::CodeList => {
                let codebase = self.codebase();
                for address in value.split([',', ' ', '\t', '\n', '\r', '\x0c']) {
                    out.add_within(address, Use::Requisite, codebase.as_deref());
                }
            }
            Holds::Markup => html::walk_inner(value, out),
        }
    }

    fn add_meta(&self, content: &str, out: &mut References) {
        if self
            .value("http-equiv")
            .trim()
            .eq_ignore_ascii_case("refresh")
        {
            if let Some(span) = refresh::address(content) {
                out.add(&content[span], Use::Page);
            }
        } else if carriers::is_picture(&self.value("property"))
            || carriers::is_picture(&self.value("name"))
        {
            out.add(content, Use::Requisite);
        }
    }

    fn codebase(&self) -> Option<Cow<'t, str>> {
        Some(self.value("codebase")).filter(|codebase| !codebase.is_empty())
    }
}

/// Adds what CSS refers to.
pub fn style(text: &str, out: &mut References) {
    // Most declarations need nothing, and seeing that is much cheaper than reading them.
    if memchr::memchr2(b'(', b'@', text.as_bytes()).is_some() {
        css::addresses(text, |address| out.add(&address.value, Use::Requisite));
    }
}

/// The value of an attribute as a browser has it.
fn plain(value: &str) -> Cow<'_, str> {
    let value = if value.contains('&') {
        htmlize::unescape_attribute(value)
    } else {
        Cow::Borrowed(value)
    };
    if value.contains('\0') {
        return value.replace('\0', "\u{fffd}").into();
    }
    value
}
