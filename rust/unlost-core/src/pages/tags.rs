//! The tags of HTML, as the standard's tokenizer reads them, with where everything stands.
//!
//! What a tokenizer must know of the tree is whether it is inside a drawing or a formula: there, `<style>` and `<title>` are
//! elements like others, and `CDATA` is text. [`Spaces`] keeps track of that.

use memchr::{memchr, memchr2, memmem};

use super::elements::{Attribute, Quote};
use super::spaces::{self, Content, Spaces, letters};
use super::spans::is_blank;

/// What comes next in a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    /// A start tag with its name; its attributes are [`Tags::attributes`].
    Start(&'t str),
    /// The style sheet in an element, and where it begins.
    Style(usize, &'t str),
    /// The page in an element that browsers show only if they cannot do something, and where it begins.
    Fallback(usize, &'t str),
}

/// Reads a page from its beginning to its end.
pub struct Tags<'t> {
    text: &'t str,
    at: usize,
    attributes: Vec<Attribute<'t>>,
    spaces: Spaces,
    /// What follows a tag that has just been told of.
    next: Content,
    /// Whether the text between tags is that of a `<style>` in a drawing.
    in_style: bool,
}

impl<'t> Tags<'t> {
    pub fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            attributes: Vec::new(),
            spaces: Spaces::default(),
            next: Content::Markup,
            in_style: false,
        }
    }

    /// Those of the last start tag. Attributes without a value have the empty one.
    pub fn attributes(&self) -> &[Attribute<'t>] {
        &self.attributes
    }

    fn bytes(&self) -> &'t [u8] {
        self.text.as_bytes()
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes().get(self.at + ahead).copied()
    }

    /// The content of an element that holds text, up to its end tag.
    fn raw(&mut self) -> Option<Piece<'t>> {
        let start = self.at;
        let rest = &self.bytes()[start..];
        let content = std::mem::replace(&mut self.next, Content::Markup);
        let length = match content {
            Content::Markup => return None,
            Content::Rest => rest.len(),
            Content::Script => script_end(rest),
            Content::Text(name) => text_end(rest, letters(&name)),
        };
        self.at = start + length;
        let text = &self.text[start..self.at];
        match content {
            Content::Text(name) if letters(&name) == b"style" => Some(Piece::Style(start, text)),
            Content::Text(name)
                if matches!(letters(&name), b"noscript" | b"noframes" | b"noembed") =>
            {
                Some(Piece::Fallback(start, text))
            }
            _ => None,
        }
    }

    /// Passes over what begins with `<!` or `<?`, or is an end tag without a name.
    fn declaration(&mut self) {
        let rest = &self.bytes()[self.at..];
        let length = if rest.starts_with(b"<!--") {
            comment_end(rest)
        } else {
            memchr(b'>', rest).map_or(rest.len(), |end| end + 1)
        };
        self.at += length;
    }

    /// Reads a tag from its name on: the name, and whether the tag closes itself. `None` if the page ends in it.
    fn tag(&mut self) -> Option<(&'t str, bool)> {
        self.attributes.clear();
        let bytes = self.bytes();
        let start = self.at;
        let mut at = start;
        while !ends_name(*bytes.get(at)?) {
            at += 1;
        }
        let name = &self.text[start..at];
        loop {
            let mut slash = false;
            loop {
                match *bytes.get(at)? {
                    b'/' => slash = true,
                    byte if is_blank(byte) => slash = false,
                    _ => break,
                }
                at += 1;
            }
            if bytes[at] == b'>' {
                self.at = at + 1;
                return Some((name, slash));
            }
            let name_at = at;
            // A `=` begins a name, but does not go on one.
            at += 1;
            while !matches!(*bytes.get(at)?, byte if ends_name(byte) || byte == b'=') {
                at += 1;
            }
            let name_end = at;
            while is_blank(*bytes.get(at)?) {
                at += 1;
            }
            let (mut from, mut to, mut quote) = (name_end, name_end, Quote::Missing);
            if bytes[at] == b'=' {
                at += 1;
                while is_blank(*bytes.get(at)?) {
                    at += 1;
                }
                if let mark @ (b'"' | b'\'') = bytes[at] {
                    let end = at + 1 + memchr(mark, &bytes[at + 1..])?;
                    (from, to, quote) = (at + 1, end, Quote::of(mark));
                    at = end + 1;
                } else {
                    from = at;
                    while !matches!(*bytes.get(at)?, byte if is_blank(byte) || byte == b'>') {
                        at += 1;
                    }
                    (to, quote) = (at, Quote::None);
                }
            } else {
                // Blanks after a name may as well be before the next.
                at = name_end;
            }
            self.attributes.push(Attribute {
                name: &self.text[name_at..name_end],
                value: &self.text[from..to],
                name_at,
                at: from,
                quote,
            });
        }
    }

    fn start(&mut self) -> Option<Piece<'t>> {
        let (name, empty) = self.tag()?;
        if !self.spaces.is_foreign() && !spaces::may_matter(name.as_bytes()) {
            self.in_style = false;
            return Some(Piece::Start(name));
        }
        let mut lower = [0; Spaces::LONGEST];
        let lower = lowered(name, &mut lower);
        self.next = self.spaces.start(lower, &self.attributes, empty);
        if self.spaces.is_foreign() {
            self.in_style |= lower == b"style" && !empty;
        } else {
            self.in_style = false;
        }
        Some(Piece::Start(name))
    }

    fn end(&mut self) -> Option<()> {
        let (name, _) = self.tag()?;
        if self.spaces.is_none() {
            self.in_style = false;
            return Some(());
        }
        let mut lower = [0; Spaces::LONGEST];
        let lower = lowered(name, &mut lower);
        self.spaces.end(lower);
        if lower == b"style" || !self.spaces.is_foreign() {
            self.in_style = false;
        }
        Some(())
    }

    /// Text up to the next `<`, which is told if it is a style sheet.
    fn data(&mut self, length: usize) -> Option<Piece<'t>> {
        let start = self.at;
        self.at += length;
        (self.in_style && length > 0).then(|| Piece::Style(start, &self.text[start..self.at]))
    }
}

