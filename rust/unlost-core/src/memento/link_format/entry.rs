//! One entry: a URL in brackets, then parameters.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2};

use super::{Fault, is_filling, next_entry};

/// The text from the beginning of an entry to where the next one begins.
pub(super) struct EntryText<'a> {
    text: &'a [u8],
    begin: usize,
    end: usize,
    /// The start of the next entry.
    pub(super) next: Option<usize>,
    /// Whether it includes the starts of other entries, within quotes.
    pub(super) is_extended: bool,
}

impl<'a> EntryText<'a> {
    pub(super) fn new(text: &'a [u8], begin: usize, next: Option<usize>) -> Self {
        let mut entry_text = Self {
            text,
            begin,
            end: begin,
            next,
            is_extended: false,
        };
        entry_text.set_end(begin, next);
        entry_text
    }

    /// Sets the end before the next entry, without the separator. The end is not before `from`.
    fn set_end(&mut self, from: usize, next: Option<usize>) {
        let part = &self.text[from..next.unwrap_or(self.text.len())];
        let last = part.iter().rposition(|&byte| !is_filling(byte));
        self.next = next;
        self.end = from + last.unwrap_or(0) + 1;
    }

    /// Extends the text if the value at its end has an open quote that closes later. Returns the value and the text
    /// after it.
    fn extend(&mut self, value: &[u8]) -> Option<&'a [u8]> {
        let begin = self.end - value.len();
        let value = &self.text[begin..];
        let close = begin + closing_quote(value)?;
        if close < self.end {
            return None; // the quote is not open: what follows it is wrong
        }
        self.is_extended = true;
        self.set_end(close, next_entry(self.text, close));
        Some(&self.text[begin..self.end])
    }
}

/// A URL and its parameters.
pub(super) struct Entry<'a> {
    pub(super) uri: &'a [u8],
    pub(super) parameters: Parameters<'a>,
}

impl<'a> Entry<'a> {
    /// Parses an entry. The text is extended if that is allowed and a quote is open at its end.
    pub(super) fn read(entry_text: &mut EntryText<'a>, may_extend: bool) -> Result<Self, Fault> {
        let (uri, rest) = split_uri(&entry_text.text[entry_text.begin..entry_text.end])?;
        let parameters = Parameters::read(rest, |value| {
            may_extend.then(|| entry_text.extend(value)).flatten()
        });
        match parameters {
            Ok(parameters) => Ok(Self { uri, parameters }),
            Err(_) if entry_text.is_extended => Err(Fault::BadQuote),
            Err(fault) => Err(fault),
        }
    }
}

/// The URL ends at the first `>` that is followed by parameters or by nothing: a `>` may be part of it.
pub(super) fn split_uri(entry_text: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    let inner = &entry_text[1..];
    for end in memchr_iter(b'>', inner) {
        let rest = inner[end + 1..].trim_ascii_start();
        if rest.first().is_none_or(|&next| next == b';') {
            let uri = inner[..end].trim_ascii();
            // No early exit, so that the compiler vectorises the loop.
            let is_bad = |byte: u8| byte.is_ascii_control() || byte == b'<';
            let bad = uri.iter().fold(false, |bad, &byte| bad | is_bad(byte));
            let sound = !uri.is_empty() && !bad;
            return if sound {
                Ok((uri, rest))
            } else {
                Err(Fault::BadUri)
            };
        }
    }
    Err(Fault::BadUri)
}

/// The supported parameters. The first of each name counts (RFC 8288).
#[derive(Default)]
pub(super) struct Parameters<'a> {
    pub(super) rel: Option<Cow<'a, [u8]>>,
    pub(super) datetime: Option<Cow<'a, [u8]>>,
    pub(super) media_type: Option<Cow<'a, [u8]>>,
    pub(super) from: Option<Cow<'a, [u8]>>,
    pub(super) until: Option<Cow<'a, [u8]>>,
}

