//! An HTML tokenizer that follows the standard and reports offsets.
//!
//! A tokenizer must know whether it is inside SVG or `MathML`: there, `<style>` and `<title>` are ordinary elements, and
//! `CDATA` is text. [`ForeignContentStack`] tracks that.

mod raw_text;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use super::elements::{Attribute, Quote};
use super::foreign_content::{self, Content, ForeignContentStack, name_bytes};
use super::simd_scanner::SimdByteScanner;
use super::source::Source;
use super::{attribute_names, byte_scan};

/// The next token of a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    /// A start tag with its name; its attributes are in [`Tags::attributes`].
    Start(&'t [u8]),
    /// The range of the style sheet in an element.
    Style(Range<usize>),
    /// The range of the script in an element; only with [`Tags::for_scripts`].
    Script(Range<usize>),
    /// The range of the fallback content of an element, such as `<noscript>`.
    Fallback(Range<usize>),
}

/// Tokenizes a page.
pub struct Tags<'t> {
    source: Source<'t>,
    bytes: &'t [u8],
    at: usize,
    window: SimdByteScanner<'t>,
    /// The offset of the next `<`, if it is near.
    ahead: Option<usize>,
    attributes: Vec<Attribute<'t>>,
    /// Whether to report all tags and all attributes, also those that do not matter for links.
    include_all: bool,
    /// Whether to report scripts, and attributes that they read.
    for_scripts: bool,
    spaces: ForeignContentStack,
    /// How the content after the last reported tag is tokenized.
    next: Content,
    /// Whether the text between tags is that of a `<style>` in SVG.
    in_style: bool,
}

impl<'t> Tags<'t> {
    /// Reports attributes which [may matter](attribute_names::may_matter), and their tags.
    pub fn new(source: Source<'t>) -> Self {
        Self {
            source,
            bytes: source.bytes(),
            at: 0,
            window: SimdByteScanner::new(source.bytes()),
            ahead: None,
            attributes: Vec::new(),
            include_all: false,
            for_scripts: false,
            spaces: ForeignContentStack::default(),
            next: Content::Markup,
            in_style: false,
        }
    }

    /// Also reports attributes that [scripts read or run](attribute_names::is_read_by_scripts), and scripts.
    pub fn for_scripts(source: Source<'t>) -> Self {
        Self {
            for_scripts: true,
            ..Self::new(source)
        }
    }

    /// The attributes of the last start tag. Those without a value have an empty one.
    pub fn attributes(&self) -> &[Attribute<'t>] {
        &self.attributes
    }

