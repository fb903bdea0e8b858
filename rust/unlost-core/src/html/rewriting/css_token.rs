//! The content of a CSS token that is a URL.

use std::ops::Range;

use super::url_writer::UrlSyntax;
use crate::html::elements::Quote;
use crate::html::spans::is_blank;

/// The content of `url(…)` or of a string.
pub struct Inside {
    pub span: Range<usize>,
    pub between: UrlSyntax,
    /// Whether it contains no escapes.
    pub is_plain: bool,
}

/// Parses a token; at the end of a style sheet it may be unterminated.
pub fn inside(token: &str) -> Inside {
    let bytes = token.as_bytes();
    let (start, between) = match bytes.first() {
        Some(b'"') => (1, UrlSyntax::String(Quote::Double)),
        Some(b'\'') => (1, UrlSyntax::String(Quote::Single)),
        _ => {
            let open = memchr::memchr(b'(', bytes).map_or(bytes.len(), |open| open + 1);
            let blanks = bytes[open..].iter().take_while(|&&byte| is_blank(byte));
            (open + blanks.count(), UrlSyntax::Brackets)
        }
    };
    let ends = |byte: u8| match between {
        UrlSyntax::String(Quote::Double) => byte == b'"',
        UrlSyntax::String(_) => byte == b'\'',
        _ => byte == b')' || is_blank(byte),
    };
    let mut end = start;
    while end < bytes.len() && !ends(bytes[end]) {
        // An escaped character ends nothing.
        end += match bytes[end] {
            b'\\' => escape_length(&bytes[end..]),
            _ => 1,
        };
    }
    let end = end.min(bytes.len());
    let is_plain = memchr::memchr2(b'\\', 0, &bytes[start..end]).is_none();
    Inside {
        span: start..end,
        between,
        is_plain,
    }
}

/// The length of an escape: a backslash with a byte, or with up to six digits and a blank that ends them.
fn escape_length(rest: &[u8]) -> usize {
    let digits = rest[1..].iter().take(6);
    let digits = digits.take_while(|byte| byte.is_ascii_hexdigit()).count();
    if digits == 0 {
        return 2;
    }
    let blank = match &rest[1 + digits..] {
        [b'\r', b'\n', ..] => 2,
        [byte, ..] if is_blank(*byte) => 1,
        _ => 0,
    };
    1 + digits + blank
}
