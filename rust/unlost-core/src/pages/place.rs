//! Where a text stands that is looked into: a page, the value of an attribute in it, a page in such a value.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

use super::elements::Quote;
use super::{scan, xml};

/// Where something stands in the text as it is meant, and as it is written.
type Pair = (usize, usize);

/// How characters are escaped where a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// In the value of an attribute.
    Value(Quote),
    /// In that of an instruction in XML, which knows fewer entities.
    XmlValue(Quote),
    /// Between tags of XML.
    XmlText,
}

/// Layers of escapes around a text: a value in a page that is itself in a value has two. There are never more.
const MAX_LAYERS: usize = 2;

/// The innermost first.
pub type Layers = [Option<Layer>; MAX_LAYERS];

fn deeper(layers: Layers, layer: Layer) -> Option<Layers> {
    match layers {
        [outer, None] => Some([Some(layer), outer]),
        _ => None,
    }
}

/// How a text is written where it stands.
#[derive(Clone, Copy)]
enum Spelling<'p> {
    /// As it is.
    Plain,
    /// With escapes: how, and what it looks like.
    Escaped(Layer, &'p str),
    /// With a byte for each letter, in so many bytes.
    Letters(usize),
}

/// A text, and the way to it from the whole document.
pub struct Place<'p> {
    /// The text as it is meant, without escapes; empty if only its parts are read.
    pub text: &'p str,
    outer: Option<&'p Place<'p>>,
    /// Where it begins in the outer text.
    start: usize,
    /// Where it begins in the whole document, if all of it is written there as it is.
    shift: Option<usize>,
    spelling: Spelling<'p>,
    /// How what is written here is escaped, the innermost first; `None` if it is more often than anybody looks into.
    pub layers: Option<Layers>,
    /// Where what is spelled otherwise begins, in `text` and as it is written.
    pairs: OnceCell<Vec<Pair>>,
}

impl<'p> Place<'p> {
    /// A whole document.
    pub fn whole(text: &'p str) -> Self {
        Self {
            text,
            outer: None,
            start: 0,
            shift: Some(0),
            spelling: Spelling::Plain,
            layers: Some([None; MAX_LAYERS]),
            pairs: OnceCell::new(),
        }
    }

    fn within(&'p self, start: usize, text: &'p str, spelling: Spelling<'p>) -> Self {
        let is_same = match spelling {
            Spelling::Plain => true,
            // What has no escapes is the same text, not only an equal one.
            Spelling::Escaped(_, written) => std::ptr::eq(written, text),
            Spelling::Letters(_) => false,
        };
        let layers = match spelling {
            Spelling::Escaped(layer, _) => self.layers.and_then(|layers| deeper(layers, layer)),
            Spelling::Plain | Spelling::Letters(_) => self.layers,
        };
        Self {
            text,
            outer: Some(self),
            start,
            shift: self.shift.filter(|_| is_same).map(|shift| shift + start),
            spelling,
            layers,
            pairs: OnceCell::new(),
        }
    }

    /// A part of which only parts are read.
    pub fn unread(&'p self, start: usize) -> Self {
        self.within(start, "", Spelling::Plain)
    }

    /// A part as it was read: where its bytes are no text, it is written with one for each letter.
    #[expect(clippy::ptr_arg, reason = "whether it had to be made is what it tells")]
    pub fn read(&'p self, start: usize, text: &'p Cow<'_, str>) -> Self {
        let spelling = match text {
            Cow::Borrowed(_) => Spelling::Plain,
            Cow::Owned(text) => Spelling::Letters(text.chars().count()),
        };
        self.within(start, text, spelling)
    }

    /// The same text, in which something is escaped, as it is meant.
    pub fn escaped(&'p self, layer: Layer, meant: &'p str) -> Self {
        self.within(0, meant, Spelling::Escaped(layer, self.text))
    }

    /// A part that is `written` with escapes.
    pub fn escaped_part(
        &'p self,
        start: usize,
        layer: Layer,
        written: &'p str,
        meant: &'p str,
    ) -> Self {
        self.within(start, meant, Spelling::Escaped(layer, written))
    }

    /// Where the text begins in the whole document, if it is written there as it is.
    pub fn shift(&self) -> Option<usize> {
        self.shift
    }

    /// Where in the whole document a part of the text is written.
    pub fn outward(&self, span: Range<usize>) -> Range<usize> {
        if let Some(shift) = self.shift {
            return shift + span.start..shift + span.end;
        }
        let Some(outer) = self.outer else {
            return span;
        };
        let (start, end) = (self.written_at(span.start), self.written_at(span.end));
        outer.outward(self.start + start..self.start + end)
    }

