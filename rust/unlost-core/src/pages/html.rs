//! HTML, as browsers read it.

use super::elements::{self, Element, Sink};
use super::place::Place;
use super::tags::{Piece, Tags};

/// Tells what a page refers to.
pub fn walk(page: &Place<'_>, out: &mut impl Sink) {
    walk_all(page, false, out);
}

/// The same for a page inside a page; pages inside that one are not looked into.
pub fn walk_inner(page: &Place<'_>, out: &mut impl Sink) {
    walk_all(page, true, out);
}

fn walk_all(page: &Place<'_>, inner: bool, out: &mut impl Sink) {
    let mut tags = Tags::new(page.text);
    while let Some(piece) = tags.next() {
        match piece {
            Piece::Start(_) if tags.attributes().is_empty() => {}
            Piece::Start(name) => {
                let element = Element {
                    name,
                    attributes: tags.attributes(),
                    inner,
                    place: page,
                };
                element.collect(out);
            }
            Piece::Style(start, css) => elements::style(&page.part(start, css), out),
            // What browsers with scripts and frames do not show; a lost page may be found through it all the same.
            Piece::Fallback(start, text) if !inner => walk_inner(&page.part(start, text), out),
            Piece::Fallback(..) => {}
        }
    }
}
