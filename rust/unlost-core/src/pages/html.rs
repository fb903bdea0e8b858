//! HTML, as browsers read it.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::LazyLock;

use lol_html::errors::RewritingError;
use lol_html::html_content::{Element as Tag, TextChunk};
use lol_html::{
    ElementContentHandlers, HandlerResult, HtmlRewriter, LocalHandlerTypes, MemorySettings,
    Selector, Settings,
};

use super::elements::{self, Attribute, Element};
use super::references::References;

/// What the parser may use, most of it for elements that were not closed: some hundred thousand of them.
const MAX_MEMORY_BYTES: usize = 64 << 20;

static EVERYTHING: LazyLock<Selector> = LazyLock::new(|| selector("*"));
static STYLES: LazyLock<Selector> = LazyLock::new(|| selector("style"));
static FALLBACKS: LazyLock<Selector> = LazyLock::new(|| selector("noscript, noframes, noembed"));

fn selector(text: &str) -> Selector {
    text.parse().expect("a selector")
}

/// Adds what a page refers to.
pub fn walk(text: &str, out: &mut References) {
    walk_all(text, false, out);
}

/// The same for a page inside a page; pages inside that one are not looked into.
pub fn walk_inner(text: &str, out: &mut References) {
    walk_all(text, true, out);
}

fn walk_all(text: &str, inner: bool, out: &mut References) {
    let mut rest = text;
    // A page with too many open elements is read on as if it began anew.
    while let Err(read) = walk_part(rest, inner, out) {
        if read == 0 {
            out.left_out += 1;
            return;
        }
        rest = &rest[read..];
    }
}

/// Reads up to the end, or says how far it came before the memory was used up.
fn walk_part(text: &str, inner: bool, out: &mut References) -> Result<(), usize> {
    let read = Cell::new(0);
    let out = RefCell::new(out);
    let attributes = RefCell::new(Vec::new());
    let on_element = |tag: &mut Tag<'_, '_>| -> HandlerResult {
        let whole = tag.source_location().bytes();
        read.set(whole.end);
        let attributes = &mut *attributes.borrow_mut();
        attributes.clear();
        attributes.extend(tag.attributes().iter().filter_map(|attribute| {
            Some(Attribute {
                name: text.get(attribute.name_source_location()?.bytes())?,
                value: text.get(attribute.value_source_location()?.bytes())?,
            })
        }));
        if !attributes.is_empty() {
            let name = name(text.get(whole).unwrap_or_default());
            let element = Element {
                name,
                attributes,
                inner,
            };
            element.collect(&mut out.borrow_mut());
        }
        Ok(())
    };
    let on_style = whole_text(text, |css| elements::style(css, &mut out.borrow_mut()));
    // What browsers with scripts and frames do not show; a lost page may be found through it all the same.
    let on_fallback = whole_text(text, |page| {
        if !inner {
            walk_inner(page, &mut out.borrow_mut());
        }
    });
    let settings: Settings<'_, '_, LocalHandlerTypes> = Settings::new()
        .with_strict(false)
        .with_memory_settings(MemorySettings::new().with_max_allowed_memory_usage(MAX_MEMORY_BYTES))
        .append_element_content_handler((
            Cow::Borrowed(&*EVERYTHING),
            ElementContentHandlers::default().element(on_element),
        ))
        .append_element_content_handler((
            Cow::Borrowed(&*STYLES),
            ElementContentHandlers::default().text(on_style),
        ))
        .append_element_content_handler((
            Cow::Borrowed(&*FALLBACKS),
            ElementContentHandlers::default().text(on_fallback),
        ));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    match rewriter
        .write(text.as_bytes())
        .and_then(|()| rewriter.end())
    {
        Err(RewritingError::MemoryLimitExceeded(_)) => Err(read.get()),
        _ => Ok(()),
    }
}

fn name(tag: &str) -> &str {
    let tag = tag.get(1..).unwrap_or_default();
    let end = tag
        .bytes()
        .position(|byte| byte == b'/' || byte == b'>' || super::spans::is_blank(byte));
    &tag[..end.unwrap_or(tag.len())]
}

/// Calls `each` with the whole of a text that comes in pieces.
fn whole_text<'t>(
    text: &'t str,
    mut each: impl FnMut(&'t str),
) -> impl FnMut(&mut TextChunk<'_>) -> HandlerResult {
    let mut so_far: Option<Range<usize>> = None;
    move |chunk| {
        let piece = chunk.source_location().bytes();
        let whole = match so_far.take() {
            Some(begun) => begun.start..piece.end.max(begun.end),
            None => piece,
        };
        if chunk.last_in_text_node() {
            each(text.get(whole).unwrap_or_default());
        } else {
            so_far = Some(whole);
        }
        Ok(())
    }
}
