//! XHTML and SVG: XML whose elements are those of HTML.

use std::borrow::Cow;

use super::Use;
use super::elements::{self, Element, Sink, Spot, add_whole};
use super::place::{Layer, Place};
use super::xml::{self, Event, Events};

/// What begins and what ends a section in which nothing is markup.
const SECTION: &str = "<![CDATA[";
const SECTION_END: &str = "]]>";

/// Tells what a document refers to.
pub fn walk(document: &Place<'_>, out: &mut impl Sink) {
    let mut events = Events::new(document.text);
    while let Some(event) = events.next() {
        match event {
            Event::Start { name, empty } => {
                let local = xml::local(name);
                collect(&events, local, document, out);
                if empty {
                    continue;
                }
                // What looks like a tag in a script is none.
                if local.eq_ignore_ascii_case("script") {
                    let start = events.position();
                    let content = Cow::Borrowed(events.content(name));
                    if out.wants_scripts() {
                        let read = document.read(start, &content);
                        if content.contains(SECTION) {
                            out.add_script(&read);
                        } else {
                            let text = xml::plain(&content);
                            out.add_script(&read.escaped(Layer::XmlText, &text));
                        }
                    }
                } else if local.eq_ignore_ascii_case("style") {
                    let start = events.position();
                    let content = Cow::Borrowed(events.content(name));
                    if content.contains(SECTION) {
                        elements::style(&document.read(start, &content), &mut Outside(out));
                    } else {
                        let text = xml::plain(&content);
                        let read = document.read(start, &content);
                        elements::style(&read.escaped(Layer::XmlText, &text), out);
                    }
                }
            }
            Event::Instruction("xml-stylesheet") => stylesheet(&events, document, out),
            _ => {}
        }
    }
}

/// Tells what the element that has just begun refers to.
pub fn collect(events: &Events<'_>, local: &str, document: &Place<'_>, out: &mut impl Sink) {
    let element = Element {
        name: local.as_bytes(),
        attributes: events.attributes(),
        inner: false,
        place: document,
    };
    element.collect(out);
}

/// Tells the style sheet that the processing instruction just read names.
pub fn stylesheet(events: &Events<'_>, document: &Place<'_>, out: &mut impl Sink) {
    for attribute in events.attributes() {
        if attribute.name == b"href" {
            let text = xml::plain(&attribute.value);
            let layer = Layer::XmlValue(attribute.quote);
            let read = document.read(attribute.at, &attribute.value);
            add_whole(&read.escaped(layer, &text), Use::Requisite, None, out);
        }
    }
}

/// Passes on what a style with sections refers to, but for addresses in which one begins or ends: they are not as they are
/// written, and without that mark the rest would not be in a section any more, or all of it would be.
struct Outside<'o, S>(&'o mut S);

impl<S: Sink> Sink for Outside<'_, S> {
    fn add(&mut self, spot: Spot<'_>, written: &str, purpose: Use, within: Option<&str>) {
        if !written.contains(SECTION) && !written.contains(SECTION_END) {
            self.0.add(spot, written, purpose, within);
        }
    }

    fn add_base(&mut self, element: &Element<'_, '_>, written: &str) {
        self.0.add_base(element, written);
    }
}