    fn rest(&self) -> &'t [u8] {
        &self.bytes[self.at..]
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    /// The content of a raw-text element, up to its end tag.
    fn raw(&mut self) -> Option<Piece<'t>> {
        let start = self.at;
        let rest = self.rest();
        let content = std::mem::replace(&mut self.next, Content::Markup);
        let length = match content {
            Content::Markup => return None,
            Content::Rest => rest.len(),
            Content::Script => raw_text::script_end(rest),
            Content::Text(name) => raw_text::text_end(rest, name_bytes(&name)),
        };
        self.at = start + length;
        match content {
            // An unterminated script is not run.
            Content::Script if self.for_scripts && 0 < length && self.at < self.bytes.len() => {
                Some(Piece::Script(start..self.at))
            }
            Content::Text(name) if name_bytes(&name) == b"style" => {
                Some(Piece::Style(start..self.at))
            }
            Content::Text(name)
                if matches!(name_bytes(&name), b"noscript" | b"noframes" | b"noembed") =>
            {
                Some(Piece::Fallback(start..self.at))
            }
            _ => None,
        }
    }

    /// Skips markup that begins with `<!` or `<?`, and end tags without a name.
    fn declaration(&mut self) {
        let rest = self.rest();
        self.at += if rest.starts_with(b"<!--") {
            raw_text::comment_end(rest)
        } else {
            memchr::memchr(b'>', rest).map_or(rest.len(), |end| end + 1)
        };
    }

    /// Reads a tag from its name on; returns the name, and whether the tag is self-closing. `None` if the page ends in
    /// it.
    #[expect(
        clippy::inline_always,
        reason = "real pages take a twentieth longer without"
    )]
    #[inline(always)]
    fn tag(&mut self, is_start: bool) -> Option<(&'t [u8], bool)> {
        let start = self.at;
        let end = self.window.tag_name_end(start)?;
        let name = &self.bytes[start..end];
        if self.bytes[end] == b'>' {
            self.at = end + 1;
            return Some((name, false));
        }
        let slash = self.rest_of_tag(end, is_start)?;
        Some((name, slash))
    }

    /// Reads the attributes of a tag from `at` on, and its end; returns whether it is self-closing.
    #[inline(never)]
    fn rest_of_tag(&mut self, mut at: usize, is_start: bool) -> Option<bool> {
        let bytes = self.bytes;
        let keeps_all = is_start && (self.include_all || self.spaces.is_foreign());
        loop {
            let mut slash = false;
            loop {
                match *bytes.get(at)? {
                    b'/' => slash = true,
                    byte if byte_scan::is_blank_byte(byte) => slash = false,
                    _ => break,
                }
                at += 1;
            }
            if bytes[at] == b'>' {
                self.at = at + 1;
                return Some(slash);
            }
            let name_at = at;
            // A `=` may begin a name, but not continue one.
            let name_end = self.window.attribute_name_end(at + 1)?;
            at = byte_scan::blanks_end(bytes, name_end)?;
            let (mut value, mut quote) = (name_end..name_end, Quote::Missing);
            if bytes[at] == b'=' {
                at = byte_scan::blanks_end(bytes, at + 1)?;
                if let mark @ (b'"' | b'\'') = bytes[at] {
                    let end = self.window.quote(at + 1, mark)?;
                    (value, quote) = (at + 1..end, Quote::of(mark));
                    at = end + 1;
                } else {
                    let end = self.window.value_end(at)?;
                    (value, quote) = (at..end, Quote::None);
                    at = end;
                }
            } else {
                // Blanks after a name are skipped like those before the next one.
                at = name_end;
            }
            let name = &bytes[name_at..name_end];
            let is_kept = attribute_names::may_matter(name)
                || (self.for_scripts && attribute_names::is_read_by_scripts(name));
            if keeps_all || (is_start && is_kept) {
                self.push_attribute(name_at..name_end, value, quote);
            }
        }
    }

    #[inline]
    fn push_attribute(&mut self, name: Range<usize>, value: Range<usize>, quote: Quote) {
        let at = value.start;
        // In place, so that nothing has to be copied.
        let value = match self.source {
            Source::Text(text) => Cow::Borrowed(&text[value]),
            Source::SingleByte(..) => return self.push_decoded_attribute(name, value, quote),
        };
        self.attributes.push(Attribute {
            name_at: name.start,
            name: &self.bytes[name],
            at,
            value,
            quote,
        });
    }

    #[inline(never)]
    fn push_decoded_attribute(&mut self, name: Range<usize>, value: Range<usize>, quote: Quote) {
        self.attributes.push(Attribute {
            name_at: name.start,
            name: &self.bytes[name],
            at: value.start,
            value: self.source.read(value),
            quote,
        });
    }

    /// Reads a start tag, and returns its name.
    fn start(&mut self) -> Option<&'t [u8]> {
        self.attributes.clear();
        let (name, empty) = self.tag(true)?;
        if !self.spaces.is_foreign() && !foreign_content::may_matter(name) {
            self.in_style = false;
            return Some(name);
        }
        let mut lower = [0; ForeignContentStack::MAX_NAME_LEN];
        let lower = lowered(name, &mut lower);
        self.next = self.spaces.start(lower, &self.attributes, empty);
        if self.spaces.is_foreign() {
            self.in_style |= lower == b"style" && !empty;
        } else {
            self.in_style = false;
        }
        Some(name)
    }

    fn end(&mut self) -> Option<()> {
        let (name, _) = self.tag(false)?;
        if self.spaces.is_none() {
            self.in_style = false;
            return Some(());
        }
        let mut lower = [0; ForeignContentStack::MAX_NAME_LEN];
        let lower = lowered(name, &mut lower);
        self.spaces.end(lower);
        if lower == b"style" || !self.spaces.is_foreign() {
            self.in_style = false;
        }
        Some(())
    }

    /// Text up to the next markup, reported if it is a style sheet.
    fn data(&mut self, end: usize) -> Option<Piece<'t>> {
        let start = std::mem::replace(&mut self.at, end);
        (self.in_style && end > start).then_some(Piece::Style(start..end))
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
            let end = match self.ahead {
                Some(ahead) if ahead >= self.at => ahead,
                _ => self.window.open(self.at).unwrap_or(self.bytes.len()),
            };
            if let Some(piece) = self.data(end) {
                return Some(piece);
            }
            if self.at == self.bytes.len() {
                return None;
            }
            // Searching the next tag before this one is parsed lets the processor do both at once.
            self.ahead = self.window.near_open(end + 1);
            match (self.peek(1), self.peek(2)) {
                (Some(letter), _) if letter.is_ascii_alphabetic() => {
                    self.at += 1;
                    let name = self.start()?;
                    if self.include_all || !self.attributes.is_empty() {
                        return Some(Piece::Start(name));
                    }
                }
                (Some(b'/'), Some(letter)) if letter.is_ascii_alphabetic() => {
                    self.at += 2;
                    self.end()?;
                }
                (Some(b'!'), _)
                    if self.spaces.is_foreign() && self.rest().starts_with(b"<![CDATA[") =>
                {
                    self.at += 9;
                    let end = memmem::find(self.rest(), b"]]>");
                    let end = end.map_or(self.bytes.len(), |length| self.at + length);
                    let piece = self.data(end);
                    self.at = (self.at + 3).min(self.bytes.len());
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

/// A name in lower case; empty if it is longer than those that matter.
fn lowered<'b>(name: &[u8], buffer: &'b mut [u8; ForeignContentStack::MAX_NAME_LEN]) -> &'b [u8] {
    let Some(lower) = buffer.get_mut(..name.len()) else {
        return b"";
    };
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    lower
}
