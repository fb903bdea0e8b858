//! Feeds and sitemaps: XML sitemaps, RSS of every version, Atom.

use super::elements::Attribute;
use super::parse_context::ParseContext;
use super::references::References;
use super::xml::{self, Event, Events};
use super::{LinkKind, link_attributes, walker, xhtml};

/// The content of an element's text.
#[derive(Clone, Copy)]
enum Leaf {
    Url(LinkKind),
    /// A URL, if it looks like one.
    Name,
    /// HTML as escaped text.
    Markup,
}

/// Adds the references of a feed or sitemap.
pub fn read(text: &str, out: &mut References) {
    let mut events = Events::new(text);
    let mut list = List::default();
    while let Some(event) = events.next() {
        match event {
            Event::Start { name, empty } => {
                list.finish(out);
                list.begin(&events, name, empty, out);
            }
            Event::End(name) => {
                list.finish(out);
                if xml::local(name) == "image" {
                    list.in_image = false;
                }
            }
            Event::Text(text) => list.add(&xml::unescape(text)),
            Event::Literal(text) => list.add(text),
            Event::Instruction("xml-stylesheet") => {
                xhtml::stylesheet(&events, &ParseContext::whole(text), out);
            }
            Event::Instruction(_) => {}
        }
    }
    list.finish(out);
}

/// Whether the text of an element, by its name in lower case, is HTML.
pub fn holds_markup(name: &str) -> bool {
    matches!(name, "content" | "description" | "encoded" | "summary")
}

/// The parser state.
#[derive(Default)]
struct List {
    of_sitemaps: bool,
    in_image: bool,
    leaf: Option<Leaf>,
    text: String,
}

impl List {
    fn add(&mut self, text: &str) {
        if self.leaf.is_some() {
            self.text.push_str(text);
        }
    }

    fn finish(&mut self, out: &mut References) {
        match self.leaf.take() {
            Some(Leaf::Url(kind)) => out.add(&self.text, kind),
            Some(Leaf::Name) if is_absolute(self.text.trim()) => {
                out.add(&self.text, LinkKind::Page);
            }
            Some(Leaf::Markup) if self.text.contains('<') => {
                walker::walk_inner(&ParseContext::whole(&self.text), out);
            }
            _ => {}
        }
        self.text.clear();
    }

    fn begin(&mut self, events: &Events<'_>, name: &str, empty: bool, out: &mut References) {
        let attributes = events.attributes();
        if let Some(base) = value(attributes, "xml:base") {
            out.set_base(&xml::unescape(base));
        }
        let local = xml::local(name).to_ascii_lowercase();
        let leaf = match local.as_str() {
            "sitemapindex" | "urlset" => {
                self.of_sitemaps = local == "sitemapindex";
                None
            }
            "loc" if self.of_sitemaps => Some(Leaf::Url(LinkKind::List)),
            "loc" if !self.in_image => Some(Leaf::Url(LinkKind::Page)),
            "loc" | "content_loc" | "thumbnail_loc" | "icon" | "logo" => {
                Some(Leaf::Url(LinkKind::Requisite))
            }
            "url" if self.in_image => Some(Leaf::Url(LinkKind::Requisite)),
            "link" => match value(attributes, "href") {
                Some(href) => {
                    add_link(href, attributes, out);
                    None
                }
                None => Some(Leaf::Url(LinkKind::Page)),
            },
            "comments" | "origlink" | "uri" => Some(Leaf::Url(LinkKind::Page)),
            "commentrss" => Some(Leaf::Url(LinkKind::List)),
            "guid" if value(attributes, "isPermaLink") != Some("false") => Some(Leaf::Name),
            name if name == "enclosure" || name == "thumbnail" || holds_markup(name) => {
                add_parts(attributes, out);
                Some(Leaf::Markup)
            }
            "image" => {
                self.in_image = !empty;
                xhtml::collect(events, &local, &ParseContext::whole(""), out);
                None
            }
            _ => {
                xhtml::collect(events, &local, &ParseContext::whole(""), out);
                None
            }
        };
        self.leaf = leaf.filter(|_| !empty);
    }
}

fn value<'a>(attributes: &'a [Attribute<'_>], name: &str) -> Option<&'a str> {
    let attribute = attributes
        .iter()
        .find(|attribute| attribute.name == name.as_bytes())?;
    Some(&attribute.value)
}

fn is_absolute(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// Adds the link of an entry or of a whole feed in Atom, which RSS has adopted.
fn add_link(href: &str, attributes: &[Attribute<'_>], out: &mut References) {
    let mime = value(attributes, "type").unwrap_or_default();
    let kind = match value(attributes, "rel").unwrap_or("alternate") {
        "enclosure" | "icon" => LinkKind::Requisite,
        "self" | "first" | "last" | "next" | "previous" | "prev-archive" | "next-archive"
        | "current" => LinkKind::List,
        "replies" if link_attributes::is_feed(mime) => LinkKind::List,
        // Endpoints for publishing and notification.
        "edit" | "edit-media" | "hub" | "service" => return,
        _ => LinkKind::Page,
    };
    out.add(&xml::unescape(href), kind);
}

/// Adds the enclosures of an entry: sound, video and images, or a page that is its content.
fn add_parts(attributes: &[Attribute<'_>], out: &mut References) {
    if let Some(url) = value(attributes, "url") {
        out.add(&xml::unescape(url), LinkKind::Requisite);
    }
    if let Some(source) = value(attributes, "src") {
        out.add(&xml::unescape(source), LinkKind::Page);
    }
}
