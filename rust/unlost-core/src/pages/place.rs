//! Where a text stands that is looked into: a page, the value of an attribute in it, a page in such a value.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

use super::elements::Quote;
use super::xml;

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

/// A text, and the way to it from the whole document.
pub struct Place<'p> {
    /// The text as it is meant, without escapes.
    pub text: &'p str,
    outer: Option<&'p Place<'p>>,
    /// Where it begins in the outer text.
    start: usize,
    /// How it is escaped there, and what it looks like there.
    layer: Option<(Layer, &'p str)>,
    /// Where what is escaped begins, in `text` and as it is written.
    escapes: OnceCell<Vec<Pair>>,
}

impl<'p> Place<'p> {
    /// A whole document.
    pub fn whole(text: &'p str) -> Self {
        Self::new(text, None, 0, None)
    }

    /// A part that stands in a text as it is.
    pub fn part(&'p self, start: usize, text: &'p str) -> Self {
        Self::new(text, Some(self), start, None)
    }

    /// A part that is `written` with escapes, and means `text`.
    pub fn escaped(&'p self, start: usize, layer: Layer, written: &'p str, text: &'p str) -> Self {
        Self::new(text, Some(self), start, Some((layer, written)))
    }

    fn new(
        text: &'p str,
        outer: Option<&'p Place<'p>>,
        start: usize,
        layer: Option<(Layer, &'p str)>,
    ) -> Self {
        Self {
            text,
            outer,
            start,
            layer,
            escapes: OnceCell::new(),
        }
    }

    /// Where in the whole document a part of the text is written.
    pub fn outward(&self, span: Range<usize>) -> Range<usize> {
        let Some(outer) = self.outer else {
            return span;
        };
        let (start, end) = (self.written_at(span.start), self.written_at(span.end));
        outer.outward(self.start + start..self.start + end)
    }

    /// How many entities end where a place is written, without a semicolon. What is written behind such a one must begin
    /// with it: `&quot` before `x` is none.
    pub fn unended(&self, at: usize) -> usize {
        let Some(outer) = self.outer else {
            return 0;
        };
        let end = self.written_at(at);
        let own = self
            .escapes()
            .is_some_and(|(layer, written, _)| is_unended(layer, &written[..end]));
        usize::from(own) + outer.unended(self.start + end)
    }

    /// How the text is escaped, if it is, and where.
    fn escapes(&self) -> Option<(Layer, &'p str, &[Pair])> {
        let (layer, written) = self.layer?;
        // What has no escapes is the same text, not only an equal one.
        if std::ptr::eq(written, self.text) {
            return None;
        }
        let escapes = self
            .escapes
            .get_or_init(|| escapes(written, |piece| layer.plain(piece).len()));
        Some((layer, written, escapes))
    }

    fn written_at(&self, at: usize) -> usize {
        let Some((_, written, escapes)) = self.escapes() else {
            return at;
        };
        let next = escapes.partition_point(|&(meant, _)| meant <= at);
        let (meant, begun) = escapes[next - 1];
        if at == meant {
            return begun;
        }
        // After an escape, both are as far from the end of their piece.
        let whole = (self.text.len(), written.len());
        let (meant_end, written_end) = escapes.get(next).copied().unwrap_or(whole);
        written_end - (meant_end - at).min(written_end)
    }

    /// How what is written here is escaped, the innermost first.
    pub fn layers(&self) -> impl Iterator<Item = Layer> {
        std::iter::successors(Some(self), |place| place.outer)
            .filter_map(|place| place.layer.map(|(layer, _)| layer))
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
}

/// The value of an attribute as a browser has it.
pub fn value(written: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'&', 0, written.as_bytes()).is_none() {
        return Cow::Borrowed(written);
    }
    let value = htmlize::unescape_attribute(written);
    if memchr::memchr(0, value.as_bytes()).is_some() {
        return value.replace('\0', "\u{fffd}").into();
    }
    value
}

/// The text in pieces, of which each but the first begins with what may be an escape, in the text that is meant and as it is
/// written. No escape goes over the beginning of another.
fn escapes(written: &str, meant_length: impl Fn(&str) -> usize) -> Vec<Pair> {
    let mut found = vec![(0, 0)];
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
