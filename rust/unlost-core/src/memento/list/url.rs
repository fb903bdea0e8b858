//! URLs of mementos: resolved to absolute ones and sanitized.

use std::borrow::Cow;

use memchr::{memchr, memchr3, memmem, memrchr};

const fn is_unescaped(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"')
}

/// Whether no byte has to be escaped.
pub(super) fn needs_no_escape(text: &[u8]) -> bool {
    // No early exit, so that the compiler vectorises the loop: URLs are short.
    !text
        .iter()
        .fold(false, |bad, &byte| bad | !is_unescaped(byte))
}

/// Escapes everything but visible ASCII, and the characters that end the URL in an output format.
pub(super) fn sanitize(text: Cow<'_, [u8]>) -> Cow<'_, str> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    if needs_no_escape(&text) {
        let plain = match text {
            Cow::Borrowed(text) => std::str::from_utf8(text).ok().map(Cow::Borrowed),
            Cow::Owned(text) => String::from_utf8(text).ok().map(Cow::Owned),
        };
        return plain.unwrap_or_default(); // it is ASCII
    }
    let mut out = String::with_capacity(text.len() + 16);
    for &byte in &*text {
        if is_unescaped(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    Cow::Owned(out)
}

/// The part after `://`, if there is a scheme: archives list the same memento under both schemes.
pub(super) fn without_scheme(url: &str) -> &str {
    if let Some(rest) = url.strip_prefix("https://") {
        return rest; // the form of almost all URLs
    }
    match scheme(url.as_bytes()) {
        Some(end) => url[end + 1..].strip_prefix("//").unwrap_or(url),
        None => url,
    }
}

/// The offset of the colon after the scheme.
fn scheme(url: &[u8]) -> Option<usize> {
    let end = url
        .iter()
        .position(|&byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')))?;
    (url[end] == b':' && url[0].is_ascii_alphabetic()).then_some(end)
}

/// Whether this is an `http` or `https` URL with a host.
pub(super) fn has_web_host(url: &[u8]) -> bool {
    let Some(end) = scheme(url) else {
        return false;
    };
    let name = &url[..end];
    if !(name.eq_ignore_ascii_case(b"http") || name.eq_ignore_ascii_case(b"https")) {
        return false;
    }
    let Some(rest) = url[end + 1..].strip_prefix(b"//") else {
        return false;
    };
    let authority = &rest[..memchr3(b'/', b'?', b'#', rest).unwrap_or(rest.len())];
    let host = memrchr(b'@', authority).map_or(authority, |at| &authority[at + 1..]);
    match host.strip_prefix(b"[") {
        Some(inner) => memchr(b']', inner).is_some_and(|end| end > 0),
        None => !matches!(host.first(), None | Some(b':')) && memchr(b'[', host).is_none(),
    }
}

/// Resolves a link against an absolute URL (RFC 3986, 5.2). A link that repeats the scheme without a host is relative
/// (5.2.2, "not strict").
pub(super) fn resolve(base: &[u8], link: &[u8]) -> Vec<u8> {
    let base_scheme = scheme(base).map_or(&b""[..], |end| &base[..end]);
    let mut link = link;
    if let Some(end) = scheme(link) {
        let rest = &link[end + 1..];
        if rest.starts_with(b"//") || !link[..end].eq_ignore_ascii_case(base_scheme) {
            return link.to_vec();
        }
        link = rest;
    }
    if link.starts_with(b"//") {
        return [base_scheme, b":", link].concat();
    }
    let site = site_end(base);
    let (base_path, base_query) = path_and_query(&base[site..]);
    let (path, query) = path_and_query(link);
    let fragment = &link[memchr(b'#', link).unwrap_or(link.len())..];
    let mut out = base[..site].to_vec();
    if path.is_empty() {
        out.extend_from_slice(base_path);
        out.extend_from_slice(if query.is_empty() { base_query } else { query });
    } else {
        if path.starts_with(b"/") {
            push_without_dots(&mut out, site, path);
        } else {
            let folder = memrchr(b'/', base_path).map_or(0, |end| end + 1);
            let merged = [
                if folder == 0 {
                    b"/"
                } else {
                    &base_path[..folder]
                },
                path,
            ]
            .concat();
            push_without_dots(&mut out, site, &merged);
        }
        out.extend_from_slice(query);
    }
    out.extend_from_slice(fragment);
    out
}

/// The end of scheme and host.
fn site_end(base: &[u8]) -> usize {
    let host = memmem::find(base, b"://").map_or(0, |at| at + 3);
    host + memchr3(b'/', b'?', b'#', &base[host..]).unwrap_or(base.len() - host)
}

/// The path, and the query with its question mark, without the fragment.
fn path_and_query(text: &[u8]) -> (&[u8], &[u8]) {
    let text = &text[..memchr(b'#', text).unwrap_or(text.len())];
    text.split_at(memchr(b'?', text).unwrap_or(text.len()))
}

/// Appends a path that begins with a slash after a host that ends at `floor`, with dot segments removed.
fn push_without_dots(out: &mut Vec<u8>, floor: usize, path: &[u8]) {
    let mut folders = path[1..].split(|&byte| byte == b'/').peekable();
    while let Some(folder) = folders.next() {
        let is_last = folders.peek().is_none();
        match folder {
            b"." => {}
            b".." => {
                let end = memrchr(b'/', &out[floor..]).unwrap_or(0);
                out.truncate(floor + end);
            }
            _ => {
                out.push(b'/');
                out.extend_from_slice(folder);
                continue;
            }
        }
        if is_last {
            out.push(b'/');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_resolve_as_rfc_3986_says() {
        // The examples of RFC 3986, 5.4, without those with path parameters.
        for (link, expected) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q#s"),
            ("g?y#s", "http://a/b/c/g?y#s"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("..g", "http://a/b/c/..g"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("http:g", "http://a/b/c/g"),
            ("ftp:g", "ftp:g"),
        ] {
            let resolved = resolve(b"http://a/b/c/d;p?q", link.as_bytes());
            assert_eq!(String::from_utf8_lossy(&resolved), expected, "{link}");
        }
        assert_eq!(resolve(b"http://a", b"g"), b"http://a/g");
        assert_eq!(resolve(b"http://a?x", b"../g"), b"http://a/g");
    }

    #[test]
    fn web_url_without_host_is_rejected() {
        for good in [
            "http://a",
            "HTTPS://a:1/x",
            "http://u:p@[::1]:80/",
            "http://a@b",
        ] {
            assert!(has_web_host(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            "a",
            "//a",
            "http:a",
            "http:///x",
            "http://:80/",
            "http://u@/",
            "http://[]/",
            "http://[a/",
            "http://a[b/",
            "ftp://a/",
            "1http://a",
            "javascript://a/",
        ] {
            assert!(!has_web_host(bad.as_bytes()), "{bad}");
        }
    }
}
