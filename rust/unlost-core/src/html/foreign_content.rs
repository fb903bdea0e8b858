//! Tracks whether a tag is in HTML, SVG or `MathML`, which determines how its content is parsed.

use super::elements::Attribute;

/// How the content after a start tag is tokenized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Text and tags.
    Markup,
    /// Text up to the end tag: such elements have names of at most eight bytes.
    Text([u8; 8]),
    Script,
    /// Text up to the end of the page.
    Rest,
}

pub fn name_bytes(name: &[u8; 8]) -> &[u8] {
    &name[..name.iter().position(|&byte| byte == 0).unwrap_or(8)]
}

fn packed(name: &[u8]) -> [u8; 8] {
    let mut out = [0; 8];
    out[..name.len()].copy_from_slice(name);
    out
}

/// The namespaces of open elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Namespace {
    Html,
    Svg,
    Math,
}

/// The nested namespaces; empty for HTML.
#[derive(Default)]
pub struct ForeignContentStack(Vec<Namespace>);

impl ForeignContentStack {
    /// The longest name that matters is `annotation-xml`.
    pub const MAX_NAME_LEN: usize = 14;

    fn current(&self) -> Namespace {
        self.0.last().copied().unwrap_or(Namespace::Html)
    }

    /// Whether only HTML is open, so that no end tag changes anything.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    pub fn is_foreign(&self) -> bool {
        self.current() != Namespace::Html
    }

    /// Updates the namespaces for a start tag, and returns how its content is parsed.
    pub fn start(&mut self, name: &[u8], attributes: &[Attribute<'_>], empty: bool) -> Content {
        let space = match name {
            b"svg" => Some(Namespace::Svg),
            b"math" => Some(Namespace::Math),
            _ => None,
        };
        if let Some(space) = space {
            if !empty {
                self.0.push(space);
            }
            return Content::Markup;
        }
        if !self.is_foreign() {
            return content(name);
        }
        if breaks_out(name, attributes) {
            while self.is_foreign() {
                self.0.pop();
            }
            return content(name);
        }
        if !empty && self.is_integration_point(name, attributes) {
            self.0.push(Namespace::Html);
        }
        Content::Markup
    }

    pub fn end(&mut self, name: &[u8]) {
        let closes_namespace = match (self.current(), self.0.len()) {
            (Namespace::Svg, _) => matches!(name, b"svg" | b"p" | b"br"),
            (Namespace::Math, _) => matches!(name, b"math" | b"p" | b"br"),
            (Namespace::Html, 2..) => match self.0[self.0.len() - 2] {
                Namespace::Svg => is_page_in_drawing(name),
                Namespace::Math => is_text_in_formula(name) || name == b"annotation-xml",
                Namespace::Html => false,
            },
            (Namespace::Html, _) => false,
        };
        if closes_namespace {
            self.0.pop();
        }
    }

    /// Whether an SVG or `MathML` element contains HTML.
    fn is_integration_point(&self, name: &[u8], attributes: &[Attribute<'_>]) -> bool {
        match self.current() {
            Namespace::Svg => is_page_in_drawing(name),
            Namespace::Math if name == b"annotation-xml" => attributes.iter().any(|attribute| {
                let is = |known: &str| attribute.value.eq_ignore_ascii_case(known);
                attribute.name.eq_ignore_ascii_case(b"encoding")
                    && (is("text/html") || is("application/xhtml+xml"))
            }),
            Namespace::Math => is_text_in_formula(name),
            Namespace::Html => false,
        }
    }
}

/// Elements of HTML with other content: SVG, `MathML`, raw text.
const SPECIAL_ELEMENTS: [&str; 12] = [
    "svg",
    "math",
    "script",
    "plaintext",
    "title",
    "textarea",
    "style",
    "iframe",
    "xmp",
    "noembed",
    "noframes",
    "noscript",
];

/// Bit set of the lengths of those names, by the low five bits of their first byte.
const LENGTHS: [u16; 32] = {
    let mut lengths = [0; 32];
    let mut nth = 0;
    while nth < SPECIAL_ELEMENTS.len() {
        let name = SPECIAL_ELEMENTS[nth].as_bytes();
        lengths[(name[0] & 31) as usize] |= 1 << name.len();
        nth += 1;
    }
    lengths
};

/// Whether an HTML element may be one of those, case-insensitive. The first byte and the length exclude most names.
pub fn may_matter(name: &[u8]) -> bool {
    let first = name.first().map_or(0, |letter| usize::from(letter & 31));
    name.len() < 16 && LENGTHS[first] >> name.len() & 1 == 1
}

fn is_page_in_drawing(name: &[u8]) -> bool {
    matches!(name, b"desc" | b"title" | b"foreignobject")
}

fn is_text_in_formula(name: &[u8]) -> bool {
    matches!(name, b"mi" | b"mo" | b"mn" | b"ms" | b"mtext")
}

/// How the content of an element of HTML is parsed.
fn content(name: &[u8]) -> Content {
    match name {
        b"script" => Content::Script,
        b"plaintext" => Content::Rest,
        b"title" | b"textarea" | b"style" | b"iframe" | b"xmp" | b"noembed" | b"noframes"
        | b"noscript" => Content::Text(packed(name)),
        _ => Content::Markup,
    }
}

/// Whether an HTML element ends SVG and `MathML` where it begins.
fn breaks_out(name: &[u8], attributes: &[Attribute<'_>]) -> bool {
    match name {
        b"b" | b"big" | b"blockquote" | b"body" | b"br" | b"center" | b"code" | b"dd" | b"div"
        | b"dl" | b"dt" | b"em" | b"embed" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6"
        | b"head" | b"hr" | b"i" | b"img" | b"li" | b"listing" | b"menu" | b"meta" | b"nobr"
        | b"ol" | b"p" | b"pre" | b"ruby" | b"s" | b"small" | b"span" | b"strong" | b"strike"
        | b"sub" | b"sup" | b"table" | b"tt" | b"u" | b"ul" | b"var" => true,
        b"font" => attributes.iter().any(|attribute| {
            ["color", "face", "size"]
                .iter()
                .any(|known| attribute.name.eq_ignore_ascii_case(known.as_bytes()))
        }),
        _ => false,
    }
}
