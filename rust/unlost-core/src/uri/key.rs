//! The one key normaliser: what brings an address and an index's own key column to the same key.
//!
//! A key is a SURT in which `*` is only ever a wildcard. Indexes in the wild end their keys in `/` or not, write an IP
//! address forwards or backwards, keep a `www`, put `http://(` before and a comma behind the host, or use no SURT at
//! all. Building, compacting, filtering and looking up all pass through here, so none of that makes a page unfindable.

use super::address::{MAX_BYTES, foreign_scheme, trim};
use super::surt_host::{bare_ipv6, write_host};
use super::tail::{self, Use};
use super::{Address, RuleSet, Segments, UriError, surt};

/// Appends the key of an address, or of a SURT where one is given for it.
pub fn key_of_uri(text: &[u8], rules: RuleSet, out: &mut Vec<u8>) -> Result<(), UriError> {
    write(text, rules, Use::Key, out)
}

/// Appends the key of an address without its query, as pages are looked up by it.
pub fn page_of_uri(text: &[u8], rules: RuleSet, out: &mut Vec<u8>) -> Result<(), UriError> {
    write(text, rules, Use::Page, out)
}

/// Appends the SURT of an address, or the normal form of a SURT where one is given for it.
pub fn surt_of_uri(text: &[u8], rules: RuleSet, out: &mut Vec<u8>) -> Result<(), UriError> {
    write(text, rules, Use::Surt, out)
}

/// Appends the key of an index row: of its own key column where that holds one, else of its address.
///
/// The scheme is told by the address: a `dns:` row may bear its host's key and is still not a page.
pub fn key_of_row(
    key: &[u8],
    uri: &[u8],
    rules: RuleSet,
    out: &mut Vec<u8>,
) -> Result<(), UriError> {
    if let Some(scheme) = foreign_scheme(uri) {
        return Err(UriError::Foreign { scheme });
    }
    let unusable = matches!(key, b"" | b"-") || is_ambiguous_ipv6(key) || hides_its_query(key, uri);
    if unusable {
        key_of_uri(uri, rules, out)
    } else {
        normal_key(key, rules, out)
    }
}

/// Whether an escaped `?` of the address was decoded in the key, so that it cannot be told where the query, which is
/// sorted, begins.
fn hides_its_query(key: &[u8], uri: &[u8]) -> bool {
    memchr::memchr_iter(b'?', key).nth(1).is_some() && uri.contains(&b'%')
}

/// Whether a key has an IPv6 address without brackets for its host, so that its last group may be a port.
fn is_ambiguous_ipv6(key: &[u8]) -> bool {
    let host_end = memchr::memchr(b')', key).unwrap_or(0);
    let host = &key[..host_end];
    memchr::memchr_iter(b':', host).nth(1).is_some()
        && host
            .iter()
            .all(|byte| matches!(byte, b':' | b'.' | b',') || byte.is_ascii_hexdigit())
}

/// Appends the normal form of an index's own key. A normal key stays as it is. Old indexes keep addresses without their
/// scheme as keys; those are read too.
pub fn normal_key(key: &[u8], rules: RuleSet, out: &mut Vec<u8>) -> Result<(), UriError> {
    match key.first() {
        Some(b')') => Err(UriError::NotSurt),
        _ => write(key, rules, Use::Key, out),
    }
}

fn write(text: &[u8], rules: RuleSet, usage: Use, out: &mut Vec<u8>) -> Result<(), UriError> {
    let text = trim(text);
    let start = out.len();
    let result = match split_surt(text) {
        Some(_) if text.len() > MAX_BYTES => Err(UriError::TooLong),
        Some((host_and_port, tail)) => write_host(host_and_port, usage, out).and_then(|()| {
            out.push(b')');
            tail::write(tail, rules, usage, out)
        }),
        None => Address::read(text).and_then(|address| surt::write(&address, rules, usage, out)),
    };
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// Whether a text is a SURT rather than an address: a `)` ends its host before any `/`, `?` or `#`.
#[must_use]
pub fn looks_like_surt(text: &[u8]) -> bool {
    split_surt(text).is_some()
}

/// Every spelling under which indexes in the field may keep a key, the usual one first; for asking an index that was
/// not normalised. The key must be normal.
#[must_use]
pub fn spellings(key: &[u8]) -> Vec<Vec<u8>> {
    let segments = Segments::of(key);
    let mut hosts = vec![unescaped(&key[..key.len() - segments.tail().len()])];
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
    let tail = unescaped(segments.tail());
    let path_len = memchr::memchr(b'?', &tail).unwrap_or(tail.len());
    let (path, query) = tail.split_at(path_len);
    let other_path: Vec<u8> = match path {
        b"/" => Vec::new(),
        _ => [path, b"/"].concat(),
    };
    hosts
        .iter()
        .flat_map(|host| [path, &other_path].map(|path| [host.as_slice(), path, query].concat()))
        .collect()
}

/// Indexes write asterisks, and the plus of a label, as they are. In paths a plus never is escaped.
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

/// Host with port, and what follows the `)`, of a text that has the form of a SURT.
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
    fn every_spelling_in_the_field_becomes_one_key() {
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
    fn what_is_no_page_is_said_to_be_none() {
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
    fn rows_without_a_key_get_that_of_their_address() {
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
    fn spellings_are_those_that_normalise_to_the_key() {
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
