//! Walks HTML as browsers parse it.

use super::elements::{self, Element, LinkSink};
use super::parse_context::ParseContext;
use super::source::Source;
use super::tags::{Piece, Tags};

/// Reports the references of a page.
pub fn walk(page: &ParseContext<'_>, source: Source<'_>, out: &mut impl LinkSink) {
    walk_all(page, source, false, out);
}

/// The same for an embedded page; pages embedded in that one are skipped.
pub fn walk_inner(page: &ParseContext<'_>, out: &mut impl LinkSink) {
    walk_all(page, Source::Text(page.text), true, out);
}

fn walk_all(page: &ParseContext<'_>, source: Source<'_>, inner: bool, out: &mut impl LinkSink) {
    let mut tags = if out.collects_scripts() {
        Tags::for_scripts(source)
    } else {
        Tags::new(source)
    };
    while let Some(piece) = tags.next() {
        match piece {
            Piece::Start(name) => {
                let element = Element {
                    name,
                    attributes: tags.attributes(),
                    inner,
                    context: page,
                };
                element.collect(out);
            }
            Piece::Style(span) => {
                let css = source.read(span.clone());
                elements::add_style(&page.read(span.start, &css), out);
            }
            Piece::Script(span) => {
                let code = source.read(span.clone());
                out.add_script(&page.read(span.start, &code));
            }
            // Browsers with scripts and frames do not render this content, but may link to pages that are not linked
            // elsewhere.
            Piece::Fallback(span) if !inner => {
                let (start, part) = (span.start, source.part(span));
                walk_all(&page.unread(start), part, true, out);
            }
            Piece::Fallback(_) => {}
        }
    }
}
