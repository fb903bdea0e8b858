//! Lenient parser for link-format `TimeMap`s (RFC 6690, RFC 7089): a malformed entry does not affect the others.
//!
//! The text is first cut where an entry must begin: at a `<` that is first on its line or follows a comma. Each piece
//! is parsed separately, so that a missing quote or bracket cannot reach into the next entry, and commas within an
//! entry are harmless. A quoted value may contain such a `<`: an entry whose last quote is open extends to the piece in
//! which the quote closes, if the longer entry is valid. Entries within an invalid longer entry are never extended,
//! which keeps the parser linear for any input.

mod entry;

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use self::entry::{Entry, EntryText, Relations};
use super::httpdate::{self, Digits};

/// The kinds of errors in an entry, or in the whole text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// HTML or XML where link-format was expected.
    Html,
    /// Text that is in no entry.
    NoLink,
    /// A URL that is empty, unterminated, or contains control characters.
    BadUri,
    /// A quote that is unterminated or misplaced.
    BadQuote,
    /// Text between URL and parameters, or a parameter without a name.
    BadParameter,
    /// An entry without a relation.
    NoRel,
    /// A memento without a valid date, also in its URL.
    NoDate,
    /// A memento beyond the capacity of the receiver.
    TooLarge,
}

impl Fault {
    /// All, in the order of their discriminants.
    pub const ALL: [Self; 8] = [
        Self::Html,
        Self::NoLink,
        Self::BadUri,
        Self::BadQuote,
        Self::BadParameter,
        Self::NoRel,
        Self::NoDate,
        Self::TooLarge,
    ];

    /// The error code, used for counting.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::NoLink => "no-link",
            Self::BadUri => "bad-uri",
            Self::BadQuote => "bad-quote",
            Self::BadParameter => "bad-parameter",
            Self::NoRel => "no-rel",
            Self::NoDate => "no-date",
            Self::TooLarge => "too-large",
        }
    }
}

/// One memento.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memento<'a> {
    /// Its URL (URI-M).
    pub uri: Cow<'a, str>,
    /// The capture date.
    pub datetime: Digits,
    /// The `TimeMap` calls it the first.
    pub first: bool,
    /// The `TimeMap` calls it the last.
    pub last: bool,
    /// The date was missing or invalid, and was taken from the URL.
    pub dated_by_uri: bool,
}

/// A linked `TimeMap`: another page of the list, another format, or the list itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeMapLink<'a> {
    /// Its URL.
    pub uri: Cow<'a, str>,
    /// Its media type, verbatim.
    pub media_type: Option<String>,
    /// The first date that it covers.
    pub from: Option<Digits>,
    /// The last date that it covers.
    pub until: Option<Digits>,
}

/// Receives the mementos of a text one by one.
pub trait MementoSink<'a> {
    /// Takes a memento, or returns the error in it.
    fn take(&mut self, memento: Memento<'a>) -> Result<(), Fault>;
}

impl<'a> MementoSink<'a> for Vec<Memento<'a>> {
    fn take(&mut self, memento: Memento<'a>) -> Result<(), Fault> {
        self.push(memento);
        Ok(())
    }
}

/// The content of a `TimeMap`.
#[derive(Debug, PartialEq, Eq)]
pub struct TimeMap<'a, M = Vec<Memento<'a>>> {
    /// The URL of the original resource (URI-R).
    pub original: Option<Cow<'a, str>>,
    /// The link of the `TimeMap` to itself.
    pub self_link: Option<TimeMapLink<'a>>,
    /// The URL of the `TimeGate`.
    pub timegate: Option<Cow<'a, str>>,
    /// Other `TimeMap`s.
    pub timemaps: Vec<TimeMapLink<'a>>,
    /// In the order of the text.
    pub mementos: M,
    /// The number of links with other relations, or with repeated ones.
    pub other_links: usize,
    /// For each of [`Fault::ALL`]: the count, and the offset of the first in bytes.
    pub faults: [(usize, usize); Fault::ALL.len()],
}

/// Parses a whole `TimeMap`. Never fails: errors are counted.
#[must_use]
pub fn read(text: &[u8]) -> TimeMap<'_> {
    read_into(text, Vec::new())
}

