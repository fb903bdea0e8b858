//! What elements do to the words around them, and to those in them.

use super::text_flow::{Gap, TextFlow};

/// Elements that hide what is in them: what browsers never show, and what they would show only if they could not show
/// sound, film and drawings.
pub const HIDING: [&[u8]; 9] = [
    b"script",
    b"style",
    b"template",
    b"audio",
    b"canvas",
    b"datalist",
    b"desc",
    b"metadata",
    b"video",
];

/// One of [`HIDING`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hiding(u8);

impl Hiding {
    pub fn place(self) -> usize {
        self.0.into()
    }

    /// Whether a tag of it that closes itself does so; in HTML none does, but these are then in a drawing.
    fn may_be_empty(self) -> bool {
        !matches!(
            HIDING[self.place()],
            b"template" | b"audio" | b"canvas" | b"datalist" | b"video"
        )
    }
}

/// No name that means something here is longer.
const MAX_NAME_LEN: usize = 10;

enum ElementEffect {
    /// Stands within words.
    Inline,
    /// Stands between words.
    Parts(Gap),
    Hides(Hiding),
}

/// Takes a start tag; `empty` if it closes itself, `xml` if that counts for every element.
pub fn begin(name: &str, empty: bool, xml: bool, text_flow: &mut TextFlow) {
    match part(name) {
        ElementEffect::Inline => {}
        ElementEffect::Parts(gap) => text_flow.part(gap),
        ElementEffect::Hides(element) => {
            if !(empty && (xml || element.may_be_empty())) {
                text_flow.hide(element);
            }
        }
    }
}

/// Takes an end tag.
pub fn end(name: &str, text_flow: &mut TextFlow) {
    match part(name) {
        ElementEffect::Inline => {}
        ElementEffect::Parts(gap) => text_flow.part(gap),
        ElementEffect::Hides(element) => text_flow.end_hiding(element),
    }
}

fn part(name: &str) -> ElementEffect {
    let mut lower = [0; MAX_NAME_LEN];
    let Some(lower) = lower.get_mut(..name.len()) else {
        return ElementEffect::Inline;
    };
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    match &*lower {
        // By the style sheet that the HTML standard suggests to browsers, and the lines of drawings.
        b"address" | b"article" | b"aside" | b"blockquote" | b"body" | b"br" | b"caption"
        | b"center" | b"col" | b"colgroup" | b"dd" | b"details" | b"dialog" | b"dir" | b"div"
        | b"dl" | b"dt" | b"fieldset" | b"figcaption" | b"figure" | b"footer" | b"form"
        | b"frame" | b"frameset" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"head"
        | b"header" | b"hgroup" | b"hr" | b"html" | b"legend" | b"li" | b"listing" | b"main"
        | b"menu" | b"nav" | b"ol" | b"optgroup" | b"option" | b"p" | b"plaintext" | b"pre"
        | b"search" | b"section" | b"summary" | b"svg" | b"table" | b"tbody" | b"text"
        | b"tfoot" | b"thead" | b"title" | b"tr" | b"ul" | b"xmp" => {
            ElementEffect::Parts(Gap::Break)
        }
        // Cells, and boxes in a line of text.
        b"button" | b"iframe" | b"input" | b"marquee" | b"meter" | b"object" | b"progress"
        | b"rt" | b"select" | b"td" | b"textarea" | b"th" => ElementEffect::Parts(Gap::Blank),
        other => match (0..).zip(HIDING).find(|(_, name)| *name == other) {
            Some((place, _)) => ElementEffect::Hides(Hiding(place)),
            None => ElementEffect::Inline,
        },
    }
}