impl<'t> Iterator for Tags<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        loop {
            if self.next != Content::Markup {
                if let Some(piece) = self.raw() {
                    return Some(piece);
                }
                continue;
            }
            let rest = &self.bytes()[self.at..];
            let length = memchr(b'<', rest).unwrap_or(rest.len());
            if let Some(piece) = self.data(length) {
                return Some(piece);
            }
            if self.at == self.text.len() {
                return None;
            }
            match (self.peek(1), self.peek(2)) {
                (Some(letter), _) if letter.is_ascii_alphabetic() => {
                    self.at += 1;
                    return self.start();
                }
                (Some(b'/'), Some(letter)) if letter.is_ascii_alphabetic() => {
                    self.at += 2;
                    self.end()?;
                }
                (Some(b'!'), _)
                    if self.spaces.is_foreign()
                        && self.bytes()[self.at..].starts_with(b"<![CDATA[") =>
                {
                    self.at += 9;
                    let rest = &self.bytes()[self.at..];
                    let length = memmem::find(rest, b"]]>").unwrap_or(rest.len());
                    let piece = self.data(length);
                    self.at = (self.at + 3).min(self.text.len());
                    if piece.is_some() {
                        return piece;
                    }
                }
                (Some(b'!' | b'?'), _) | (Some(b'/'), Some(_)) => self.declaration(),
                _ => self.at += 1,
            }
        }
    }
}

fn ends_name(byte: u8) -> bool {
    // Most bytes are letters, which one comparison tells.
    byte <= b'>' && (is_blank(byte) || matches!(byte, b'/' | b'>'))
}

/// A name in lower case; none that is longer than those that matter.
fn lowered<'b>(name: &str, buffer: &'b mut [u8; Spaces::LONGEST]) -> &'b [u8] {
    let Some(lower) = buffer.get_mut(..name.len()) else {
        return b"";
    };
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    lower
}

/// The length of a comment, which begins with `<!--`.
fn comment_end(rest: &[u8]) -> usize {
    if rest[4..].starts_with(b">") {
        return 5;
    }
    if rest[4..].starts_with(b"->") {
        return 6;
    }
    let mut at = 4;
    while let Some(dashes) = memmem::find(&rest[at..], b"--") {
        at += dashes + 2;
        while rest.get(at) == Some(&b'-') {
            at += 1;
        }
        if rest.get(at) == Some(&b'>') {
            return at + 1;
        }
        if rest[at..].starts_with(b"!>") {
            return at + 2;
        }
    }
    rest.len()
}

/// Whether a tag of this name begins after `<` or `</`.
fn is_named(after: &[u8], name: &[u8]) -> bool {
    after.len() > name.len()
        && after[..name.len()].eq_ignore_ascii_case(name)
        && ends_name(after[name.len()])
}

/// Where the end tag of an element with text begins.
fn text_end(rest: &[u8], name: &[u8]) -> usize {
    memmem::find_iter(rest, b"</")
        .find(|slash| is_named(&rest[slash + 2..], name))
        .unwrap_or(rest.len())
}

