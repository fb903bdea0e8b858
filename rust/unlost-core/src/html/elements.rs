//! What an element refers to, by its attributes.

use std::borrow::Cow;
use std::ops::Range;

use super::link_attributes::{self, LINK_ATTRIBUTES, ValueKind};
use super::parse_context::{self, EscapeLayer, ParseContext};
use super::spans::{css, refresh, srcset};
use super::{LinkKind, attribute_names, scripts, walker};

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
    pub context: &'e ParseContext<'e>,
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
pub struct UrlOccurrence<'p> {
    pub context: &'p ParseContext<'p>,
    pub span: Range<usize>,
    pub form: Form,
}

/// Takes what is found.
pub trait LinkSink {
    /// An address as it is meant, what it is for, and what it is relative to beside the page's base.
    fn add(
        &mut self,
        occurrence: UrlOccurrence<'_>,
        written: &str,
        purpose: LinkKind,
        within: Option<&str>,
    );

    /// The address that others are relative to.
    fn add_base(&mut self, element: &Element<'_, '_>, written: &str);

    /// An address that is no link, but relative to the base like one.
    fn add_other(&mut self, _spot: UrlOccurrence<'_>, _written: &str) {}

    /// Whether what scripts read and run is told, too.
    fn collects_scripts(&self) -> bool {
        false
    }

    /// The value of a `data-*` attribute that is no link by itself.
    fn add_data(&mut self, _value: &ParseContext<'_>) {}

    /// An event handler.
    fn add_handler(&mut self, _code: &ParseContext<'_>) {}

    /// A script between tags.
    fn add_script(&mut self, _code: &ParseContext<'_>) {}

    /// An element is about to tell what it refers to.
    fn begin(&mut self, _element: &Element<'_, '_>) {}

    /// It has told.
    fn end(&mut self, _element: &Element<'_, '_>) {}
}

// Seen attributes are kept in the bits of a number.
const _: () = assert!(LINK_ATTRIBUTES.len() <= 64);

impl<'t> Element<'_, 't> {
    /// The value of an attribute without entities; empty if there is none.
    pub fn value(&self, name: &str) -> Cow<'_, str> {
        self.attribute(name).map_or(Cow::Borrowed(""), |attribute| {
            parse_context::unescape_attribute(&attribute.value)
        })
    }

    /// The first attribute of a name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute<'t>> {
        debug_assert!(
            attribute_names::may_matter(name.as_bytes()),
            "{name} is not kept"
        );
        self.attributes
            .iter()
            .find(|attribute| attribute.name.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// Tells what the element refers to.
    pub fn collect(&self, out: &mut impl LinkSink) {
        out.begin(self);
        let mut seen = 0_u64;
        let name = link_attributes::key(self.name);
        for attribute in self.attributes {
            let mut is_link = false;
            for (turn, index) in link_attributes::by_attribute(attribute.name).enumerate() {
                if turn == 0 {
                    // Of two attributes of one name, the first counts.
                    if seen & (1 << index) != 0 {
                        break;
                    }
                    seen |= 1 << index;
                }
                if link_attributes::applies_to(index, name) {
                    is_link = true;
                    self.read(attribute, |value| {
                        self.add(LINK_ATTRIBUTES[index].value_kind, value, out);
                    });
                    break;
                }
            }
            if !is_link
                && out.collects_scripts()
                && attribute_names::is_read_by_scripts(attribute.name)
            {
                self.read(attribute, |value| {
                    if attribute_names::is_data(attribute.name) {
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
    fn read(&self, attribute: &Attribute<'t>, take: impl FnOnce(&ParseContext<'_>)) {
        let text = parse_context::unescape_attribute(&attribute.value);
        let layer = EscapeLayer::Value(attribute.quote);
        let read;
        let value = if let Cow::Borrowed(written) = &attribute.value {
            (self.context).escaped_part(attribute.at, layer, written, &text)
        } else {
            read = self.context.read(attribute.at, &attribute.value);
            read.escaped(layer, &text)
        };
        take(&value);
    }

    fn add(&self, value_kind: ValueKind, value: &ParseContext<'_>, out: &mut impl LinkSink) {
        match value_kind {
            ValueKind::Url(purpose) => add_whole(value, purpose, None, out),
            ValueKind::Candidates => {
                for span in srcset::urls(value.text) {
                    add_part(value, span, Form::Candidate, LinkKind::Requisite, None, out);
                }
            }
            ValueKind::Style => add_style(value, out),
            ValueKind::Base => out.add_base(self, value.text),
            ValueKind::Other => out.add_other(whole_value(value), value.text),
            ValueKind::Lazy if value.text.contains("url(") => add_style(value, out),
            ValueKind::Lazy => {
                if scripts::looks_like_url(value.text) {
                    add_whole(value, LinkKind::Requisite, None, out);
                }
            }
            ValueKind::Markup if self.inner => {}
            ValueKind::ByRelation => {
                let (rel, destination, mime) =
                    (self.value("rel"), self.value("as"), self.value("type"));
                if let Some(purpose) = link_attributes::kind_by_rel(&rel, &destination, &mime) {
                    add_whole(value, purpose, None, out);
                }
            }
            ValueKind::ByMeta => self.add_meta(value, out),
            ValueKind::ImageButton => {
                if self.value("type").trim().eq_ignore_ascii_case("image") {
                    add_whole(value, LinkKind::Requisite, None, out);
                }
            }
            ValueKind::Parameter => {
                if link_attributes::is_parameter(&self.value("name")) {
                    add_whole(value, LinkKind::Requisite, None, out);
                }
            }
            ValueKind::Code => {
                add_whole(value, LinkKind::Requisite, self.codebase().as_deref(), out);
            }
            ValueKind::CodeList => {
                let codebase = self.codebase();
                let mut start = 0;
                for url in value.text.split([',', ' ', '\t', '\n', '\r', '\x0c']) {
                    let span = start..start + url.len();
                    start = span.end + 1;
                    let within = codebase.as_deref();
                    add_part(value, span, Form::Listed, LinkKind::Requisite, within, out);
                }
            }
            ValueKind::Markup => walker::walk_inner(value, out),
        }
    }

    fn add_meta(&self, content: &ParseContext<'_>, out: &mut impl LinkSink) {
        if self.is_about("refresh") {
            if let Some(span) = refresh::url(content.text) {
                let named = content.text[..span.start].contains('=');
                let form = Form::Refresh(named);
                add_part(content, span, form, LinkKind::Page, None, out);
            }
        } else if link_attributes::is_picture(&self.value("property"))
            || link_attributes::is_picture(&self.value("name"))
        {
            add_whole(content, LinkKind::Requisite, None, out);
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
pub fn whole_value<'p>(context: &'p ParseContext<'p>) -> UrlOccurrence<'p> {
    UrlOccurrence {
        context,
        span: 0..context.text.len(),
        form: Form::Alone,
    }
}

/// Tells a text that is an address.
pub fn add_whole(
    context: &ParseContext<'_>,
    purpose: LinkKind,
    within: Option<&str>,
    out: &mut impl LinkSink,
) {
    out.add(whole_value(context), context.text, purpose, within);
}

fn add_part(
    context: &ParseContext<'_>,
    span: Range<usize>,
    form: Form,
    purpose: LinkKind,
    within: Option<&str>,
    out: &mut impl LinkSink,
) {
    let written = &context.text[span.clone()];
    out.add(
        UrlOccurrence {
            context,
            span,
            form,
        },
        written,
        purpose,
        within,
    );
}

/// Tells what CSS refers to.
pub fn add_style(context: &ParseContext<'_>, out: &mut impl LinkSink) {
    // Most declarations need nothing, and seeing that is much cheaper than reading them.
    if memchr::memchr2(b'(', b'@', context.text.as_bytes()).is_some() {
        css::urls(context.text, |url| {
            let occurrence = UrlOccurrence {
                context,
                span: url.span,
                form: Form::Css,
            };
            out.add(occurrence, &url.value, LinkKind::Requisite, None);
        });
    }
}
