//! The context of a parsed text: a page, the value of an attribute in it, a page in such a value.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

use super::elements::Quote;
use super::{byte_scan, xml};

/// Corresponding offsets in the unescaped text and in the source.
type OffsetPair = (usize, usize);

/// How characters are escaped around a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EscapeLayer {
    /// An attribute value.
    Value(Quote),
    /// A pseudo-attribute of an XML processing instruction, with fewer entities.
    XmlValue(Quote),
    /// XML text.
    XmlText,
}

/// The maximum layers of escapes: a value in a page that is itself in a value has two.
const MAX_LAYERS: usize = 2;

/// The innermost first.
pub type EscapeLayers = [Option<EscapeLayer>; MAX_LAYERS];

fn push_layer(layers: EscapeLayers, layer: EscapeLayer) -> Option<EscapeLayers> {
    match layers {
        [outer, None] => Some([Some(layer), outer]),
        _ => None,
    }
}

/// The form of a text in its source.
#[derive(Clone, Copy)]
enum SourceForm<'p> {
    /// Verbatim.
    Plain,
    /// Escaped: how, and the source.
    Escaped(EscapeLayer, &'p str),
    /// A single-byte encoding, with the number of bytes.
    SingleByte(usize),
}

/// A text, and the path to it from the whole document.
pub struct ParseContext<'p> {
    /// The unescaped text; empty if only its parts are read.
    pub text: &'p str,
    outer: Option<&'p ParseContext<'p>>,
    /// Its offset in the outer text.
    start: usize,
    /// Its offset in the whole document, if it is verbatim there.
    shift: Option<usize>,
    source_form: SourceForm<'p>,
    /// How replacements are escaped, the innermost first; `None` beyond the maximum.
    pub layers: Option<EscapeLayers>,
    /// Offsets of escapes in `text` and in the source.
    offset_map: OnceCell<Vec<OffsetPair>>,
}

impl<'p> ParseContext<'p> {
    /// A whole document.
    pub fn whole(text: &'p str) -> Self {
        Self {
            text,
            outer: None,
            start: 0,
            shift: Some(0),
            source_form: SourceForm::Plain,
            layers: Some([None; MAX_LAYERS]),
            offset_map: OnceCell::new(),
        }
    }

    fn within(&'p self, start: usize, text: &'p str, source_form: SourceForm<'p>) -> Self {
        let is_same = match source_form {
            SourceForm::Plain => true,
            // A text without escapes is the same slice, not only an equal one.
            SourceForm::Escaped(_, written) => std::ptr::eq(written, text),
            SourceForm::SingleByte(_) => false,
        };
        let layers = match source_form {
            SourceForm::Escaped(layer, _) => {
                self.layers.and_then(|layers| push_layer(layers, layer))
            }
            SourceForm::Plain | SourceForm::SingleByte(_) => self.layers,
        };
        Self {
            text,
            outer: Some(self),
            start,
            shift: self.shift.filter(|_| is_same).map(|shift| shift + start),
            source_form,
            layers,
            offset_map: OnceCell::new(),
        }
    }

    /// A part of which only parts are read.
    pub fn unread(&'p self, start: usize) -> Self {
        self.within(start, "", SourceForm::Plain)
    }

    /// A decoded part: if it is not UTF-8, its source is in a single-byte encoding.
    #[expect(clippy::ptr_arg, reason = "whether it had to be made is what it tells")]
    pub fn read(&'p self, start: usize, text: &'p Cow<'_, str>) -> Self {
        let source_form = match text {
            Cow::Borrowed(_) => SourceForm::Plain,
            Cow::Owned(text) => SourceForm::SingleByte(text.chars().count()),
        };
        self.within(start, text, source_form)
    }

    /// The same text, which contains escapes, in unescaped form.
    pub fn escaped(&'p self, layer: EscapeLayer, unescaped: &'p str) -> Self {
        self.within(0, unescaped, SourceForm::Escaped(layer, self.text))
    }

    /// A part whose source is `written`, with escapes.
    pub fn escaped_part(
        &'p self,
        start: usize,
        layer: EscapeLayer,
        written: &'p str,
        unescaped: &'p str,
    ) -> Self {
        self.within(start, unescaped, SourceForm::Escaped(layer, written))
    }

    /// The offset of the text in the whole document, if it is verbatim there.
    pub fn shift(&self) -> Option<usize> {
        self.shift
    }

    /// The range in the whole document of a part of the text.
    pub fn document_range(&self, span: Range<usize>) -> Range<usize> {
        if let Some(shift) = self.shift {
            return shift + span.start..shift + span.end;
        }
        let Some(outer) = self.outer else {
            return span;
        };
        let (start, end) = (self.written_at(span.start), self.written_at(span.end));
        outer.document_range(self.start + start..self.start + end)
    }

