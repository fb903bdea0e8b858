//! The one key normalizer: derives the same key from a URL and from an index's own key column.
//!
//! A key is a SURT in which `*` is only ever a wildcard. Indexes in the wild end their keys in `/` or not, write an IP
//! address forwards or backwards, keep a `www`, put `http://(` before and a comma after the host, or use no SURT at
//! all. Building, compacting, filtering and look-up all use this module, so that none of these variants makes a page
//! unfindable.

use super::path_query::{self, KeyForm};
use super::surt_host::{bare_ipv6, write_host};
use super::web_url::{MAX_BYTES, foreign_scheme, trim};
use super::{RuleSet, Segments, UriError, WebUrl, surt};

/// Appends the key of a URL, or of a SURT.
pub fn key_of_uri(text: &[u8], rules: RuleSet, out: &mut Vec<u8>) -> Result<(), UriError> {
    write(text, rules, KeyForm::Key, out)
}

/// Appends the key of a URL without its query, as used to look up pages.
pub fn page_of_uri(text: &[u8], rules: RuleSet, out: &mut Vec<u8>) -> Result<(), UriError> {
    write(text, rules, KeyForm::Page, out)
}

/// Appends the SURT of a URL, or the normalized form of a SURT.
pub fn surt_of_uri(text: &[u8], rules: RuleSet, out: &mut Vec<u8>) -> Result<(), UriError> {
    write(text, rules, KeyForm::Surt, out)
}

/// Appends the key of an index row: from its key column if there is one, else from its URL. Returns whether the key
/// column was repaired.
///
/// A key column on whose form tools disagree is compared with the row's URL, and where they differ the URL decides. The
/// scheme is that of the URL: a `dns:` row may have its host's key and still is not a page.
pub fn key_of_row(
    key: &[u8],
    uri: &[u8],
    rules: RuleSet,
    out: &mut Vec<u8>,
) -> Result<bool, UriError> {
    if let Some(scheme) = foreign_scheme(uri) {
        return Err(UriError::Foreign { scheme });
    }
    if matches!(key, b"" | b"-") {
        return key_of_uri(uri, rules, out).map(|()| false);
    }
    if uri.is_empty() || !is_disputed(key) {
        return normal_key(key, rules, out).map(|()| false);
    }
    let start = out.len();
    let own = normal_key(key, rules, out);
    if matches!(own, Err(UriError::NotSurt | UriError::NoHost)) {
        return own.map(|()| false); // damage, not another spelling of a key
    }
    let mut of_url = Vec::with_capacity(uri.len());
    let is_repaired = key_of_uri(uri, rules, &mut of_url).is_ok()
        // Indexes lower-case their keys under any rules.
        && !of_url.eq_ignore_ascii_case(&out[start..]);
    if !is_repaired {
        return own.map(|()| false);
    }
    out.truncate(start);
    out.extend_from_slice(&of_url);
    Ok(true)
}

/// Whether tools disagree on keys of this form, so that the URL has to be consulted: a host that is an IP address, has
/// a port, or has anything but letters, digits, `-` and `_` in its labels; punycode; a port after the host's `)`; `..`
/// in the path; two question marks, of which the first may have been escaped.
///
/// A plain key, as recognized by [`super::plain_uri`], never has such a form.
#[must_use]
pub fn is_disputed(key: &[u8]) -> bool {
    let end = memchr::memchr2(b')', b'/', key).unwrap_or(key.len());
    let (host, path_query) = key.split_at(end);
    let is_surt = path_query.first() == Some(&b')');
    let is_plain = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_')
            || *byte == if is_surt { b',' } else { b'.' }
    };
    let top = if is_surt { host.first() } else { host.last() };
    let has_plain_host = host.iter().all(is_plain)
        && top.is_some_and(|byte| !byte.is_ascii_digit())
        && memchr::memmem::find(host, b"xn--").is_none();
    !has_plain_host
        || path_query.get(1) == Some(&b':')
        || has_parent_segment(path_query)
        || memchr::memchr_iter(b'?', path_query).nth(1).is_some()
}

