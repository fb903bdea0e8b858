//! XHTML and SVG: XML whose elements are those of HTML.

use super::Use;
use super::elements::{self, Element};
use super::references::References;
use super::xml::{self, Event, Events};

/// Adds what a document refers to.
pub fn walk(text: &str, out: &mut References) {
    let mut events = Events::new(text);
    while let Some(event) = events.next() {
        match event {
            Event::Start { name, empty } => {
                let local = xml::local(name);
                collect(&events, local, out);
                if empty {
                    continue;
                }
                // What looks like a tag in a script is none.
                if local.eq_ignore_ascii_case("script") {
                    events.content(name);
                } else if local.eq_ignore_ascii_case("style") {
                    let content = events.content(name);
                    if content.contains("<![CDATA[") {
                        elements::style(content, out);
                    } else {
                        elements::style(&xml::plain(content), out);
                    }
                }
            }
            Event::Instruction("xml-stylesheet") => stylesheet(&events, out),
            _ => {}
        }
    }
}

/// Adds what the element that has just begun refers to.
pub fn collect(events: &Events<'_>, local: &str, out: &mut References) {
    let element = Element {
        name: local,
        attributes: events.attributes(),
        inner: false,
    };
    element.collect(out);
}

/// Adds the style sheet that the processing instruction just read names.
pub fn stylesheet(events: &Events<'_>, out: &mut References) {
    for attribute in events.attributes() {
        if attribute.name == "href" {
            out.add(&xml::plain(attribute.value), Use::Requisite);
        }
    }
}