    /// The number of entities without a semicolon that end at an offset. A replacement there must begin with one:
    /// `&quot` before `x` is not an entity.
    pub fn unterminated_entities(&self, at: usize) -> usize {
        let Some(outer) = self.outer.filter(|_| self.shift.is_none()) else {
            return 0;
        };
        let end = self.written_at(at);
        let own = match self.source_form {
            SourceForm::Escaped(layer, written) if !std::ptr::eq(written, self.text) => {
                is_unterminated_entity(layer, &written[..end])
            }
            _ => false,
        };
        usize::from(own) + outer.unterminated_entities(self.start + end)
    }

    /// The offset in the source of an offset in the text.
    fn written_at(&self, at: usize) -> usize {
        let length = match self.source_form {
            SourceForm::Plain => return at,
            SourceForm::Escaped(_, written) if std::ptr::eq(written, self.text) => return at,
            SourceForm::Escaped(_, written) => written.len(),
            SourceForm::SingleByte(length) => length,
        };
        // Most URLs are the whole text, whatever is escaped within.
        if at == 0 || at == self.text.len() {
            return if at == 0 { 0 } else { length };
        }
        let offset_map = self.offset_map.get_or_init(|| match self.source_form {
            SourceForm::Escaped(layer, written) => {
                escapes(written, |piece| layer.unescaped_length(piece))
            }
            SourceForm::Plain | SourceForm::SingleByte(_) => single_byte_offsets(self.text),
        });
        let next = offset_map.partition_point(|&(unescaped, _)| unescaped <= at);
        let (unescaped, entity_start) = offset_map[next - 1];
        if at == unescaped {
            return entity_start;
        }
        // After an escape, both offsets have the same distance to the end of their piece.
        let whole = (self.text.len(), length);
        let (meant_end, written_end) = offset_map.get(next).copied().unwrap_or(whole);
        written_end - (meant_end - at).min(written_end)
    }
}

impl EscapeLayer {
    /// The unescaped text.
    pub fn unescape(self, written: &str) -> Cow<'_, str> {
        match self {
            Self::Value(_) => unescape_attribute(written),
            Self::XmlText | Self::XmlValue(_) => xml::unescape(written),
        }
    }

    /// The unescaped length of a piece that has no escape but at its beginning.
    fn unescaped_length(self, piece: &str) -> usize {
        if piece.starts_with(AMPERSAND) {
            return piece.len() - AMPERSAND.len() + 1;
        }
        self.unescape(piece).len()
    }
}

/// The value of an attribute as in browsers.
pub fn unescape_attribute(written: &str) -> Cow<'_, str> {
    if !byte_scan::has_either(written.as_bytes(), b'&', 0) {
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

/// The only entity in most values that have any: `&amp;` in a URL.
const AMPERSAND: &str = "&amp;";

/// A value that contains only escaped ampersands. `None` if there may be other escapes.
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

/// Splits a text into pieces, each but the first of which begins with a potential escape; returns offsets in the
/// unescaped text and in the source. No escape contains the beginning of another.
fn escapes(written: &str, meant_length: impl Fn(&str) -> usize) -> Vec<OffsetPair> {
    let mut offsets = Vec::with_capacity(8);
    offsets.push((0, 0));
    let mut unescaped = 0;
    let mut start = 0;
    let marks = memchr::memchr2_iter(b'&', 0, written.as_bytes());
    for end in marks.filter(|&mark| mark > 0) {
        unescaped += meant_length(&written[start..end]);
        start = end;
        offsets.push((unescaped, start));
    }
    offsets
}

/// Splits a text into pieces, each but the first of which begins with a non-ASCII character; returns offsets in the
/// text and in its source in a single-byte encoding.
fn single_byte_offsets(text: &str) -> Vec<OffsetPair> {
    let mut offsets = vec![(0, 0)];
    // A non-ASCII character has more bytes in UTF-8 than in the source.
    let mut longer = 0;
    for (at, character) in text
        .char_indices()
        .filter(|(_, character)| !character.is_ascii())
    {
        if at > 0 {
            offsets.push((at, at - longer));
        }
        longer += character.len_utf8() - 1;
    }
    offsets
}

/// Whether the source ends in an entity that lacks a semicolon.
fn is_unterminated_entity(layer: EscapeLayer, written: &str) -> bool {
    // All entities of the HTML standard are shorter.
    let near = written.len().saturating_sub(40);
    let Some(entity_start) = memchr::memrchr(b'&', &written.as_bytes()[near..]) else {
        return false;
    };
    let last = &written[near + entity_start..];
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'#';
    last.len() > 1
        && last.bytes().skip(1).all(is_name)
        && layer.unescape(last) != last
        && layer.unescape(&format!("{last};")) == layer.unescape(last)
}
