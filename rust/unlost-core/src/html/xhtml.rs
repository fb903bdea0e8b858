//! XHTML and SVG: XML with the elements of HTML.

use std::borrow::Cow;

use super::LinkKind;
use super::elements::{self, Element, LinkSink, UrlOccurrence, add_whole};
use super::parse_context::{EscapeLayer, ParseContext};
use super::xml::{self, Event, Events};

/// The delimiters of a CDATA section.
const SECTION: &str = "<![CDATA[";
const SECTION_END: &str = "]]>";

/// Reports the references of a document.
pub fn walk(document: &ParseContext<'_>, out: &mut impl LinkSink) {
    let mut events = Events::new(document.text);
    while let Some(event) = events.next() {
        match event {
            Event::Start { name, empty } => {
                let local = xml::local(name);
                collect(&events, local, document, out);
                if empty {
                    continue;
                }
                // Scripts contain no tags.
                if local.eq_ignore_ascii_case("script") {
                    let start = events.position();
                    let content = Cow::Borrowed(events.content(name));
                    if out.collects_scripts() {
                        let read = document.read(start, &content);
                        if content.contains(SECTION) {
                            out.add_script(&read);
                        } else {
                            let text = xml::unescape(&content);
                            out.add_script(&read.escaped(EscapeLayer::XmlText, &text));
                        }
                    }
                } else if local.eq_ignore_ascii_case("style") {
                    let start = events.position();
                    let content = Cow::Borrowed(events.content(name));
                    if content.contains(SECTION) {
                        elements::add_style(
                            &document.read(start, &content),
                            &mut OutsideCdata(out),
                        );
                    } else {
                        let text = xml::unescape(&content);
                        let read = document.read(start, &content);
                        elements::add_style(&read.escaped(EscapeLayer::XmlText, &text), out);
                    }
                }
            }
            Event::Instruction("xml-stylesheet") => stylesheet(&events, document, out),
            _ => {}
        }
    }
}

/// Reports the references of the element that has just begun.
pub fn collect(
    events: &Events<'_>,
    local: &str,
    document: &ParseContext<'_>,
    out: &mut impl LinkSink,
) {
    let element = Element {
        name: local.as_bytes(),
        attributes: events.attributes(),
        inner: false,
        context: document,
    };
    element.collect(out);
}

/// Reports the style sheet of the last processing instruction.
pub fn stylesheet(events: &Events<'_>, document: &ParseContext<'_>, out: &mut impl LinkSink) {
    for attribute in events.attributes() {
        if attribute.name == b"href" {
            let text = xml::unescape(&attribute.value);
            let layer = EscapeLayer::XmlValue(attribute.quote);
            let read = document.read(attribute.at, &attribute.value);
            add_whole(&read.escaped(layer, &text), LinkKind::Requisite, None, out);
        }
    }
}

/// Passes on the references of a style with CDATA sections, except for URLs that contain a section delimiter: their
/// text differs from the source, and without the delimiter the section would not begin or end.
struct OutsideCdata<'o, S>(&'o mut S);

impl<S: LinkSink> LinkSink for OutsideCdata<'_, S> {
    fn add(
        &mut self,
        occurrence: UrlOccurrence<'_>,
        written: &str,
        kind: LinkKind,
        within: Option<&str>,
    ) {
        if !written.contains(SECTION) && !written.contains(SECTION_END) {
            self.0.add(occurrence, written, kind, within);
        }
    }

    fn add_base(&mut self, element: &Element<'_, '_>, written: &str) {
        self.0.add_base(element, written);
    }
}