/// Whether a path may contain a `..`, escaped or not.
pub(super) fn has_parent_segment(path_query: &[u8]) -> bool {
    path_query
        .windows(3)
        .any(|part| part == b"/.." || part.eq_ignore_ascii_case(b"%2e"))
}

/// Appends the normalized form of an index's own key. A normalized key is unchanged. Old indexes use URLs without their
/// scheme as keys; those are accepted too.
pub fn normal_key(key: &[u8], rules: RuleSet, out: &mut Vec<u8>) -> Result<(), UriError> {
    match key.first() {
        Some(b')') => Err(UriError::NotSurt),
        _ => write(key, rules, KeyForm::Key, out),
    }
}

fn write(text: &[u8], rules: RuleSet, usage: KeyForm, out: &mut Vec<u8>) -> Result<(), UriError> {
    let text = trim(text);
    let start = out.len();
    let result = match split_surt(text) {
        Some(_) if text.len() > MAX_BYTES => Err(UriError::TooLong),
        Some((host_and_port, path_query)) => {
            let (port, path_query) = split_port(path_query);
            let host = match port {
                b"" => write_host(host_and_port, usage, out),
                _ => write_host(&[host_and_port, port].concat(), usage, out),
            };
            host.and_then(|()| {
                out.push(b')');
                path_query::write(path_query, rules, usage, out)
            })
        }
        None => WebUrl::read(text).and_then(|url| surt::write(&url, rules, usage, out)),
    };
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// Whether a text is a SURT rather than a URL: a `)` ends its host before any `/`, `?` or `#`.
#[must_use]
pub fn looks_like_surt(text: &[u8]) -> bool {
    split_surt(text).is_some()
}

/// Every spelling under which indexes in the field may store a key, the usual one first; for querying an index that was
/// not normalized. The key must be normalized.
#[must_use]
pub fn spellings(key: &[u8]) -> Vec<Vec<u8>> {
    let segments = Segments::of(key);
    let mut hosts = vec![unescaped(&key[..key.len() - segments.path_query().len()])];
    if segments.is_ip() {
        let mut forwards = Vec::with_capacity(hosts[0].len());
        if let Some(bare) = segments
            .host()
            .strip_prefix(b"[")
            .and_then(|host| host.strip_suffix(b"]"))
        {
            forwards.extend_from_slice(bare);
        } else {
            let octets: Vec<&[u8]> = segments.host().rsplit(|&byte| byte == b',').collect();
            forwards.extend_from_slice(&octets.join(&b'.'));
        }
        if let Some(port) = segments.port() {
            forwards.push(b':');
            forwards.extend_from_slice(port);
        }
        forwards.push(b')');
        hosts.push(forwards);
    }
    if let Some(port) = segments.port() {
        // OutbackCDX writes the port after the host.
        let end = [b"):", port].concat();
        for i in 0..hosts.len() {
            let bare = hosts[i].len() - port.len() - b":)".len();
            hosts.push([&hosts[i][..bare], &end].concat());
        }
    }
    let path_query = unescaped(segments.path_query());
    let path_len = memchr::memchr(b'?', &path_query).unwrap_or(path_query.len());
    let (path, query) = path_query.split_at(path_len);
    let other_path: Vec<u8> = match path {
        b"/" => Vec::new(),
        _ => [path, b"/"].concat(),
    };
    hosts
        .iter()
        .flat_map(|host| [path, &other_path].map(|path| [host.as_slice(), path, query].concat()))
        .collect()
}

/// Indexes write asterisks, and the plus of a label, unescaped. In paths a plus never is escaped.
fn unescaped(part: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = memchr::memmem::find(rest, b"%2") {
        let (before, escape) = rest.split_at(at);
        out.extend_from_slice(before);
        match escape.get(2) {
            Some(b'a' | b'A') => out.push(b'*'),
            Some(b'b' | b'B') => out.push(b'+'),
            _ => out.extend_from_slice(&escape[..escape.len().min(3)]),
        }
        rest = &escape[escape.len().min(3)..];
    }
    out.extend_from_slice(rest);
    out
}

/// Host with port, and the text after the `)`, of a text in the form of a SURT.
fn split_surt(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = [&b"http://("[..], b"https://(", b"("]
        .into_iter()
        .find_map(|prefix| text.strip_prefix(prefix))
        .unwrap_or(text);
    let end = text
        .iter()
        .position(|byte| matches!(byte, b')' | b'/' | b'?' | b'#' | b'(' | b'@' | b'\\'))?;
    let host_and_port = &text[..end];
    let is_surt = text[end] == b')' && end > 0 && !has_scheme(host_and_port);
    is_surt.then(|| (host_and_port, &text[end + 1..]))
}

/// The port that `OutbackCDX` writes after the host's `)`, with its colon, and the text after it: `com,a):8080/x`.
fn split_port(path_query: &[u8]) -> (&[u8], &[u8]) {
    let Some(rest) = path_query.strip_prefix(b":") else {
        return (&[], path_query);
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match rest.get(digits) {
        None | Some(b'/' | b'?') => path_query.split_at(1 + digits),
        _ => (&[], path_query),
    }
}

/// Whether a colon ends a scheme here, and is neither a port's nor part of an IPv6 address.
fn has_scheme(host_and_port: &[u8]) -> bool {
    match memchr::memchr(b':', host_and_port) {
        None => false,
        Some(colon) => {
            let is_port = host_and_port[colon + 1..].iter().all(u8::is_ascii_digit);
            !is_port && host_and_port[0] != b'[' && bare_ipv6(host_and_port).is_none()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(key: &str) -> Result<String, &'static str> {
        let mut out = Vec::new();
        normal_key(key.as_bytes(), RuleSet::Wayback, &mut out).map_err(|error| error.kind())?;
        let text = String::from_utf8(out).expect("ascii");
        let mut again = Vec::new();
        normal_key(text.as_bytes(), RuleSet::Wayback, &mut again).expect("normal keys are keys");
        assert_eq!(again, text.as_bytes(), "a normal key stays as it is");
        Ok(text)
    }

    #[test]
    fn all_known_spellings_normalize_to_one_key() {
        for (key, expected) in [
            ("com,example)/a", "com,example)/a"),
            ("com,example)/a/", "com,example)/a"),
            ("com,example)", "com,example)/"),
            ("com,example,)/A", "com,example)/a"),
            ("http://(com,example,)/a", "com,example)/a"),
            ("com,example,www)/a", "com,example)/a"),
            ("com,example,www12,www)/", "com,example)/"),
            ("com,wwwexample)/", "com,wwwexample)/"),
            ("com,example:8080)/a/?b", "com,example:8080)/a?b"),
            ("com,example:)/", "com,example)/"),
            ("com,example):8080/a/?b", "com,example:8080)/a?b"),
            ("com,example):8080", "com,example:8080)/"),
            ("1.2.3.4):81/a", "4,3,2,1:81)/a"),
            ("4,3,2,1)/a", "4,3,2,1)/a"),
            ("1.2.3.4)/a", "4,3,2,1)/a"),
            ("1.2.3.4:81)/a", "4,3,2,1:81)/a"),
            ("2001:db8::1)/a", "[2001:db8::1])/a"),
            ("[2001:db8::1]:81)/a", "[2001:db8::1]:81)/a"),
            ("[2001:DB8:0::1])/", "[2001:db8::1])/"),
            ("example.com/A/", "com,example)/a"),
            ("localhost:81)/", "localhost:81)/"),
            ("tel:81)/", "tel:81)/"),
            ("com,example)/a/*", "com,example)/a/%2a"),
            ("com,exa%2cmple)/", "com,exa%2cmple)/"),
            ("de,b\u{fc}cher)/", "de,xn--bcher-kva)/"),
            ("com,xn--zzz---zzz)/", "com,xn--zzz---zzz)/"),
        ] {
            assert_eq!(normal(key).as_deref(), Ok(expected), "{key}");
        }
    }

    #[test]
    fn non_page_keys_are_rejected() {
        assert_eq!(normal("dns:www.archive.org"), Err("foreign-scheme"));
        assert_eq!(normal("warcinfo:/x.warc.gz/y)z"), Err("foreign-scheme"));
        assert_eq!(normal(")/"), Err("not-surt"));
        assert_eq!(normal(",)/"), Err("no-host"));
        assert_eq!(normal("com,example:x)/"), Err("bad-port"));
        let mut out = Vec::new();
        let row = key_of_row(
            b"org,archive,www)",
            b"dns:www.archive.org",
            RuleSet::Wayback,
            &mut out,
        );
        assert_eq!(row.map_err(|error| error.kind()), Err("foreign-scheme"));
    }

    #[test]
    fn row_without_key_gets_the_key_of_its_url() {
        let mut out = Vec::new();
        key_of_row(
            b"-",
            b"http://www.Example.com/A",
            RuleSet::Wayback,
            &mut out,
        )
        .expect("page");
        assert_eq!(out, b"com,example)/a");
    }

    #[test]
    fn url_decides_disputed_keys() {
        for (key, url, expected, is_repaired) in [
            (
                "com,a):8080/x",
                "http://a.com:8080/x",
                "com,a:8080)/x",
                false,
            ),
            ("com,a:80)/x", "http://a.com:80/x", "com,a)/x", true),
            ("com,a:80)/x", "https://a.com:80/x", "com,a:80)/x", false),
            ("com,a:80)/x", "", "com,a:80)/x", false),
            ("com,a:443)/x", "https://a.com/x", "com,a)/x", true),
            (
                "170.245.7.15)/",
                "http://www.170.245.7.15/",
                "15,7,245,170)/",
                false,
            ),
            (
                "15,7,245,170,www)/",
                "http://www.170.245.7.15/",
                "15,7,245,170)/",
                false,
            ),
            (
                "de,stra\u{df}e)/",
                "http://stra\u{df}e.de/",
                "de,xn--strae-oqa)/",
                false,
            ),
            (
                "de,xn--strae-oqa)/",
                "http://stra\u{df}e.de/",
                "de,xn--strae-oqa)/",
                false,
            ),
            (
                "com,a)/a%2fb/../x",
                "http://a.com/a%2Fb/../x",
                "com,a)/x",
                true,
            ),
            ("com\\x,a)/", "http://a.com\\x", "com,a)/x", true),
            ("com,a(b))/", "http://a(b).com/", "com,a%28b%29)/", true),
            (
                "com,a(b):81)/",
                "http://a(b).com:81/",
                "com,a%28b%29:81)/",
                true,
            ),
            ("1,1,1,256)/", "http://256.1.1.1/", "1,1,1,256)/", false),
        ] {
            let mut out = b"before".to_vec();
            let repaired = key_of_row(key.as_bytes(), url.as_bytes(), RuleSet::Wayback, &mut out);
            assert_eq!(repaired, Ok(is_repaired), "{key} {url}");
            assert_eq!(out[6..].escape_ascii().to_string(), expected, "{key} {url}");
        }
    }

    #[test]
    fn spellings_normalize_to_the_key() {
        for key in [
            "com,example)/",
            "com,example)/a?b",
            "4,3,2,1:81)/a",
            "[2001:db8::1])/a",
            "com,example)/%2a/%25b",
            "com,a%2bb)/",
        ] {
            let spelled = spellings(key.as_bytes());
            assert!(spelled.len() >= 2, "{key}");
            for spelling in spelled {
                let text = String::from_utf8(spelling).expect("ascii");
                assert_eq!(normal(&text).as_deref(), Ok(key), "{text}");
            }
        }
    }
}
