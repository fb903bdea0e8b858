//! A lenient XML parser for links, which reads any input to the end.
//!
//! Document types are not parsed and nothing is fetched: only the five entities of XML and numeric ones are supported.

use std::borrow::Cow;

use memchr::memmem;

use super::elements::{Attribute, Quote};
use super::spans::is_blank;

/// The next event of a document.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'t> {
    /// A start tag with its name; its attributes are in [`Events::attributes`].
    Start { name: &'t str, empty: bool },
    /// An end tag.
    End(&'t str),
    /// Text as written.
    Text(&'t str),
    /// Text without escapes.
    Literal(&'t str),
    /// The target of a processing instruction, whose data is parsed like attributes.
    Instruction(&'t str),
}

/// Parses a document.
pub struct Events<'t> {
    text: &'t str,
    at: usize,
    attributes: Vec<Attribute<'t>>,
}

impl<'t> Events<'t> {
    pub fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            attributes: Vec::new(),
        }
    }

    /// The attributes of the last start tag or processing instruction.
    pub fn attributes(&self) -> &[Attribute<'t>] {
        &self.attributes
    }

    /// The offset of the parser.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Skips an element that has just begun, up to its end tag, and returns its content; without an end tag, the rest
    /// of the document.
    pub fn content(&mut self, name: &str) -> &'t str {
        let rest = &self.text[self.at..];
        let mut end = rest.len();
        for slash in memmem::find_iter(rest.as_bytes(), b"</") {
            let after = &rest.as_bytes()[slash + 2..];
            if after.get(..name.len()) == Some(name.as_bytes()) {
                end = slash;
                break;
            }
        }
        self.at += end;
        &rest[..end]
    }

    /// Reads up to `mark`, and skips it; up to the end if there is none.
    fn until(&mut self, mark: &str) -> &'t str {
        let rest = &self.text[self.at..];
        let (content_end, consumed) = match memmem::find(rest.as_bytes(), mark.as_bytes()) {
            Some(length) => (length, length + mark.len()),
            None => (rest.len(), rest.len()),
        };
        self.at += consumed;
        &rest[..content_end]
    }

    fn skip(&mut self, matches: impl Fn(u8) -> bool) -> &'t str {
        let rest = &self.text[self.at..];
        let end = rest.bytes().position(|byte| !matches(byte));
        let end = end.unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Reads attributes and the end of the tag; returns whether the tag is self-closing.
    fn tag(&mut self) -> bool {
        self.attributes.clear();
        let mut empty = false;
        loop {
            self.skip(is_blank);
            match self.peek() {
                None | Some(b'<') => return empty,
                Some(b'>') => {
                    self.at += 1;
                    return empty;
                }
                Some(b'/' | b'?' | b'=' | b'"' | b'\'') => {
                    empty = self.peek() == Some(b'/');
                    self.at += 1;
                }
                Some(_) => {
                    empty = false;
                    self.attribute();
                }
            }
        }
    }

    fn attribute(&mut self) {
        let name_at = self.at;
        let name = self.skip(is_name);
        if name.is_empty() {
            // An invalid character: all of its bytes are skipped.
            self.at += self.text[self.at..]
                .chars()
                .next()
                .map_or(0, char::len_utf8);
            return;
        }
        let after_name = self.at;
        self.skip(is_blank);
        if self.peek() != Some(b'=') {
            self.at = after_name;
            return;
        }
        self.at += 1;
        self.skip(is_blank);
        let quote = match self.peek() {
            Some(b'"') => Quote::Double,
            Some(b'\'') => Quote::Single,
            _ => Quote::None,
        };
        self.at += usize::from(quote != Quote::None);
        let at = self.at;
        let value = match quote {
            Quote::Double => self.until("\""),
            Quote::Single => self.until("'"),
            Quote::None | Quote::Missing => self.skip(|byte| !is_blank(byte) && byte != b'>'),
        };
        // The prefix of the XLink namespace is not fixed: `ns1:href`.
        let is_address = name.len() > 5 && name.ends_with(":href");
        self.attributes.push(Attribute {
            name: if is_address {
                b"xlink:href"
            } else {
                name.as_bytes()
            },
            value: Cow::Borrowed(value),
            name_at,
            at,
            quote,
        });
    }

    /// Skips a document type with all its declarations.
    fn doctype(&mut self) {
        self.skip(|byte| byte != b'>' && byte != b'[');
        if self.peek() == Some(b'[') {
            self.until("]");
            self.skip(|byte| byte != b'>');
        }
        if self.peek().is_some() {
            self.at += 1;
        }
    }
}

impl<'t> Iterator for Events<'t> {
    type Item = Event<'t>;

    fn next(&mut self) -> Option<Event<'t>> {
        loop {
            let rest = &self.text[self.at..];
            if rest.is_empty() {
                return None;
            }
            let follows = |mark: &str| rest.as_bytes().starts_with(mark.as_bytes());
            if follows("<!--") {
                self.at += 4;
                self.until("-->");
            } else if follows("<![CDATA[") {
                self.at += 9;
                return Some(Event::Literal(self.until("]]>")));
            } else if follows("<!") {
                self.doctype();
            } else if follows("<?") {
                self.at += 2;
                let name = self.skip(is_name);
                self.tag();
                return Some(Event::Instruction(name));
            } else if follows("</") {
                self.at += 2;
                let name = self.skip(is_name);
                self.until(">");
                return Some(Event::End(name));
            } else if rest.len() > 1 && follows("<") && is_name(rest.as_bytes()[1]) {
                self.at += 1;
                let name = self.skip(is_name);
                let empty = self.tag();
                return Some(Event::Start { name, empty });
            } else {
                // At least one byte: a `<` that begins nothing is text.
                let length = memchr::memchr(b'<', &rest.as_bytes()[1..]);
                let length = length.map_or(rest.len(), |length| length + 1);
                self.at += length;
                return Some(Event::Text(&rest[..length]));
            }
        }
    }
}

fn is_name(byte: u8) -> bool {
    !is_blank(byte)
        && !matches!(
            byte,
            b'<' | b'>' | b'/' | b'=' | b'"' | b'\'' | b'!' | b'?' | b'\0'
        )
}

/// The name of an element without its namespace prefix.
pub fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

/// The unescaped text. Entities that XML does not define are unchanged.
pub fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // The longest is &#x10ffff; so the search is short.
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        if let Some(end) = end
            && let Some(character) = entity(&rest[1..end])
        {
            out.push(character);
            rest = &rest[end + 1..];
        } else {
            out.push('&');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn entity(name: &str) -> Option<char> {
    let number = match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        _ => name.strip_prefix('#')?,
    };
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None; // `from_str_radix` would take a sign
    }
    let code = u32::from_str_radix(digits, radix).ok()?;
    char::from_u32(code).filter(|&character| character != '\0')
}
