//! The text of XML.

use super::super::elements::Attribute;
use super::super::feeds;
use super::super::xml::{self, Event, Events};
use super::text_flow::{Gap, TextFlow};
use super::{element_effects, html};

/// Adds the text of XHTML or SVG.
pub fn read_page(text: &str, text_flow: &mut TextFlow) {
    let mut events = Events::new(text);
    while let Some(event) = events.next() {
        match event {
            Event::Start { name, empty } => begin(&mut events, name, empty, text_flow),
            Event::End(name) => element_effects::end(xml::local(name), text_flow),
            Event::Text(text) => text_flow.add(&html::plain(text)),
            Event::Literal(text) => text_flow.add(text),
            Event::Instruction(_) => {}
        }
    }
}

fn begin(events: &mut Events<'_>, name: &str, empty: bool, text_flow: &mut TextFlow) {
    let local = xml::local(name);
    // Scripts contain no tags.
    let is_raw = local.eq_ignore_ascii_case("script") || local.eq_ignore_ascii_case("style");
    if !is_raw {
        element_effects::begin(local, empty, true, text_flow);
    } else if !empty {
        events.content(name);
    }
}

/// Adds the text of any XML: the elements are not known, but each separates words.
pub fn read_any(text: &str, text_flow: &mut TextFlow) {
    for event in Events::new(text) {
        match event {
            Event::Start { .. } | Event::End(_) => text_flow.part(Gap::Break),
            Event::Text(text) => text_flow.add(&xml::unescape(text)),
            Event::Literal(text) => text_flow.add(text),
            Event::Instruction(_) => {}
        }
    }
}

/// Adds the text of a sitemap, RSS or Atom, without the markup in its texts; returns false if the HTML parser gave up.
pub fn read_feed(text: &str, text_flow: &mut TextFlow) -> bool {
    let mut events = Events::new(text);
    let mut markup = None;
    let mut all = true;
    // The element of Atom that contains a page.
    let mut page: Option<&str> = None;
    while let Some(event) = events.next() {
        match event {
            Event::Start { name, empty } => {
                all &= write(&mut markup, text_flow);
                if page.is_some() {
                    begin(&mut events, name, empty, text_flow);
                    continue;
                }
                text_flow.part(Gap::Break);
                let declared = value(events.attributes(), "type");
                if empty {
                    continue;
                }
                if declared == Some("xhtml") {
                    page = Some(name);
                } else if declared == Some("html")
                    || feeds::holds_markup(&xml::local(name).to_ascii_lowercase())
                {
                    markup = Some(String::new());
                }
            }
            Event::End(name) => {
                all &= write(&mut markup, text_flow);
                if page.is_some() && page != Some(name) {
                    element_effects::end(xml::local(name), text_flow);
                } else {
                    page = None;
                    text_flow.end_document();
                    text_flow.part(Gap::Break);
                }
            }
            Event::Text(text) => match &mut markup {
                Some(markup) => markup.push_str(&xml::unescape(text)),
                None => text_flow.add(&xml::unescape(text)),
            },
            Event::Literal(text) => match &mut markup {
                Some(markup) => markup.push_str(text),
                None => text_flow.add(text),
            },
            Event::Instruction(_) => {}
        }
    }
    all & write(&mut markup, text_flow)
}

/// Adds the text of an embedded page, if there is one.
fn write(markup: &mut Option<String>, text_flow: &mut TextFlow) -> bool {
    let markup = markup.take();
    markup.is_none_or(|markup| html::read(&markup, text_flow))
}

fn value<'a>(attributes: &'a [Attribute<'_>], name: &str) -> Option<&'a str> {
    let attribute = attributes
        .iter()
        .find(|attribute| attribute.name == name.as_bytes())?;
    Some(&attribute.value)
}