/// Parses a whole `TimeMap` and passes its mementos to `mementos` one by one.
#[must_use]
pub fn read_into<'a, M: MementoSink<'a>>(text: &'a [u8], mementos: M) -> TimeMap<'a, M> {
    let mut timemap = TimeMap {
        original: None,
        self_link: None,
        timegate: None,
        timemaps: Vec::new(),
        mementos,
        other_links: 0,
        faults: [(0, 0); Fault::ALL.len()],
    };
    let start = if text.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    if is_html(text[start..].trim_ascii_start()) {
        timemap.count(Fault::Html, start);
        return timemap;
    }
    let text = &text[start..];
    let mut next = next_entry(text, 0);
    let before = &text[..next.unwrap_or(text.len())];
    if let Some(at) = before.iter().position(|&byte| !is_filling(byte)) {
        timemap.count(Fault::NoLink, start + at);
    }
    let mut extensible_from = 0;
    while let Some(at) = next {
        next = next_entry(text, at + 1);
        let mut entry_text = EntryText::new(text, at, next);
        let entry = match Entry::read(&mut entry_text, at >= extensible_from) {
            Ok(entry) => {
                next = entry_text.next;
                Ok(entry)
            }
            Err(fault) if entry_text.is_extended => {
                extensible_from = entry_text.next.unwrap_or(text.len());
                Err(fault)
            }
            Err(fault) => Err(fault),
        };
        if let Err(fault) = entry.and_then(|entry| timemap.add(entry)) {
            timemap.count(fault, start + at);
        }
    }
    timemap
}

fn is_html(text: &[u8]) -> bool {
    let openings: [&[u8]; 6] = [
        b"<!doctype",
        b"<html",
        b"<head",
        b"<body",
        b"<?xml",
        b"<!--",
    ];
    let is_opening = openings.iter().any(|opening| {
        text.get(..opening.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(opening))
    });
    is_opening && !is_entry(text)
}

/// Whether text that looks like a tag is a URL with parameters: `<html5.org>; rel="original"`.
fn is_entry(text: &[u8]) -> bool {
    memchr(b'>', text).is_some_and(|end| text[end + 1..].trim_ascii_start().starts_with(b";"))
}

/// The start of the first entry at or after `from`.
fn next_entry(text: &[u8], from: usize) -> Option<usize> {
    memchr_iter(b'<', &text[from..])
        .map(|at| from + at)
        .find(|&at| begins_entry(text, at))
}

/// Whether the `<` at this offset is first on its line, or follows a comma.
fn begins_entry(text: &[u8], at: usize) -> bool {
    for &byte in text[..at].iter().rev() {
        match byte {
            b' ' | b'\t' => {}
            b',' | b'\n' | b'\r' => return true,
            _ => return false,
        }
    }
    true
}

fn is_filling(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b','
}

impl<'a, M: MementoSink<'a>> TimeMap<'a, M> {
    fn count(&mut self, fault: Fault, at: usize) {
        let (times, first) = &mut self.faults[fault as usize];
        if *times == 0 {
            *first = at;
        }
        *times += 1;
    }

    fn add(&mut self, entry: Entry<'a>) -> Result<(), Fault> {
        let Entry { uri, parameters } = entry;
        let rel = Relations::of(&parameters.rel.ok_or(Fault::NoRel)?);
        let uri = readable(uri);
        let mut used = false;
        if rel.memento {
            self.mementos
                .take(memento(uri.clone(), &rel, parameters.datetime.as_deref())?)?;
            used = true;
        }
        if rel.original && self.original.is_none() {
            self.original = Some(uri.clone());
            used = true;
        }
        if rel.timegate && self.timegate.is_none() {
            self.timegate = Some(uri.clone());
            used = true;
        }
        if (rel.self_link && self.self_link.is_none()) || (rel.timemap && !rel.self_link) {
            let date = |value: Option<Cow<'_, [u8]>>| value.and_then(|value| read_date(&value));
            let link = TimeMapLink {
                uri,
                media_type: parameters
                    .media_type
                    .map(|value| String::from_utf8_lossy(&value).into_owned()),
                from: date(parameters.from),
                until: date(parameters.until),
            };
            used = true;
            if rel.self_link {
                self.self_link = Some(link);
            } else {
                self.timemaps.push(link);
            }
        }
        self.other_links += usize::from(!used);
        Ok(())
    }
}

fn memento<'a>(
    uri: Cow<'a, str>,
    rel: &Relations,
    datetime: Option<&[u8]>,
) -> Result<Memento<'a>, Fault> {
    let declared = datetime.and_then(read_date);
    let datetime = declared
        .or_else(|| date_in_uri(uri.as_bytes()))
        .ok_or(Fault::NoDate)?;
    Ok(Memento {
        uri,
        datetime,
        first: rel.first,
        last: rel.last,
        dated_by_uri: declared.is_none(),
    })
}

fn read_date(text: &[u8]) -> Option<Digits> {
    httpdate::parse(text).or_else(|| httpdate::parse_iso(text))
}

/// Bytes that are not UTF-8 are percent-encoded.
fn readable(uri: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(uri) {
        Ok(uri) => Cow::Borrowed(uri),
        Err(_) => Cow::Owned(uri.iter().fold(String::new(), |mut out, &byte| {
            if byte.is_ascii() {
                out.push(char::from(byte));
            } else {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                out.push('%');
                out.push(char::from(HEX[usize::from(byte >> 4)]));
                out.push(char::from(HEX[usize::from(byte & 15)]));
            }
            out
        })),
    }
}

/// The first 14 digits after a slash that are a valid date, as almost all archives write them.
fn date_in_uri(uri: &[u8]) -> Option<Digits> {
    memchr_iter(b'/', uri).find_map(|slash| {
        let rest = &uri[slash + 1..];
        // 15 digits are not a date.
        if rest.get(14).is_some_and(u8::is_ascii_digit) {
            return None;
        }
        httpdate::from_digits(rest.get(..14)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_entry_does_not_affect_other_entries() {
        let text = b"<http://a/20140101000000/x>; rel=\"memento; datetime=\"Wed, 01 Jan 2014 00:00:00 GMT\",\n\
            <http://a/20150101000000/x,y;z>;rel=memento,";
        let timemap = read(text);
        assert_eq!(timemap.faults[Fault::BadQuote as usize], (1, 0));
        assert_eq!(timemap.mementos.len(), 1);
        assert_eq!(timemap.mementos[0].uri, "http://a/20150101000000/x,y;z");
        assert!(timemap.mementos[0].dated_by_uri);
    }

    #[test]
    fn quoted_value_may_contain_an_entry_start() {
        let text = b"<a>; title=\"x, <y>; rel=\\\"self\\\"\n<z\"; rel=original, <b>; title=\", <\"; rel=timegate";
        let timemap = read(text);
        assert_eq!(timemap.original.as_deref(), Some("a"));
        assert_eq!(timemap.timegate.as_deref(), Some("b"));
        assert_eq!(timemap.self_link, None);
        assert_eq!(timemap.faults, [(0, 0); Fault::ALL.len()]);
    }

    #[test]
    fn escape_at_the_end_leaves_the_quote_open() {
        let timemap = read(b"<a>; rel=\"memento\\");
        assert_eq!(timemap.faults[Fault::BadQuote as usize], (1, 0));
    }
}
