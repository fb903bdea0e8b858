//! The positions of URLs in a document, and the attributes that must change with them.

use std::ops::Range;

use super::css_token;
use super::url_writer::{EscapeStyle, UrlSyntax};
use crate::html::LinkKind;
use crate::html::elements::{Element, Form, LinkSink, UrlOccurrence, whole_value};
use crate::html::parse_context::ParseContext;
use crate::html::references::{References, Span};
use crate::html::scripts;

/// The maximum number of URLs of a body, each of some ten bytes in memory: ten times that of distinct links.
const MAX_URL_OCCURRENCES: usize = 10 * crate::html::MAX_LINKS;

/// The average bytes of a page per URL, for allocation. Measured on real pages: 160.
const BYTES_PER_URL_OCCURRENCE: usize = 96;

/// A URL in a document. Offsets are initially those of the text, finally those of the bytes.
#[derive(Debug)]
pub struct WrittenUrl {
    pub start: u32,
    /// The end of the URL without and with its fragment.
    pub end: u32,
    pub whole_end: u32,
    pub escape_style: EscapeStyle,
    /// Its reference, and the list that contains it.
    pub reference: u32,
    pub list: ReferenceList,
    /// The fragment, if its position is not known.
    pub fragment: Option<Box<str>>,
    /// The number of semicolons that must precede a replacement.
    pub semicolons: u8,
}

/// The lists of references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceList {
    /// The links.
    Links,
    /// URLs that are not links, but relative to the base.
    Others,
    /// URLs that scripts may use.
    Candidates,
}

/// An attribute that is renamed if a URL of its element is replaced.
#[derive(Debug)]
pub struct GuardedAttribute {
    pub name_at: u32,
    pub prefix: &'static str,
    pub what: GuardEffect,
    /// The range of the element's URLs.
    pub occurrences: Range<usize>,
}

/// The effect of an attribute on the URLs of its element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardEffect {
    /// Makes browsers reject changed content.
    Content,
    /// Makes URLs relative to another one.
    Codebase,
    /// The `href` of a `<base>`, or the attribute that makes a `<meta>` a policy; independent of other URLs.
    Base,
    Policy,
}

/// Attribute names and their effects; the lengths of the names are 8, 9, 10 and 11.
const GUARDS: [(&str, GuardEffect); 4] = [
    ("codebase", GuardEffect::Codebase),
    ("integrity", GuardEffect::Content),
    ("http-equiv", GuardEffect::Policy),
    ("crossorigin", GuardEffect::Content),
];

/// All occurrences of a document.
#[derive(Default)]
pub struct UrlOccurrences {
    /// The links.
    pub links: References,
    /// URLs that are not links, but relative to the base.
    pub others: References,
    /// URLs that scripts may use.
    pub candidates: References,
    /// The host of the page, if candidates are requested.
    pub host: Option<String>,
    pub written: Vec<WrittenUrl>,
    pub guards: Vec<GuardedAttribute>,
    pub not_replaced: usize,
    open_elements: Vec<usize>,
}

impl UrlOccurrences {
    /// Reserves memory for the average of a text of this length.
    pub fn reserve(&mut self, length: usize) {
        self.links.reserve(length);
        self.written.reserve(length / BYTES_PER_URL_OCCURRENCE);
    }

    fn note(
        &mut self,
        occurrence: &UrlOccurrence<'_>,
        unescaped: (&str, Span),
        reference: usize,
        list: ReferenceList,
    ) {
        let written = (self.written.len() < MAX_URL_OCCURRENCES)
            .then(|| locate(occurrence, unescaped, reference, list))
            .flatten();
        match written {
            Some(written) => self.written.push(written),
            None => self.not_replaced += 1,
        }
    }

    fn add_candidate(&mut self, occurrence: &UrlOccurrence<'_>) {
        let written = &occurrence.context.text[occurrence.span.clone()];
        let span = Span::of(written);
        let url = span.without_fragment(written);
        if let Some(reference) = self.candidates.index_of(url, LinkKind::Page, None) {
            self.note(
                occurrence,
                (written, span),
                reference,
                ReferenceList::Candidates,
            );
        }
    }

    /// Marks all attributes of a name for renaming. Of two the first counts, but once it is renamed, the second would.
    fn guard(&mut self, element: &Element<'_, '_>, name: &str, what: GuardEffect) {
        let occurrences =
            self.open_elements
                .last()
                .map_or(0, |&open_elements| open_elements)..self.written.len();
        // XML does not allow a name twice.
        let is_there = element.attributes.iter().any(|attribute| {
            let other = attribute.name;
            other.len() == name.len() + 5
                && other[..5].eq_ignore_ascii_case(b"data-")
                && other[5..].eq_ignore_ascii_case(name.as_bytes())
        });
        for attribute in element.attributes {
            if !attribute.name.eq_ignore_ascii_case(name.as_bytes()) {
                continue;
            }
            // Unterminated entities right before a name do not occur in practice.
            let is_ended = element.context.unterminated_entities(attribute.name_at) == 0;
            let name_at = element
                .context
                .document_range(attribute.name_at..attribute.name_at);
            if let Ok(name_at) = u32::try_from(name_at.start)
                && is_ended
                && self.guards.len() < MAX_URL_OCCURRENCES
            {
                self.guards.push(GuardedAttribute {
                    name_at,
                    prefix: if is_there { "data-was-" } else { "data-" },
                    what,
                    occurrences: occurrences.clone(),
                });
            } else {
                self.not_replaced += 1;
            }
        }
    }
}

