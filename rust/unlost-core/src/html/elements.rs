//! Collects the references of an element from its attributes.

use std::borrow::Cow;
use std::ops::Range;

use super::link_attributes::{self, LINK_ATTRIBUTES, ValueKind};
use super::parse_context::{self, EscapeLayer, ParseContext};
use super::spans::{css, refresh, srcset};
use super::{LinkKind, attribute_names, scripts, walker};

/// The quotes of an attribute's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quote {
    Double,
    Single,
    None,
    /// No value.
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

/// An attribute as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute<'t> {
    pub name: &'t [u8],
    pub value: Cow<'t, str>,
    /// The offset of the name.
    pub name_at: usize,
    /// The offset of the value, without its quote.
    pub at: usize,
    pub quote: Quote,
}

/// A start tag as written. `inner` marks a page embedded in a page: `<noscript>`, `srcdoc`.
pub struct Element<'e, 't> {
    pub name: &'t [u8],
    pub attributes: &'e [Attribute<'t>],
    pub inner: bool,
    /// The text that contains it.
    pub context: &'e ParseContext<'e>,
}

/// The syntax around a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Nothing else.
    Alone,
    /// A candidate between blanks and commas, followed by sizes.
    Candidate,
    /// An item between blanks and commas.
    Listed,
    /// A refresh; `true` after `url=`.
    Refresh(bool),
    /// A CSS token with its quotes or brackets.
    Css,
    /// A script string with such quotes.
    Script(Quote),
}

/// A part of a text that is a URL.
pub struct UrlOccurrence<'p> {
    pub context: &'p ParseContext<'p>,
    pub span: Range<usize>,
    pub form: Form,
}

/// Receives references, base URLs and candidates.
pub trait LinkSink {
    /// Receives an unescaped URL, its kind, and the `codebase` that it is relative to, if there is one.
    fn add(
        &mut self,
        occurrence: UrlOccurrence<'_>,
        written: &str,
        kind: LinkKind,
        within: Option<&str>,
    );

    /// The base URL.
    fn add_base(&mut self, element: &Element<'_, '_>, written: &str);

    /// A URL that is not a link, but relative to the base.
    fn add_other(&mut self, _spot: UrlOccurrence<'_>, _written: &str) {}

    /// Whether to report scripts and the attributes that they read.
    fn collects_scripts(&self) -> bool {
        false
    }

    /// The value of a `data-*` attribute that is not a link by itself.
    fn add_data(&mut self, _value: &ParseContext<'_>) {}

    /// An event handler.
    fn add_handler(&mut self, _code: &ParseContext<'_>) {}

    /// A script between tags.
    fn add_script(&mut self, _code: &ParseContext<'_>) {}

    /// Called before the content of an element is reported.
    fn begin(&mut self, _element: &Element<'_, '_>) {}

    /// Called after the content of an element was reported.
    fn end(&mut self, _element: &Element<'_, '_>) {}
}

// Seen attributes are stored as the bits of a number.
const _: () = assert!(LINK_ATTRIBUTES.len() <= 64);

impl<'t> Element<'_, 't> {
    /// The unescaped value of an attribute; empty if there is none.
    pub fn value(&self, name: &str) -> Cow<'_, str> {
        self.attribute(name).map_or(Cow::Borrowed(""), |attribute| {
            parse_context::unescape_attribute(&attribute.value)
        })
    }

    /// The first attribute with a name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute<'t>> {
        debug_assert!(
            attribute_names::may_matter(name.as_bytes()),
            "{name} is not stored"
        );
        self.attributes
            .iter()
            .find(|attribute| attribute.name.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// Reports the references of the element.
    pub fn collect(&self, out: &mut impl LinkSink) {
        out.begin(self);
        let mut seen = 0_u64;
        let name = link_attributes::key(self.name);
        for attribute in self.attributes {
            let mut is_link = false;
            for (turn, index) in link_attributes::by_attribute(attribute.name).enumerate() {
                if turn == 0 {
                    // Of two attributes with one name, the first counts.
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

    /// Passes the value of an attribute with its context.
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
            ValueKind::Url(kind) => add_whole(value, kind, None, out),
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
                if let Some(kind) = link_attributes::kind_by_rel(&rel, &destination, &mime) {
                    add_whole(value, kind, None, out);
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

    /// Whether the `http-equiv` attribute has this value, case-insensitive.
    pub fn is_about(&self, header: &str) -> bool {
        self.value("http-equiv").trim().eq_ignore_ascii_case(header)
    }

    fn codebase(&self) -> Option<Cow<'_, str>> {
        Some(self.value("codebase")).filter(|codebase| !codebase.is_empty())
    }
}

/// A whole text as a URL.
pub fn whole_value<'p>(context: &'p ParseContext<'p>) -> UrlOccurrence<'p> {
    UrlOccurrence {
        context,
        span: 0..context.text.len(),
        form: Form::Alone,
    }
}

/// Reports a text that is a URL.
pub fn add_whole(
    context: &ParseContext<'_>,
    kind: LinkKind,
    within: Option<&str>,
    out: &mut impl LinkSink,
) {
    out.add(whole_value(context), context.text, kind, within);
}

fn add_part(
    context: &ParseContext<'_>,
    span: Range<usize>,
    form: Form,
    kind: LinkKind,
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
        kind,
        within,
    );
}

/// Reports the URLs in CSS.
pub fn add_style(context: &ParseContext<'_>, out: &mut impl LinkSink) {
    // Most declarations contain no URL, and searching for one is much cheaper than parsing them.
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