    /// How many entities end where a place is written, without a semicolon. What is written behind such a one must begin
    /// with it: `&quot` before `x` is none.
    pub fn unended(&self, at: usize) -> usize {
        let Some(outer) = self.outer.filter(|_| self.shift.is_none()) else {
            return 0;
        };
        let end = self.written_at(at);
        let own = match self.spelling {
            Spelling::Escaped(layer, written) if !std::ptr::eq(written, self.text) => {
                is_unended(layer, &written[..end])
            }
            _ => false,
        };
        usize::from(own) + outer.unended(self.start + end)
    }

    /// Where a place in the text is in what is written.
    fn written_at(&self, at: usize) -> usize {
        let length = match self.spelling {
            Spelling::Plain => return at,
            Spelling::Escaped(_, written) if std::ptr::eq(written, self.text) => return at,
            Spelling::Escaped(_, written) => written.len(),
            Spelling::Letters(length) => length,
        };
        // Most addresses are all of a text, whatever is spelled otherwise in between.
        if at == 0 || at == self.text.len() {
            return if at == 0 { 0 } else { length };
        }
        let pairs = self.pairs.get_or_init(|| match self.spelling {
            Spelling::Escaped(layer, written) => {
                escapes(written, |piece| layer.plain_length(piece))
            }
            Spelling::Plain | Spelling::Letters(_) => letters(self.text),
        });
        let next = pairs.partition_point(|&(meant, _)| meant <= at);
        let (meant, begun) = pairs[next - 1];
        if at == meant {
            return begun;
        }
        // After what is spelled otherwise, both are as far from the end of their piece.
        let whole = (self.text.len(), length);
        let (meant_end, written_end) = pairs.get(next).copied().unwrap_or(whole);
        written_end - (meant_end - at).min(written_end)
    }
}

impl Layer {
    /// The text that is meant.
    pub fn plain(self, written: &str) -> Cow<'_, str> {
        match self {
            Self::Value(_) => value(written),
            Self::XmlText | Self::XmlValue(_) => xml::plain(written),
        }
    }

    /// The length of the text that is meant by a piece which has no escape but at its beginning.
    fn plain_length(self, piece: &str) -> usize {
        if piece.starts_with(AMPERSAND) {
            return piece.len() - AMPERSAND.len() + 1;
        }
        self.plain(piece).len()
    }
}

/// The value of an attribute as a browser has it.
pub fn value(written: &str) -> Cow<'_, str> {
    if !scan::has_either(written.as_bytes(), b'&', 0) {
        return Cow::Borrowed(written);
    }
    if let Some(value) = with_ampersands(written) {
        return Cow::Owned(value);
    }
    let value = htmlize::unescape_attribute(written);
    if memchr::memchr(0, value.as_bytes()).is_some() {
        return value.replace('\0', "\u{fffd}").into();
    }
    value
}

/// What most values with entities have, and no others: `&amp;` in an address.
const AMPERSAND: &str = "&amp;";

/// A value in which nothing is escaped but ampersands. `None` if something else may be.
fn with_ampersands(written: &str) -> Option<String> {
    let mut value = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = memchr::memchr2(b'&', 0, rest.as_bytes()) {
        value.push_str(&rest[..at]);
        rest = rest[at..].strip_prefix(AMPERSAND)?;
        value.push('&');
    }
    value.push_str(rest);
    Some(value)
}

/// The text in pieces, of which each but the first begins with what may be an escape, in the text that is meant and as it is
/// written. No escape goes over the beginning of another.
fn escapes(written: &str, meant_length: impl Fn(&str) -> usize) -> Vec<Pair> {
    let mut found = Vec::with_capacity(8);
    found.push((0, 0));
    let mut meant = 0;
    let mut start = 0;
    let marks = memchr::memchr2_iter(b'&', 0, written.as_bytes());
    for end in marks.filter(|&mark| mark > 0) {
        meant += meant_length(&written[start..end]);
        start = end;
        found.push((meant, start));
    }
    found
}

/// The text in pieces, of which each but the first begins with a letter that is no ASCII, in the text and where each letter
/// is one byte.
fn letters(text: &str) -> Vec<Pair> {
    let mut found = vec![(0, 0)];
    // A longer letter has more bytes here than where it is written.
    let mut longer = 0;
    for (at, letter) in text.char_indices().filter(|(_, letter)| !letter.is_ascii()) {
        if at > 0 {
            found.push((at, at - longer));
        }
        longer += letter.len_utf8() - 1;
    }
    found
}

/// Whether what is written ends in an entity to which a semicolon could be added.
fn is_unended(layer: Layer, written: &str) -> bool {
    // No entity is longer.
    let near = written.len().saturating_sub(40);
    let Some(begun) = memchr::memrchr(b'&', &written.as_bytes()[near..]) else {
        return false;
    };
    let last = &written[near + begun..];
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'#';
    last.len() > 1
        && last.bytes().skip(1).all(is_name)
        && layer.plain(last) != last
        && layer.plain(&format!("{last};")) == layer.plain(last)
}