impl LinkSink for UrlOccurrences {
    fn add(
        &mut self,
        occurrence: UrlOccurrence<'_>,
        written: &str,
        kind: LinkKind,
        within: Option<&str>,
    ) {
        let span = Span::of(written);
        if let Some(reference) = self
            .links
            .index_of(span.without_fragment(written), kind, within)
        {
            self.note(
                &occurrence,
                (written, span),
                reference,
                ReferenceList::Links,
            );
        }
    }

    fn add_base(&mut self, element: &Element<'_, '_>, written: &str) {
        self.links.add_base(element, written);
        self.guard(element, "href", GuardEffect::Base);
    }

    fn add_other(&mut self, occurrence: UrlOccurrence<'_>, written: &str) {
        let span = Span::of(written);
        if let Some(reference) =
            (self.others).index_of(span.without_fragment(written), LinkKind::Page, None)
        {
            self.note(
                &occurrence,
                (written, span),
                reference,
                ReferenceList::Others,
            );
        }
    }

    fn collects_scripts(&self) -> bool {
        self.host.is_some()
    }

    fn add_data(&mut self, value: &ParseContext<'_>) {
        if scripts::looks_like_url(value.text) {
            self.add_candidate(&whole_value(value));
        }
    }

    fn add_handler(&mut self, code: &ParseContext<'_>) {
        let host = self.host.clone().unwrap_or_default();
        scripts::literals(code.text.as_bytes(), &host, |literal| {
            // A string with escapes differs from its source.
            if let Some(quote) = literal.quote
                && literal.span.len() == literal.text.len()
            {
                let (context, span, form) = (code, literal.span, Form::Script(quote));
                self.add_candidate(&UrlOccurrence {
                    context,
                    span,
                    form,
                });
            }
            true
        });
    }

    fn add_script(&mut self, code: &ParseContext<'_>) {
        scripts::navigations(code.text.as_bytes(), |span, quote| {
            let (context, form) = (code, Form::Script(quote));
            self.add_candidate(&UrlOccurrence {
                context,
                span,
                form,
            });
        });
    }

    fn begin(&mut self, _element: &Element<'_, '_>) {
        self.open_elements.push(self.written.len());
    }

    fn end(&mut self, element: &Element<'_, '_>) {
        let mut present = 0_u8;
        for attribute in element.attributes {
            // The length excludes most names.
            let nth = match attribute.name.len() {
                8 => 0,
                9 => 1,
                10 => 2,
                11 => 3,
                _ => continue,
            };
            let name = GUARDS[nth].0.as_bytes();
            present |= u8::from(attribute.name.eq_ignore_ascii_case(name)) << nth;
        }
        if present != 0 {
            for (nth, &(name, what)) in GUARDS.iter().enumerate() {
                let is_there = present >> nth & 1 == 1;
                if is_there && (what != GuardEffect::Policy || is_policy(element)) {
                    self.guard(element, name, what);
                }
            }
        }
        self.open_elements.pop();
    }
}

fn is_policy(element: &Element<'_, '_>) -> bool {
    element.name.eq_ignore_ascii_case(b"meta") && element.is_about("content-security-policy")
}

/// The position of a URL in the whole document, from its unescaped text and its range in that. `None` if it is too
/// deeply nested.
fn locate(
    occurrence: &UrlOccurrence<'_>,
    (unescaped, mut inside): (&str, Span),
    reference: usize,
    list: ReferenceList,
) -> Option<WrittenUrl> {
    let mut between = UrlSyntax::from(occurrence.form);
    let mut start = occurrence.span.start;
    let mut fragment = None;
    if occurrence.form == Form::Css {
        let token = css_token::inside(&occurrence.context.text[occurrence.span.clone()]);
        start += token.span.start;
        between = token.between;
        if token.is_plain {
            inside = Span::of(&occurrence.context.text[start..start + token.span.len()]);
        } else {
            // The position of the fragment among escapes is not known, but its text is.
            fragment = (inside.end < inside.whole_end)
                .then(|| unescaped[inside.end..inside.whole_end].into());
            let end = token.span.len();
            (inside.start, inside.end, inside.whole_end) = (0, end, end);
        }
    }
    let escape_style = EscapeStyle::of(occurrence, between)?;
    let url = start + inside.start..start + inside.end;
    let whole_end = start + inside.whole_end;
    let (url, whole_end, semicolons) = if let Some(shift) = occurrence.context.shift() {
        (shift + url.start..shift + url.end, shift + whole_end, 0)
    } else {
        let semicolons = occurrence.context.unterminated_entities(url.start);
        let whole_end = occurrence.context.document_range(whole_end..whole_end).end;
        (
            occurrence.context.document_range(url),
            whole_end,
            semicolons,
        )
    };
    Some(WrittenUrl {
        start: u32::try_from(url.start).ok()?,
        end: u32::try_from(url.end).ok()?,
        whole_end: u32::try_from(whole_end).ok()?,
        semicolons: u8::try_from(semicolons).ok()?,
        escape_style,
        reference: u32::try_from(reference).ok()?,
        list,
        fragment,
    })
}