/// Where the end tag of a script begins. In what looks like a comment, a script may be in the script.
fn script_end(rest: &[u8]) -> usize {
    let (mut commented, mut inner) = (false, false);
    let mut at = 0;
    while let Some(mark) = memchr2(b'<', b'-', &rest[at..]) {
        at += mark;
        let here = &rest[at..];
        if !commented {
            if here.starts_with(b"<!--") {
                commented = true;
                // The two dashes may be those of the end, too.
                at += 2;
                continue;
            }
        } else if here.starts_with(b"-->") {
            (commented, inner) = (false, false);
        } else if !inner && here[0] == b'<' && is_named(&here[1..], b"script") {
            inner = true;
        }
        if here.starts_with(b"</") && is_named(&here[2..], b"script") {
            if !inner {
                return at;
            }
            inner = false;
        }
        at += 1;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use lol_html::{RewriteStrSettings, element, rewrite_str};

    use super::*;

    type Tag = (String, Vec<(String, String)>);

    fn ours(page: &str) -> Vec<Tag> {
        let mut tags = Tags::new(page);
        let mut found = Vec::new();
        while let Some(piece) = tags.next() {
            if let Piece::Start(name) = piece {
                for attribute in tags.attributes() {
                    let (start, end) = (attribute.at, attribute.at + attribute.value.len());
                    assert_eq!(&page[start..end], attribute.value);
                    assert!(page[attribute.name_at..].starts_with(attribute.name));
                }
                let attributes = tags.attributes().iter();
                let attributes =
                    attributes.map(|each| (each.name.to_ascii_lowercase(), each.value.to_owned()));
                found.push((name.to_ascii_lowercase(), attributes.collect()));
            }
        }
        found
    }

    /// Those that another parser finds, which tests compare with browsers.
    fn theirs(page: &str) -> Vec<Tag> {
        let mut found = Vec::new();
        let handler = element!("*", |tag| {
            let attributes = tag.attributes().iter();
            let attributes = attributes.map(|each| (each.name(), each.value()));
            found.push((tag.tag_name(), attributes.collect()));
            Ok(())
        });
        let settings = RewriteStrSettings::new()
            .with_strict(false)
            .append_element_content_handler(handler);
        rewrite_str(page, settings).expect("whatever the page is, it is read");
        found
    }

    const PIECES: &[&str] = &[
        "<a href=x>",
        "<A/HREF = 'x' y>",
        "<b",
        "<p>",
        "</p>",
        "</p ",
        ">",
        "/>",
        "/",
        "=",
        "'",
        "\"",
        " ",
        "\n",
        "x",
        "y=z",
        "y = 'z'",
        "y=\"z\"",
        "a='",
        "a=\"",
        "<!--",
        "-->",
        "--!>",
        "<!-->",
        "<!--->",
        "-",
        "--",
        "!",
        "<!",
        "<?",
        "</",
        "</>",
        "<",
        "<!doctype html>",
        "<!DOCTYPE x '>",
        "<![CDATA[",
        "]]>",
        "<script>",
        "</script>",
        "</script ",
        "<SCRIPT ",
        "</scriptx>",
        "<style>",
        "</style>",
        "</STYLE/",
        "<title>",
        "</title>",
        "<textarea>",
        "</textarea>",
        "<xmp>",
        "</xmp>",
        "<iframe src=x>",
        "</iframe>",
        "<noscript>",
        "</noscript>",
        "<noframes>",
        "</noframes>",
        "<noembed>",
        "</noembed>",
        "<svg>",
        "</svg>",
        "<math>",
        "</math>",
        "<mi>",
        "</mi>",
        "<desc>",
        "</desc>",
        "<foreignObject>",
        "</foreignobject>",
        "<annotation-xml encoding='text/html'>",
        "</annotation-xml>",
        "<font>",
        "<font color=x>",
        "<table>",
        "<br/>",
        "</br>",
        "<g>",
        "é",
        "<x-\u{e9}>",
    ];

    /// Both find the same tags in pages of a few pieces at random; those with drawings or formulas inside each other aside:
    /// there the other reads on otherwise than browsers do.
    #[test]
    fn tags_are_those_of_another_parser() {
        let mut state = 7_u64;
        let mut dice = move |sides: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).expect("31 bits") % sides
        };
        for _ in 0..20_000 {
            let length = 1 + dice(12);
            let page: String = (0..length).map(|_| PIECES[dice(PIECES.len())]).collect();
            if page.matches("<svg").count() + page.matches("<math").count() <= 1 {
                assert_eq!(ours(&page), theirs(&page), "{page:?}");
            }
        }
    }
}
