//! Link-format `TimeMap`s (RFC 6690, RFC 7089), read leniently: a bad entry loses itself and nothing else.
//!
//! The text is first cut where an entry must begin: at a `<` that is first on its line or follows a comma. Only then is
//! each piece looked at. So no missing quote or bracket can reach into the next entry, and commas need no care within
//! one. A quoted value may contain such a `<`: an entry whose last quote is open extends to the piece in which the quote
//! closes, if the longer entry is valid. Entries within a longer entry that is not valid are never extended, so that the
//! whole is linear whatever the input.

mod entry;

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use self::entry::{Entry, EntryText, Relations};
use super::httpdate::{self, Digits};

/// What an entry, or the text as a whole, can be bad for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// HTML or XML where link-format was expected.
    Html,
    /// Text that is in no entry.
    NoLink,
    /// An address that is empty, does not end, or has control characters in it.
    BadUri,
    /// A quote that does not end, or in the wrong place.
    BadQuote,
    /// Something between address and parameters, or a parameter without a name.
    BadParameter,
    /// An entry that does not say what it is.
    NoRel,
    /// A memento without a readable date, also in its address.
    NoDate,
    /// A memento for which whoever takes them has no more room.
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

    /// One word for counting.
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

/// One archived copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memento<'a> {
    /// Its address (URI-M).
    pub uri: Cow<'a, str>,
    /// When it was captured.
    pub datetime: Digits,
    /// The list calls it the first.
    pub first: bool,
    /// The list calls it the last.
    pub last: bool,
    /// The date was not given, or not readable, and was taken from the address.
    pub dated_by_uri: bool,
}

/// A `TimeMap` that is linked: another page of the list, the same list in another format, or the list itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeMapLink<'a> {
    /// Its address.
    pub uri: Cow<'a, str>,
    /// Its media type, as it stands.
    pub media_type: Option<String>,
    /// The first date that it covers.
    pub from: Option<Digits>,
    /// The last date that it covers.
    pub until: Option<Digits>,
}

/// Whoever takes the mementos of a text, one after another.
pub trait MementoSink<'a> {
    /// Takes one, or says what is wrong with it.
    fn take(&mut self, memento: Memento<'a>) -> Result<(), Fault>;
}

impl<'a> MementoSink<'a> for Vec<Memento<'a>> {
    fn take(&mut self, memento: Memento<'a>) -> Result<(), Fault> {
        self.push(memento);
        Ok(())
    }
}

/// Everything that a `TimeMap` tells.
#[derive(Debug, PartialEq, Eq)]
pub struct TimeMap<'a, M = Vec<Memento<'a>>> {
    /// The address whose copies are listed.
    pub original: Option<Cow<'a, str>>,
    /// The link of the list to itself.
    pub self_link: Option<TimeMapLink<'a>>,
    /// Where to ask for the copy closest to a date.
    pub timegate: Option<Cow<'a, str>>,
    /// Other lists.
    pub timemaps: Vec<TimeMapLink<'a>>,
    /// In the order of the text.
    pub mementos: M,
    /// How many links had other relations only, or repeated what only the first can say.
    pub other_links: usize,
    /// For each of [`Fault::ALL`]: how often, and where first, in bytes.
    pub faults: [(usize, usize); Fault::ALL.len()],
}

/// Reads a whole `TimeMap`. Never fails: what cannot be read is counted.
#[must_use]
pub fn read(text: &[u8]) -> TimeMap<'_> {
    read_into(text, Vec::new())
}

/// Reads a whole `TimeMap`, and gives its mementos to `mementos` as they come.
#[must_use]
pub fn read_into<'a, M: MementoSink<'a>>(text: &'a [u8], mementos: M) -> TimeMap<'a, M> {
    let mut found = TimeMap {
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
        found.count(Fault::Html, start);
        return found;
    }
    let text = &text[start..];
    let mut next = next_entry(text, 0);
    let before = &text[..next.unwrap_or(text.len())];
    if let Some(at) = before.iter().position(|&byte| !is_filling(byte)) {
        found.count(Fault::NoLink, start + at);
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
        if let Err(fault) = entry.and_then(|entry| found.add(entry)) {
            found.count(fault, start + at);
        }
    }
    found
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

/// Whether what begins like a tag is an address with parameters: `<html5.org>; rel="original"`.
fn is_entry(text: &[u8]) -> bool {
    memchr(b'>', text).is_some_and(|end| text[end + 1..].trim_ascii_start().starts_with(b";"))
}

/// Where the first entry begins that does not begin before this place.
fn next_entry(text: &[u8], from: usize) -> Option<usize> {
    memchr_iter(b'<', &text[from..])
        .map(|at| from + at)
        .find(|&at| begins_entry(text, at))
}

/// Whether the `<` at this place comes first on its line, or after a comma.
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

/// Bytes that are not UTF-8 stand for themselves, escaped, as in every address.
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

/// The first 14 digits that are a date and directly behind a slash, as almost all archives write them.
fn date_in_uri(uri: &[u8]) -> Option<Digits> {
    memchr_iter(b'/', uri).find_map(|slash| {
        let rest = &uri[slash + 1..];
        // 15 digits are something else.
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
        let found = read(text);
        assert_eq!(found.faults[Fault::BadQuote as usize], (1, 0));
        assert_eq!(found.mementos.len(), 1);
        assert_eq!(found.mementos[0].uri, "http://a/20150101000000/x,y;z");
        assert!(found.mementos[0].dated_by_uri);
    }

    #[test]
    fn quoted_value_may_contain_an_entry_start() {
        let text = b"<a>; title=\"x, <y>; rel=\\\"self\\\"\n<z\"; rel=original, <b>; title=\", <\"; rel=timegate";
        let found = read(text);
        assert_eq!(found.original.as_deref(), Some("a"));
        assert_eq!(found.timegate.as_deref(), Some("b"));
        assert_eq!(found.self_link, None);
        assert_eq!(found.faults, [(0, 0); Fault::ALL.len()]);
    }

    #[test]
    fn escape_at_the_end_leaves_the_quote_open() {
        let found = read(b"<a>; rel=\"memento\\");
        assert_eq!(found.faults[Fault::BadQuote as usize], (1, 0));
    }
}
