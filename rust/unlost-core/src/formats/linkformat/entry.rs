//! One entry: an address in brackets, then parameters.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2};

use super::Fault;

/// The address ends at the first `>` behind which parameters begin, or nothing more comes: a `>` may be part of it.
pub(super) fn split_uri(piece: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    let inner = &piece[1..];
    for end in memchr_iter(b'>', inner) {
        let rest = inner[end + 1..].trim_ascii_start();
        if rest.first().is_none_or(|&next| next == b';') {
            let uri = inner[..end].trim_ascii();
            // Without a way out in the middle: it is done many bytes at a time.
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

/// The parameters that mean something here; the first of each name counts, as RFC 8288 has it.
#[derive(Default)]
pub(super) struct Parameters<'a> {
    pub(super) rel: Option<Cow<'a, [u8]>>,
    pub(super) datetime: Option<Cow<'a, [u8]>>,
    pub(super) media_type: Option<Cow<'a, [u8]>>,
    pub(super) from: Option<Cow<'a, [u8]>>,
    pub(super) until: Option<Cow<'a, [u8]>>,
}

impl<'a> Parameters<'a> {
    pub(super) fn read(mut rest: &'a [u8]) -> Result<Self, Fault> {
        let mut found = Self::default();
        // Each round begins at a semicolon.
        while let Some(after) = rest.strip_prefix(b";") {
            let after = after.trim_ascii_start();
            let end = memchr2(b'=', b';', after).unwrap_or(after.len());
            let name = after[..end].trim_ascii_end();
            rest = &after[end..];
            let value = match rest.strip_prefix(b"=") {
                None => Cow::Borrowed(&b""[..]),
                Some(_) if name.is_empty() => return Err(Fault::BadParameter),
                Some(after) => split_value(after.trim_ascii_start(), &mut rest)?,
            };
            let place = match name {
                _ if name.eq_ignore_ascii_case(b"rel") => &mut found.rel,
                _ if name.eq_ignore_ascii_case(b"datetime") => &mut found.datetime,
                _ if name.eq_ignore_ascii_case(b"type") => &mut found.media_type,
                _ if name.eq_ignore_ascii_case(b"from") => &mut found.from,
                _ if name.eq_ignore_ascii_case(b"until") => &mut found.until,
                _ => continue,
            };
            place.get_or_insert(value);
        }
        Ok(found)
    }
}

/// Cuts a value, in quotes or not, from what follows: a semicolon or nothing.
fn split_value<'a>(text: &'a [u8], rest: &mut &'a [u8]) -> Result<Cow<'a, [u8]>, Fault> {
    let Some(&quote) = text.first().filter(|&&byte| byte == b'"' || byte == b'\'') else {
        let end = memchr(b';', text).unwrap_or(text.len());
        *rest = &text[end..];
        return match memchr(b'"', &text[..end]) {
            Some(_) => Err(Fault::BadQuote),
            None => Ok(Cow::Borrowed(text[..end].trim_ascii_end())),
        };
    };
    let mut end = 1;
    loop {
        end += memchr2(quote, b'\\', text.get(end..).ok_or(Fault::BadQuote)?)
            .ok_or(Fault::BadQuote)?;
        if text[end] == quote {
            break;
        }
        end += 2;
    }
    *rest = text[end + 1..].trim_ascii_start();
    if rest.first().is_some_and(|&next| next != b';') {
        return Err(Fault::BadQuote);
    }
    Ok(unescape(&text[1..end]))
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

/// What an entry says that it is: several words, in any order and case.
#[allow(clippy::struct_excessive_bools)] // the words are independent of each other
#[derive(Default)]
pub(super) struct Relations {
    pub(super) memento: bool,
    pub(super) first: bool,
    pub(super) last: bool,
    pub(super) original: bool,
    pub(super) timegate: bool,
    pub(super) timemap: bool,
    pub(super) itself: bool,
}

impl Relations {
    pub(super) fn of(value: &[u8]) -> Self {
        let mut found = Self::default();
        for word in value.split(u8::is_ascii_whitespace) {
            let flag = match word {
                _ if word.eq_ignore_ascii_case(b"memento") => &mut found.memento,
                _ if word.eq_ignore_ascii_case(b"first") => &mut found.first,
                _ if word.eq_ignore_ascii_case(b"last") => &mut found.last,
                _ if word.eq_ignore_ascii_case(b"original") => &mut found.original,
                _ if word.eq_ignore_ascii_case(b"timegate") => &mut found.timegate,
                _ if word.eq_ignore_ascii_case(b"timemap") => &mut found.timemap,
                _ if word.eq_ignore_ascii_case(b"self") => &mut found.itself,
                _ => continue,
            };
            *flag = true;
        }
        found
    }
}
