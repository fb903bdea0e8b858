//! Session ids in addresses, as Wayback indexes drop them.
//!
//! The patterns are what indexes in the field show: a query loses `jsessionid=`, `phpsessid=` and `sid=` with 32
//! letters or digits, `aspsessionid` with 8 letters, `=` and 24 letters, and a `cfid=`, `cftoken=` pair, together with
//! the `&` behind it. They are searched as substrings, not as whole parameters (`osid=…&y=1` becomes `oy=1`), because
//! indexes were built so, and a key that is prettier than the index's is a page not found.

use memchr::memmem;

/// Removes every session id from a lower-case, decoded query; says whether there was one.
pub(super) fn drop_from_query(query: &mut Vec<u8>) -> bool {
    let mut found = false;
    // Every pattern has `id` in its name and a value; the shortest is `cfid=1&cftoken=2`. Most queries have neither.
    while query.len() >= b"cfid=1&cftoken=2".len() && query.windows(2).any(|pair| pair == b"id") {
        let Some((start, end)) = last_session(query) else {
            break;
        };
        query.drain(start..end);
        found = true;
    }
    found
}

/// How many bytes at the start are a session's value, if it has the right form.
type ValueLength = fn(&[u8]) -> Option<usize>;

/// Longer names before those that they end in.
const PATTERNS: [(&[u8], ValueLength); 5] = [
    (b"jsessionid=", token),
    (b"phpsessid=", token),
    (b"sid=", token),
    (b"aspsessionid", asp_value),
    (b"cfid=", cold_fusion_pair),
];

/// The range of the last id of the first pattern that is there.
fn last_session(query: &[u8]) -> Option<(usize, usize)> {
    PATTERNS.iter().find_map(|&(name, value_length)| {
        memmem::rfind_iter(query, name).find_map(|start| {
            let value = start + name.len();
            let end = value + value_length(&query[value..])?;
            match query.get(end) {
                None => Some((start, end)),
                Some(b'&') => Some((start, end + 1)),
                Some(_) => None,
            }
        })
    })
}

fn token(value: &[u8]) -> Option<usize> {
    let token = value.get(..32)?;
    token.iter().all(u8::is_ascii_alphanumeric).then_some(32)
}

fn asp_value(value: &[u8]) -> Option<usize> {
    let value = value.get(..33)?;
    let letters = |text: &[u8]| text.iter().all(u8::is_ascii_alphabetic);
    (letters(&value[..8]) && value[8] == b'=' && letters(&value[9..])).then_some(33)
}

fn cold_fusion_pair(value: &[u8]) -> Option<usize> {
    let id = until_ampersand(value);
    let token = value[id..].strip_prefix(b"&cftoken=")?;
    let token = until_ampersand(token);
    (id > 0 && token > 0).then_some(id + b"&cftoken=".len() + token)
}

fn until_ampersand(value: &[u8]) -> usize {
    memchr::memchr(b'&', value).unwrap_or(value.len())
}

/// Whether a lower-case path segment is an ASP.NET session, `(s(24 letters or digits))` or `(24 letters or digits)`.
pub(super) fn is_asp_segment(segment: &[u8]) -> bool {
    let Some(inner) = segment
        .strip_prefix(b"(")
        .and_then(|rest| rest.strip_suffix(b")"))
    else {
        return false;
    };
    let is_token = |text: &[u8]| text.len() == 24 && text.iter().all(u8::is_ascii_alphanumeric);
    let is_lettered_token = |text: &[u8]| matches!(text, [letter, b'(', token @ .., b')'] if letter.is_ascii_alphabetic() && is_token(token));
    is_token(inner) || (!inner.is_empty() && inner.chunks(27).all(is_lettered_token))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    fn dropped(query: &str) -> String {
        let mut query = query.replace("ID32", ID).into_bytes();
        drop_from_query(&mut query);
        String::from_utf8(query).expect("ascii")
    }

    #[test]
    fn queries_lose_their_session_ids_and_nothing_else() {
        for (query, left) in [
            ("jsessionid=ID32", ""),
            ("jsessionid=ID32&x=1", "x=1"),
            ("x=1&phpsessid=ID32&y=1", "x=1&y=1"),
            ("x=1&sid=ID32", "x=1&"),
            ("osid=ID32&y=1", "oy=1"),
            ("sid=0123&y=1", "sid=0123&y=1"),
            ("sid=ID32a&y=1", "sid=0123456789abcdef0123456789abcdefa&y=1"),
            ("aspsessionidabcdefgh=abcdefghijklmnopqrstuvwx&y", "y"),
            ("cfid=1&cftoken=2&y", "y"),
            ("cfid=1&b&cftoken=2", "cfid=1&b&cftoken=2"),
            ("id=7", "id=7"),
        ] {
            assert_eq!(dropped(query), left, "{query}");
        }
    }

    #[test]
    fn asp_sessions_in_paths_are_told_by_their_form() {
        assert!(is_asp_segment(b"(s(4hqa0555fwsecu455xqckv45))"));
        assert!(is_asp_segment(
            b"(s(4hqa0555fwsecu455xqckv45)f(4hqa0555fwsecu455xqckv45))"
        ));
        assert!(is_asp_segment(b"(4hqa0555fwsecu455xqckv45)"));
        assert!(!is_asp_segment(b"(4hqa0555fwsecu455xqckv4)"));
        assert!(!is_asp_segment(b"()"));
        assert!(!is_asp_segment(b"x(4hqa0555fwsecu455xqckv45)"));
    }
}
