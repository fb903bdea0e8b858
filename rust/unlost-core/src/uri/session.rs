//! Removes session ids from URLs like Wayback indexes.
//!
//! The patterns are those observed in indexes: a query loses `jsessionid=`, `phpsessid=` and `sid=` with 32 letters or
//! digits, `aspsessionid` with 8 letters, `=` and 24 letters, and a `cfid=`, `cftoken=` pair, together with the `&`
//! after it. They match substrings, not whole parameters (`osid=…&y=1` becomes `oy=1`), because indexes were built so,
//! and a page whose key differs from the index's is not found.

use memchr::memmem;

/// Fast check that a lower-case query has no session id. Every pattern contains `id` and a value; the shortest is
/// `cfid=1&cftoken=2`. Most queries have neither.
pub(super) fn may_be_in(query: &[u8]) -> bool {
    query.len() >= b"cfid=1&cftoken=2".len() && query.windows(2).any(|pair| pair == b"id")
}

/// Removes every session id from a lower-case, decoded query; returns whether there was one.
///
/// From left to right: where an `&` or the end completes an id, it is removed with the `&`, and the rest is appended to
/// the text before it. An id that only appears after the removal of another is thereby found too, in one pass over the
/// query.
pub(super) fn drop_from_query(query: &mut Vec<u8>) -> bool {
    if !may_be_in(query) {
        return false;
    }
    let mut retained: Vec<u8> = Vec::with_capacity(query.len());
    // The start of each parameter of `retained`.
    let mut starts = vec![0];
    let mut has_id = false;
    for (i, parameter) in query.split(|&byte| byte == b'&').enumerate() {
        if i > 0 && !dropped_at_end(&mut retained, &mut starts, &mut has_id) {
            retained.push(b'&');
            starts.push(retained.len());
        }
        retained.extend_from_slice(parameter);
    }
    dropped_at_end(&mut retained, &mut starts, &mut has_id);
    *query = retained;
    has_id
}

/// Removes a session id that ends here.
fn dropped_at_end(retained: &mut Vec<u8>, starts: &mut Vec<usize>, has_id: &mut bool) -> bool {
    let Some(start) = session_at_end(retained, starts) else {
        return false;
    };
    retained.truncate(start);
    while starts.last().is_some_and(|&last| last > start) {
        starts.pop();
    }
    *has_id = true;
    true
}

/// The start of the session id at the end of a text.
fn session_at_end(text: &[u8], starts: &[usize]) -> Option<usize> {
    named_token(text)
        .or_else(|| asp_session(text))
        .or_else(|| cold_fusion_pair(text, starts))
}

/// `jsessionid=`, `phpsessid=` or `sid=`, and 32 letters or digits.
fn named_token(text: &[u8]) -> Option<usize> {
    let token = text.len().checked_sub(32)?;
    let (before, value) = text.split_at(token);
    if !value.iter().all(u8::is_ascii_alphanumeric) {
        return None;
    }
    // Longer names before those that they end in.
    [&b"jsessionid="[..], b"phpsessid=", b"sid="]
        .into_iter()
        .find_map(|name| start_of_end(before, name))
}

/// The start of a suffix of a text, case-insensitive.
fn start_of_end(text: &[u8], end: &[u8]) -> Option<usize> {
    let start = text.len().checked_sub(end.len())?;
    text[start..].eq_ignore_ascii_case(end).then_some(start)
}

/// `aspsessionid`, 8 letters, `=` and 24 letters.
fn asp_session(text: &[u8]) -> Option<usize> {
    let (before, value) = text.split_at(text.len().checked_sub(33)?);
    let letters = |text: &[u8]| text.iter().all(u8::is_ascii_alphabetic);
    let fits = letters(&value[..8]) && value[8] == b'=' && letters(&value[9..]);
    let start = start_of_end(before, b"aspsessionid")?;
    fits.then_some(start)
}

/// `cfid=` with a value at the end of one parameter, and `cftoken=` with a value as the next.
fn cold_fusion_pair(text: &[u8], starts: &[usize]) -> Option<usize> {
    let [.., id, token] = *starts else {
        return None;
    };
    let value = text[token..].strip_prefix(b"cftoken=")?;
    let id_parameter = &text[id..token - 1];
    // Searched from the right: the rest of the last parameter may be long, and is inspected again when more text
    // follows it.
    let start = memmem::rfind(id_parameter, b"cfid=")?;
    let has_value = start + b"cfid=".len() < id_parameter.len();
    (has_value && !value.is_empty()).then_some(id + start)
}

/// Whether a parameter of a query, case-insensitive, is a session id and nothing else.
pub(super) fn is_parameter(parameter: &[u8]) -> bool {
    named_token(parameter) == Some(0) || asp_session(parameter) == Some(0)
}

/// Whether a parameter is one of the two that form a session id together.
pub(super) fn is_cold_fusion_parameter(parameter: &[u8]) -> bool {
    has_value_of(parameter, b"cfid=") || has_value_of(parameter, b"cftoken=")
}

/// Whether both are in a query.
pub(super) fn has_cold_fusion_pair(query: &[u8]) -> bool {
    let has = |name: &[u8]| {
        let mut parameters = query.split(|&byte| byte == b'&');
        parameters.any(|parameter| has_value_of(parameter, name))
    };
    has(b"cfid=") && has(b"cftoken=")
}

fn has_value_of(parameter: &[u8], name: &[u8]) -> bool {
    parameter.len() > name.len() && parameter[..name.len()].eq_ignore_ascii_case(name)
}

/// A path segment without the session ids that Java servers append: `;jsessionid=` and 32 letters or digits.
pub(super) fn without_java_session(segment: &[u8]) -> &[u8] {
    let mut retained = segment;
    while let Some(token) = retained.len().checked_sub(32) {
        let (before, value) = retained.split_at(token);
        let start = start_of_end(before, b";jsessionid=");
        match start.filter(|_| value.iter().all(u8::is_ascii_alphanumeric)) {
            Some(start) => retained = &retained[..start],
            None => break,
        }
    }
    retained
}

/// Whether a path segment is an ASP.NET session, `(s(24 letters or digits))` or `(24 letters or digits)`.
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
    fn only_session_ids_are_removed_from_queries() {
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
    fn asp_sessions_in_paths_are_recognized_by_form() {
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
