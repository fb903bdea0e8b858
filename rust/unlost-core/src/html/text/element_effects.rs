//! The effect of elements on the text around and in them.

use super::text_flow::{Gap, TextFlow};

/// Elements whose content is hidden: content that browsers never render, and fallback content of audio, video and
/// drawings.
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
    pub fn index(self) -> usize {
        self.0.into()
    }

    /// Whether a self-closing tag of it is empty; not in HTML, but these are then in SVG.
    fn may_be_empty(self) -> bool {
        !matches!(
            HIDING[self.index()],
            b"template" | b"audio" | b"canvas" | b"datalist" | b"video"
        )
    }
}

/// The length of the longest name with an effect.
const MAX_NAME_LEN: usize = 10;

enum ElementEffect {
    /// Has no effect: words may continue across its tags.
    Inline,
    /// Separates words.
    Parts(Gap),
    Hides(Hiding),
}

/// Handles a start tag; `empty` if it is self-closing, `xml` if that applies to every element.
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

/// Handles an end tag.
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
        // From the style sheet suggested by the HTML standard, and the lines of SVG text.
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
        // Cells and inline blocks.
        b"button" | b"iframe" | b"input" | b"marquee" | b"meter" | b"object" | b"progress"
        | b"rt" | b"select" | b"td" | b"textarea" | b"th" => ElementEffect::Parts(Gap::Blank),
        other => match (0..).zip(HIDING).find(|(_, name)| *name == other) {
            Some((place, _)) => ElementEffect::Hides(Hiding(place)),
            None => ElementEffect::Inline,
        },
    }
}
