//! Finds where a document declares its encoding.

use std::ops::Range;

use crate::html::elements::{Element, Quote};
use crate::html::kind::Kind;
use crate::html::parse_context::ParseContext;
use crate::html::source::Source;
use crate::html::spans::is_blank;
use crate::html::tags::{Piece, Tags};
use crate::html::xml::{Event, Events};

/// The ranges of charset names in a document.
pub fn names(text: &str, kind: Kind) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if kind == Kind::Css {
        if let Some(rest) = text.strip_prefix("@charset \"") {
            let length = rest.find('"').unwrap_or(0);
            found.push(10..10 + length);
        }
        return found;
    }
    if let Some(rest) = text.strip_prefix("<?xml") {
        let declaration = &rest[..rest.find('>').unwrap_or(0)];
        found.extend(after(declaration, "encoding").map(|span| span.start + 5..span.end + 5));
    }
    let context = ParseContext::whole(text);
    let mut add = |name: &[u8], attributes: &[_]| {
        let element = Element {
            name,
            attributes,
            inner: false,
            context: &context,
        };
        add_meta(&element, &mut found);
    };
    if kind == Kind::Xhtml {
        let mut events = Events::new(text);
        while let Some(event) = events.next() {
            if let Event::Start { name, .. } = event {
                add(
                    crate::html::xml::local(name).as_bytes(),
                    events.attributes(),
                );
            }
        }
    } else {
        let mut tags = Tags::new(Source::Text(text));
        while let Some(piece) = tags.next() {
            if let Piece::Start(name) = piece {
                add(name, tags.attributes());
            }
        }
    }
    found
}

fn add_meta(element: &Element<'_, '_>, found: &mut Vec<Range<usize>>) {
    if !element.name.eq_ignore_ascii_case(b"meta") {
        return;
    }
    // Of two attributes with one name, the first counts.
    for name in ["charset", "content"] {
        let Some(attribute) = element.attribute(name) else {
            continue;
        };
        let value = attribute.at..attribute.at + attribute.value.len();
        if attribute.quote == Quote::Missing || value.is_empty() {
            continue;
        }
        if name == "charset" {
            found.push(value);
        } else if element.is_about("content-type") {
            let span = after(&attribute.value, "charset");
            found.extend(span.map(|span| value.start + span.start..value.start + span.end));
        }
    }
}

/// The unquoted text after a word and `=`.
fn after(text: &str, word: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let skip = |mut at: usize, matches: fn(u8) -> bool| {
        while at < bytes.len() && matches(bytes[at]) {
            at += 1;
        }
        at
    };
    let at = bytes
        .windows(word.len())
        .position(|each| each.eq_ignore_ascii_case(word.as_bytes()))?;
    let equals = skip(at + word.len(), is_blank);
    if bytes.get(equals) != Some(&b'=') {
        return None;
    }
    let start = skip(equals + 1, |byte| {
        is_blank(byte) || matches!(byte, b'"' | b'\'')
    });
    let end = skip(start, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':' | b'.' | b'+')
    });
    (start < end).then_some(start..end)
}
