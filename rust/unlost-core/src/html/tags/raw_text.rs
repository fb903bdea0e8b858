//! Finds the end of raw text: comments, scripts, and elements without markup.

use memchr::{memchr, memchr_iter, memchr2};

use crate::html::byte_scan;

/// The length of a comment, which begins with `<!--`.
pub fn comment_end(rest: &[u8]) -> usize {
    if rest[4..].starts_with(b">") {
        return 5;
    }
    if rest[4..].starts_with(b"->") {
        return 6;
    }
    let mut at = 4;
    // Searches one byte, not two: comments are short, and the setup of a search for two takes longer.
    while let Some(dash) = memchr(b'-', &rest[at..]) {
        let first = at + dash;
        at = first + 1;
        while rest.get(at) == Some(&b'-') {
            at += 1;
        }
        if at == first + 1 {
            continue;
        }
        if rest.get(at) == Some(&b'>') {
            return at + 1;
        }
        if rest[at..].starts_with(b"!>") {
            return at + 2;
        }
    }
    rest.len()
}

/// Whether a tag of this name begins after `<` or `</`.
fn is_named(after: &[u8], name: &[u8]) -> bool {
    after.len() > name.len()
        && after[..name.len()].eq_ignore_ascii_case(name)
        && byte_scan::ends_name(after[name.len()])
}

/// The offset of the end tag of a raw-text element.
pub fn text_end(rest: &[u8], name: &[u8]) -> usize {
    memchr_iter(b'<', rest)
        .find(|less| rest.get(less + 1) == Some(&b'/') && is_named(&rest[less + 2..], name))
        .unwrap_or(rest.len())
}

/// The offset of the end tag of a script. After `<!--`, a script may contain `<script>` elements (HTML standard,
/// "script data escaped state").
pub fn script_end(rest: &[u8]) -> usize {
    let (mut commented, mut inner) = (false, false);
    let mut at = 0;
    while let Some(mark) = memchr2(b'<', b'-', &rest[at..]) {
        at += mark;
        let here = &rest[at..];
        if !commented {
            if here.starts_with(b"<!--") {
                commented = true;
                // The two dashes may be those of the end, too.
                at += 2;
                continue;
            }
        } else if here.starts_with(b"-->") {
            (commented, inner) = (false, false);
        } else if !inner && here[0] == b'<' && is_named(&here[1..], b"script") {
            inner = true;
        }
        if here.starts_with(b"</") && is_named(&here[2..], b"script") {
            if !inner {
                return at;
            }
            inner = false;
        }
        at += 1;
    }
    rest.len()
}
