//! The URL in a `<meta http-equiv=refresh>`.

use std::ops::Range;

use super::is_blank;

/// The range of the URL, parsed as in the HTML standard: `5; url='next.html'`. `None` if the page reloads itself.
#[must_use]
pub fn url(content: &str) -> Option<Range<usize>> {
    let bytes = content.as_bytes();
    let skip = |mut at: usize, matches: fn(u8) -> bool| {
        while at < bytes.len() && matches(bytes[at]) {
            at += 1;
        }
        at
    };
    let start = skip(0, is_blank);
    let after_time = skip(start, |byte| byte.is_ascii_digit() || byte == b'.');
    let mut at = skip(after_time, is_blank);
    if after_time == start || (at == after_time && !matches!(bytes.get(at), Some(b';' | b','))) {
        return None;
    }
    if matches!(bytes.get(at), Some(b';' | b',')) {
        at = skip(at + 1, is_blank);
    }
    if let Some(word) = bytes.get(at..at + 3)
        && word.eq_ignore_ascii_case(b"url")
    {
        let equals = skip(at + 3, is_blank);
        if bytes.get(equals) == Some(&b'=') {
            at = skip(equals + 1, is_blank);
        }
    }
    let mut end = bytes.len();
    if let Some(&quote @ (b'"' | b'\'')) = bytes.get(at) {
        at += 1;
        end = memchr::memchr(quote, &bytes[at..]).map_or(end, |length| at + length);
    }
    (at < end).then_some(at..end)
}