impl<'a> Parameters<'a> {
    /// `extended` gets an invalid quoted value with the text after it; it returns more of the text, if there is any.
    fn read(
        mut rest: &'a [u8],
        mut extended: impl FnMut(&'a [u8]) -> Option<&'a [u8]>,
    ) -> Result<Self, Fault> {
        let mut parameters = Self::default();
        // Each iteration begins at a semicolon.
        while let Some(after) = rest.strip_prefix(b";") {
            let after = after.trim_ascii_start();
            let end = memchr2(b'=', b';', after).unwrap_or(after.len());
            let name = after[..end].trim_ascii_end();
            rest = &after[end..];
            let value = match rest.strip_prefix(b"=") {
                None => Cow::Borrowed(&b""[..]),
                Some(_) if name.is_empty() => return Err(Fault::BadParameter),
                Some(after) => {
                    let after = after.trim_ascii_start();
                    match split_value(after, &mut rest) {
                        Err(fault) => split_value(extended(after).ok_or(fault)?, &mut rest)?,
                        Ok(value) => value,
                    }
                }
            };
            let field = match name {
                _ if name.eq_ignore_ascii_case(b"rel") => &mut parameters.rel,
                _ if name.eq_ignore_ascii_case(b"datetime") => &mut parameters.datetime,
                _ if name.eq_ignore_ascii_case(b"type") => &mut parameters.media_type,
                _ if name.eq_ignore_ascii_case(b"from") => &mut parameters.from,
                _ if name.eq_ignore_ascii_case(b"until") => &mut parameters.until,
                _ => continue,
            };
            field.get_or_insert(value);
        }
        Ok(parameters)
    }
}

/// Splits a value, quoted or not, from the text after it, which begins with a semicolon or is empty.
fn split_value<'a>(text: &'a [u8], rest: &mut &'a [u8]) -> Result<Cow<'a, [u8]>, Fault> {
    if !is_quoted(text) {
        let end = memchr(b';', text).unwrap_or(text.len());
        *rest = &text[end..];
        return match memchr(b'"', &text[..end]) {
            Some(_) => Err(Fault::BadQuote),
            None => Ok(Cow::Borrowed(text[..end].trim_ascii_end())),
        };
    }
    let end = closing_quote(text).ok_or(Fault::BadQuote)?;
    *rest = text[end + 1..].trim_ascii_start();
    if rest.first().is_some_and(|&next| next != b';') {
        return Err(Fault::BadQuote);
    }
    Ok(unescape(&text[1..end]))
}

fn is_quoted(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'"' | b'\''))
}

/// The offset of the quote that closes the one at the start.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let quote = *text.first().filter(|_| is_quoted(text))?;
    let mut end = 1;
    loop {
        end += memchr2(quote, b'\\', text.get(end..)?)?;
        if text[end] == quote {
            return Some(end);
        }
        end += 2;
    }
}

fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'\\', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut bytes = text.iter();
    let mut out = Vec::with_capacity(text.len());
    while let Some(&byte) = bytes.next() {
        out.push(if byte == b'\\' {
            *bytes.next().unwrap_or(&byte)
        } else {
            byte
        });
    }
    Cow::Owned(out)
}

/// The relations of an entry: several words, in any order and case.
#[allow(clippy::struct_excessive_bools)] // the words are independent of each other
#[derive(Default)]
pub(super) struct Relations {
    pub(super) memento: bool,
    pub(super) first: bool,
    pub(super) last: bool,
    pub(super) original: bool,
    pub(super) timegate: bool,
    pub(super) timemap: bool,
    pub(super) self_link: bool,
}

impl Relations {
    pub(super) fn of(value: &[u8]) -> Self {
        let mut relations = Self::default();
        for word in value.split(u8::is_ascii_whitespace) {
            let flag = match word {
                _ if word.eq_ignore_ascii_case(b"memento") => &mut relations.memento,
                _ if word.eq_ignore_ascii_case(b"first") => &mut relations.first,
                _ if word.eq_ignore_ascii_case(b"last") => &mut relations.last,
                _ if word.eq_ignore_ascii_case(b"original") => &mut relations.original,
                _ if word.eq_ignore_ascii_case(b"timegate") => &mut relations.timegate,
                _ if word.eq_ignore_ascii_case(b"timemap") => &mut relations.timemap,
                _ if word.eq_ignore_ascii_case(b"self") => &mut relations.self_link,
                _ => continue,
            };
            *flag = true;
        }
        relations
    }
}
