//! Canonicalises path and query.

use std::cmp::Ordering;

use super::escape::{decode_fully, must_escape, push_escape};
use super::session;
use super::web_url::any_pair;
use super::{RuleSet, UriError};

/// The maximum number of rounds of session id removal. Each further round needs another nested session id, which only
/// crafted URLs have. Such a URL is rejected, since the SURT of the result would be different.
const MAX_ROUNDS: usize = 32;

/// The purpose of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyForm {
    /// Part of a SURT or a URL.
    Surt,
    /// Part of a key, in which `*` is only ever a wildcard: the URL's own asterisks are escaped.
    Key,
    /// The same without the query.
    Page,
}

/// Appends the canonical form of `raw`, a path and possibly a query from a URL or an index key.
///
/// Escapes are decoded before the path is split from the query, as in indexes: in a key `%3F` and `?` are the same. The
/// result starts with `/` and is its own canonical form.
pub(super) fn write(
    raw: &[u8],
    rules: RuleSet,
    usage: KeyForm,
    out: &mut Vec<u8>,
) -> Result<(), UriError> {
    let writer = Writer { rules, usage };
    if needs_care(raw) {
        let mut text = Vec::with_capacity(raw.len());
        decode_fully(raw, &mut text);
        let (path, query) = split_query(&text);
        writer.path(path, out);
        writer.query(query, out)
    } else {
        let (path, query) = split_query(raw);
        writer.clean_path(path, out);
        writer.query(query, out)
    }
}

/// Bytes that may have to be decoded, escaped or dropped; without them only case and order matter.
const NEEDS_CARE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0u8;
    loop {
        table[byte as usize] = must_escape(byte) || matches!(byte, b'\\' | b'(' | b'*');
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};

/// Whether there is any such byte. Without branches or tables, so that the compiler vectorises the loop.
#[allow(clippy::needless_bitwise_bool)]
fn needs_care(text: &[u8]) -> bool {
    text.iter().fold(false, |any, &byte| {
        any | must_escape(byte) | (byte == b'\\') | (byte == b'(') | (byte == b'*')
    })
}

/// Whether a path without a query is canonical under every rule set, except for a final slash.
pub(super) fn is_plain_path(path: &[u8]) -> bool {
    path.first() == Some(&b'/') && is_plain_rest(b')', path)
}

/// Whether a path stays canonical when `rest` is appended; `last` is the byte before.
pub(super) fn is_plain_rest(mut last: u8, rest: &[u8]) -> bool {
    let mut plain = true;
    for &byte in rest {
        let care = NEEDS_CARE[usize::from(byte)] || byte == b'?' || byte.is_ascii_uppercase();
        plain &= !(care || last == b'/' && matches!(byte, b'/' | b'.'));
        last = byte;
    }
    plain
}

/// Whether a query is canonical under every rule set. May return false for a canonical one.
pub(super) fn is_plain_query(query: &[u8]) -> bool {
    let has_care = query
        .iter()
        .any(|&byte| NEEDS_CARE[usize::from(byte)] || byte == b'?' || byte.is_ascii_uppercase());
    if query.is_empty() || has_care || session::may_be_in(query) {
        return false;
    }
    let mut parameters = query.split(|&byte| byte == b'&');
    let mut last = parameters.next().unwrap_or_default();
    parameters.all(|next| by_name_then_value(std::mem::replace(&mut last, next), next).is_le())
}

/// The path, and the text after the first `?`; empty if there is none.
pub(super) fn split_query(path_query: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'?', path_query) {
        Some(mark) => (&path_query[..mark], &path_query[mark + 1..]),
        None => (path_query, &[]),
    }
}

struct Writer {
    rules: RuleSet,
    usage: KeyForm,
}

impl Writer {
    /// A path without escapes: nearly always only its case matters.
    #[allow(clippy::needless_bitwise_bool)]
    fn clean_path(&self, path: &[u8], out: &mut Vec<u8>) {
        let shortened = match path {
            [b'/', _, .., b'/'] => &path[..path.len() - 1],
            _ => path,
        };
        let plain = path.first() == Some(&b'/')
            // `//`, `/.` and `/..` are detected by their second byte; names that begin with a dot take the slow path
            // too.
            && !any_pair(path, |a, b| (a == b'/') & matches!(b, b'/' | b'.'));
        if plain {
            let start = out.len();
            out.extend_from_slice(shortened);
            self.lower_case(&mut out[start..]);
        } else {
            self.path(path, out);
        }
    }

