//! Reads single members of a one-line JSON object without parsing the rest.

use std::borrow::Cow;

/// The value of the last member with one of the names, as in Python's `json`: strings without quotes and escapes, other
/// values verbatim. `None` if there is no such member, or the object is malformed before it.
#[must_use]
pub fn member<'a>(object: &'a [u8], names: &[&[u8]]) -> Option<Cow<'a, [u8]>> {
    let mut last_value = None;
    visit_members(object, |name, value| {
        if names.contains(&name) {
            last_value = Some(value);
        }
    })?;
    last_value
}

/// Calls `visit` with the name and value of each member in order; values are as in [`member`]. `None` if the object is
/// malformed: earlier calls are then void.
pub(super) fn visit_members<'a>(
    object: &'a [u8],
    mut visit: impl FnMut(&[u8], Cow<'a, [u8]>),
) -> Option<()> {
    let mut rest = object.trim_ascii_start().strip_prefix(b"{")?;
    loop {
        rest = rest.trim_ascii_start();
        let (name, after) = text(rest)?;
        rest = after
            .trim_ascii_start()
            .strip_prefix(b":")?
            .trim_ascii_start();
        let value = if rest.first() == Some(&b'"') {
            let (value, after) = text(rest)?;
            rest = after;
            value
        } else {
            let length = value_len(rest)?;
            let value = &rest[..length];
            rest = &rest[length..];
            Cow::Borrowed(value.trim_ascii_end())
        };
        visit(&name, value);
        rest = rest.trim_ascii_start();
        match rest.first() {
            Some(b',') => rest = &rest[1..],
            _ => return Some(()),
        }
    }
}

/// A quoted string, and the rest of the text.
fn text(rest: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let rest = rest.strip_prefix(b"\"")?;
    let mut end = 0;
    let mut is_escaped = false;
    loop {
        end += memchr::memchr2(b'"', b'\\', &rest[end..])?;
        if rest[end] == b'"' {
            break;
        }
        is_escaped = true;
        end += 2;
        if end > rest.len() {
            return None;
        }
    }
    let value = if is_escaped {
        Cow::Owned(unescape(&rest[..end]))
    } else {
        Cow::Borrowed(&rest[..end])
    };
    Some((value, &rest[end + 1..]))
}

/// Replaces escapes; an invalid escape stays unchanged.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let simple = match rest.get(1) {
            Some(b'n') => Some(b'\n'),
            Some(b't') => Some(b'\t'),
            Some(b'r') => Some(b'\r'),
            Some(b'b') => Some(8),
            Some(b'f') => Some(12),
            Some(&byte @ (b'"' | b'\\' | b'/')) => Some(byte),
            _ => None,
        };
        if let Some(byte) = simple {
            out.push(byte);
            rest = &rest[2..];
        } else if let Some((char, length)) = unicode(rest) {
            out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &rest[length..];
        } else {
            out.push(b'\\');
            rest = &rest[1..];
        }
    }
    out.extend_from_slice(rest);
    out
}

/// The character of `\uXXXX`, or of a surrogate pair, and its length in the input.
fn unicode(rest: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| -> Option<u32> {
        let digits = rest.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let digits = std::str::from_utf8(digits).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let high = unit(0)?;
    if let Some(char) = char::from_u32(high) {
        return Some((char, 6));
    }
    let low = unit(6)?;
    let pair = char::decode_utf16([u16::try_from(high).ok()?, u16::try_from(low).ok()?]);
    pair.into_iter().next()?.ok().map(|char| (char, 12))
}

/// The length of a value that is not a string.
fn value_len(rest: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match rest.get(at)? {
            b'"' => {
                let (_, after) = text(&rest[at..])?;
                at = rest.len() - after.len();
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' if depth == 0 => return Some(at),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(object: &str) -> Option<String> {
        member(object.as_bytes(), &[b"url", b"uri"])
            .map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    #[test]
    fn members_are_found_at_any_position() {
        for (object, expected) in [
            (r#"{"url": "http://a/", "x": 1}"#, Some("http://a/")),
            (
                r#"{"x":{"url":"no","y":["]"]},"uri" : "dns:a"}"#,
                Some("dns:a"),
            ),
            (
                r#"{"url": "http:\/\/a\/\u00fc\"\ud83d\ude00"}"#,
                Some("http://a/ü\"😀"),
            ),
            (r#"{"url": 12 , "x": null}"#, Some("12")),
            (r#"{"url": "a", "url": "b"}"#, Some("b")),
            (r#"{"url": "\ud83dx\q\u12"}"#, Some(r"\ud83dx\q\u12")),
            (r#"{"x": "url"}"#, None),
            (r#"{"url": "a"#, None),
            (r#"{"url": "a\"#, None),
            (r#"{"x": [1, 2"#, None),
            ("{}", None),
            ("", None),
        ] {
            assert_eq!(url(object).as_deref(), expected, "{object}");
        }
    }
}