    fn path(&self, path: &[u8], out: &mut Vec<u8>) {
        let mut path = path.to_vec();
        self.lower_case(&mut path);
        let mut segments: Vec<&[u8]> = Vec::new();
        for segment in path.split(|&byte| byte == b'/' || byte == b'\\') {
            match segment {
                b"" | b"." => {}
                b".." => {
                    segments.pop();
                }
                _ => segments.push(segment),
            }
        }
        if self.rules.drops_session_ids() {
            drop_asp_segments(&mut segments);
        }
        if segments.is_empty() {
            out.push(b'/');
        }
        for segment in segments {
            out.push(b'/');
            self.escaped(segment, out);
        }
    }

    fn query(&self, query: &[u8], out: &mut Vec<u8>) -> Result<(), UriError> {
        if query.is_empty() || self.usage == KeyForm::Page {
            return Ok(());
        }
        let mut query = query.to_vec();
        self.lower_case(&mut query);
        // Sorting can join the two halves of a session id, and removing one can leave an empty parameter at the end, or
        // form an escape (`%4sid=…&1`): repeated until nothing changes.
        for _ in 0..MAX_ROUNDS {
            let dropped = self.rules.drops_session_ids() && session::drop_from_query(&mut query);
            if dropped && memchr::memchr(b'%', &query).is_some() {
                let joined = std::mem::take(&mut query);
                decode_fully(&joined, &mut query);
                self.lower_case(&mut query);
            }
            let sorted = self.sort(&mut query);
            if dropped || sorted {
                continue;
            }
            if !query.is_empty() {
                out.push(b'?');
                self.escaped(&query, out);
            }
            return Ok(());
        }
        Err(UriError::Nested)
    }

    /// Sorts parameters by their escaped form; returns whether that changed anything.
    fn sort(&self, query: &mut Vec<u8>) -> bool {
        if memchr::memchr(b'&', query).is_none() {
            return false;
        }
        let mut escaped = Vec::with_capacity(query.len() + 16);
        self.escaped(query, &mut escaped);
        let mut parameters: Vec<(&[u8], &[u8])> = escaped
            .split(|&byte| byte == b'&')
            .zip(query.split(|&byte| byte == b'&'))
            .collect();
        if parameters.is_sorted_by(|a, b| by_name_then_value(a.0, b.0).is_le()) {
            return false;
        }
        parameters.sort_by(|a, b| by_name_then_value(a.0, b.0));
        let decoded: Vec<&[u8]> = parameters.into_iter().map(|(_, decoded)| decoded).collect();
        *query = decoded.join(&b'&');
        true
    }

    fn lower_case(&self, text: &mut [u8]) {
        if self.rules.lower_cases() {
            text.make_ascii_lowercase();
        }
    }

    fn escaped(&self, text: &[u8], out: &mut Vec<u8>) {
        if !needs_care(text) {
            out.extend_from_slice(text);
            return;
        }
        for &byte in text {
            if must_escape(byte) || (byte == b'*' && self.usage != KeyForm::Surt) {
                push_escape(byte, self.rules.lower_cases(), out);
            } else {
                out.push(byte);
            }
        }
    }
}

/// Drops ASP.NET session segments before an `.aspx` page, case-insensitive.
pub(super) fn drop_asp_segments(segments: &mut Vec<&[u8]>) {
    let is_page = |segment: &&[u8]| {
        let mut parts = segment.windows(b".aspx".len());
        parts.any(|part| part.eq_ignore_ascii_case(b".aspx"))
    };
    let Some(page) = segments.iter().rposition(is_page) else {
        return;
    };
    let mut position = 0;
    segments.retain(|segment| {
        position += 1;
        position > page || !session::is_asp_segment(segment)
    });
}

/// By name; for equal names, a parameter without a value sorts before an empty value, and that before others.
fn by_name_then_value(a: &[u8], b: &[u8]) -> Ordering {
    let split = |parameter| match memchr::memchr(b'=', parameter) {
        Some(equals) => (&parameter[..equals], Some(&parameter[equals + 1..])),
        None => (parameter, None),
    };
    split(a).cmp(&split(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_query(raw: &str, rules: RuleSet) -> String {
        let mut out = Vec::new();
        write(raw.as_bytes(), rules, KeyForm::Surt, &mut out).expect("not nested");
        let text = String::from_utf8(out).expect("ascii");
        let mut again = Vec::new();
        write(text.as_bytes(), rules, KeyForm::Surt, &mut again).expect("not nested");
        assert_eq!(again, text.as_bytes(), "reads back as itself");
        text
    }

    #[test]
    fn wayback_rules_normalize_path_and_query() {
        for (raw, expected) in [
            ("", "/"),
            ("/", "/"),
            ("/A/B/", "/a/b"),
            ("/a//b///c", "/a/b/c"),
            ("/a/./b/../c", "/a/c"),
            ("/%252e%252E/x", "/x"),
            ("/.well-known/x", "/.well-known/x"),
            ("/a?", "/a"),
            ("?b", "/?b"),
            ("/a/?b", "/a?b"),
            ("/a%3Fb", "/a?b"),
            ("/a%23b", "/a%23b"),
            ("/%E2%82%AC", "/%e2%82%ac"),
            ("/%zz%", "/%25zz%25"),
            ("/a b", "/a%20b"),
            ("/a\\b", "/a/b"),
            ("/?b=2&a=1&a&a=&a-b", "/?a&a=&a=1&a-b&b=2"),
            ("/?cfid=1&z&cftoken=2", "/?z"),
            ("/?cfid=1&a&cftoken=2", "/?&a"),
            ("/?%0cfid=1&cftoken=2", "/?%0cfid=1&cftoken=2"),
            ("/?%4sid=0123456789abcdef0123456789abcdef&1", "/?a"),
            ("/?%sid=0123456789abcdef0123456789abcdef&zz", "/?%25zz"),
            ("/?b%2sid=0123456789abcdef0123456789abcdef&6a", "/?a&b"),
            ("/(S(4hqa0555fwsecu455xqckv45))/p.aspx", "/p.aspx"),
            (
                "/(S(4hqa0555fwsecu455xqckv45))/p.html",
                "/(s(4hqa0555fwsecu455xqckv45))/p.html",
            ),
        ] {
            assert_eq!(path_query(raw, RuleSet::Wayback), expected, "{raw}");
        }
    }

    #[test]
    fn nested_session_ids_are_rejected() {
        // Each removed id forms an escape (`%73`) that forms the next one.
        let nested = |depth| {
            let id = "id=0123456789abcdef0123456789abcdef&";
            let (before, after) = ("%7".repeat(depth), format!("3{id}").repeat(depth));
            format!("/?{before}s{id}{after}z")
        };
        assert_eq!(path_query(&nested(MAX_ROUNDS - 2), RuleSet::Wayback), "/?z");
        for depth in [MAX_ROUNDS, 1 << 13] {
            let query = nested(depth);
            let result = write(
                query.as_bytes(),
                RuleSet::Wayback,
                KeyForm::Surt,
                &mut Vec::new(),
            );
            assert_eq!(result, Err(UriError::Nested), "{depth}");
        }
    }

    #[test]
    fn papers_rules_keep_case_and_session_ids() {
        let raw = "/Images/Logo.png?width=200&Height=80&sid=0123456789abcdef0123456789abcdef";
        assert_eq!(
            path_query(raw, RuleSet::Papers),
            "/Images/Logo.png?Height=80&sid=0123456789abcdef0123456789abcdef&width=200"
        );
        assert_eq!(path_query("/%e2%82%ac", RuleSet::Papers), "/%E2%82%AC");
    }

    #[test]
    fn bytes_that_need_care_match_the_table() {
        for byte in 0..=u8::MAX {
            let text = [b'a', byte, b'b'];
            assert_eq!(needs_care(&text), NEEDS_CARE[usize::from(byte)], "{byte}");
        }
        assert!(!needs_care(b""));
    }

    #[test]
    fn asterisk_in_a_key_is_escaped() {
        let mut out = Vec::new();
        write(b"/a/*?b=*", RuleSet::Wayback, KeyForm::Key, &mut out).expect("not nested");
        assert_eq!(out, b"/a/%2a?b=%2a");
        out.clear();
        write(b"/a/*%3fb=*", RuleSet::Wayback, KeyForm::Page, &mut out).expect("not nested");
        assert_eq!(out, b"/a/%2a");
    }
}
