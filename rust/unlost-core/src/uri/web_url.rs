//! Parses untrusted bytes to a web URL.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use memchr::memmem;
use url::{Host, ParseError, Position, Url};

use super::UriError;
use super::escape::push_escape;
use super::host::is_www;

/// The maximum length of a URL: the limit of Chromium (`kMaxURLChars`). Longer ones are rejected.
pub const MAX_BYTES: usize = 2 << 20;

/// Schemes whose rest may be all digits, so that `tel:1234` is not taken for a host with a port.
const NON_HOST_SCHEMES: [&[u8]; 9] = [
    b"data",
    b"dns",
    b"filedesc",
    b"mailto",
    b"news",
    b"sms",
    b"tel",
    b"urn",
    b"warcinfo",
];

/// An http or https URL as the WHATWG URL standard parses it.
pub struct WebUrl<'a>(Form<'a>);

enum Form<'a> {
    /// A URL that the standard's parser would not change, so that it need not run; most real URLs.
    Plain {
        scheme: &'static str,
        host: &'a [u8],
        path_query: &'a [u8],
    },
    Parsed(Url),
}

impl<'a> WebUrl<'a> {
    /// Parses a URL like a browser's address bar: surrounding white space is dropped, a missing scheme is http, bytes
    /// that are not UTF-8 are percent-encoded.
    pub fn read(text: &'a [u8]) -> Result<Self, UriError> {
        if text.len() > MAX_BYTES {
            return Err(UriError::TooLong);
        }
        let text = trim(text);
        match plain(text) {
            Some(form) => Ok(Self(form)),
            None => parse(text).map(|url| Self(Form::Parsed(url))),
        }
    }

    pub(super) fn scheme(&self) -> &str {
        match &self.0 {
            Form::Plain { scheme, .. } => scheme,
            Form::Parsed(url) => url.scheme(),
        }
    }

    pub(super) fn host(&self) -> Option<Host<&[u8]>> {
        match &self.0 {
            Form::Plain { host, .. } => Some(Host::Domain(host)),
            Form::Parsed(url) => url.host().map(|host| match host {
                Host::Domain(name) => Host::Domain(name.as_bytes()),
                Host::Ipv4(ip) => Host::Ipv4(ip),
                Host::Ipv6(ip) => Host::Ipv6(ip),
            }),
        }
    }

    pub(super) fn port(&self) -> Option<u16> {
        match &self.0 {
            Form::Plain { .. } => None,
            Form::Parsed(url) => url.port(),
        }
    }

    /// Path and query.
    pub(super) fn path_query(&self) -> &[u8] {
        match &self.0 {
            Form::Plain { path_query, .. } => path_query,
            Form::Parsed(url) => url[Position::BeforePath..Position::AfterQuery].as_bytes(),
        }
    }
}

/// Splits a URL without anything to normalize. May return `None` for a plain one.
#[allow(clippy::needless_bitwise_bool)]
fn plain(text: &[u8]) -> Option<Form<'_>> {
    let (scheme, rest) = match text {
        [b'h', b't', b't', b'p', b':', b'/', b'/', rest @ ..] => ("http", rest),
        [b'h', b't', b't', b'p', b's', b':', b'/', b'/', rest @ ..] => ("https", rest),
        _ => return None,
    };
    let is_host_byte = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    let host_len = rest.iter().position(|byte| !is_host_byte(byte));
    let (host, path_query) = rest.split_at(host_len.unwrap_or(rest.len()));
    // A name whose last label begins with a letter is not an IPv4 address; `xn--` must be checked.
    let last_label = host.rsplit(|&byte| byte == b'.').next()?;
    if !last_label.first()?.is_ascii_lowercase() || memmem::find(host, b"xn--").is_some() {
        return None;
    }
    if !matches!(path_query.first(), None | Some(b'/' | b'?' | b'#')) {
        return None;
    }
    let path_query = &path_query[..memchr::memchr(b'#', path_query).unwrap_or(path_query.len())];
    // The parser resolves dot segments before escapes are decoded and before empty segments are dropped. Without
    // branches, so that the compiler vectorises the loop.
    let has_dots = any_pair(path_query, |a, b| matches!(a, b'/' | b'\\') & (b == b'.'));
    let needs_parser = path_query.iter().fold(false, |any, &byte| {
        any | (byte == b'%') | !(b' '..0x7f).contains(&byte)
    });
    if has_dots | needs_parser {
        return None;
    }
    Some(Form::Plain {
        scheme,
        host,
        path_query,
    })
}

/// Whether any two adjacent bytes match. No early exit, so that the compiler vectorises the loop.
#[allow(clippy::needless_bitwise_bool)]
pub(super) fn any_pair(text: &[u8], is_such: impl Fn(u8, u8) -> bool) -> bool {
    let tail_part = text.get(1..).unwrap_or_default();
    let pairs = text.iter().zip(tail_part);
    pairs.fold(false, |any, (&a, &b)| any | is_such(a, b))
}

fn parse(text: &[u8]) -> Result<Url, UriError> {
    if text.is_empty() {
        return Err(UriError::Empty);
    }
    if let Some(scheme) = foreign_scheme(text) {
        return Err(UriError::Foreign { scheme });
    }
    // A path alone is not a URL, although the parser would take its first segment for a host.
    if text[0] == b'/' && text.get(1) != Some(&b'/') {
        return Err(UriError::NoHost);
    }
    let text = valid_utf8(text);
    let parsed = if has_web_scheme(text.as_bytes()) {
        Url::parse(&text)
    } else if text.starts_with("//") {
        Url::parse(&format!("http:{text}"))
    } else {
        Url::parse(&format!("http://{text}"))
    };
    let parsed = parsed.or_else(|error| {
        let shorter = without_www_before_ipv4(&text).ok_or(error)?;
        Url::parse(&shorter)
    });
    parsed.map_err(|error| match error {
        ParseError::EmptyHost => UriError::NoHost,
        ParseError::InvalidPort => UriError::BadPort,
        _ => UriError::BadHost {
            reason: error.to_string(),
        },
    })
}

/// The URL without the `www` of a host such as `www.192.0.2.7`. Browsers reject that host, but crawlers have captured
/// it, and every index drops the `www`.
fn without_www_before_ipv4(text: &str) -> Option<String> {
    let (scheme, rest) = match split_scheme(text.as_bytes()) {
        Some((scheme, rest)) if has_web_scheme(text.as_bytes()) => (
            std::str::from_utf8(scheme).ok()?,
            std::str::from_utf8(rest).ok()?,
        ),
        _ => ("http", text),
    };
    let rest = rest.trim_start_matches(['/', '\\']);
    let (authority, path_query) =
        rest.split_at(rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len()));
    let host_and_port = authority.rsplit('@').next()?.to_ascii_lowercase();
    let (mut name, port) = match host_and_port.split_once(':') {
        Some((name, port)) => (name, format!(":{port}")),
        None => (host_and_port.as_str(), String::new()),
    };
    while let Some((label, shorter)) = name.split_once('.') {
        if !is_www(label.as_bytes()) {
            break;
        }
        name = shorter;
    }
    let ip: Ipv4Addr = name.parse().ok()?;
    Some(format!("{scheme}://{ip}{port}{path_query}"))
}

/// The scheme of a URL that is not a web page (`dns:`, `warcinfo:`, `mailto:`, `ftp:` …), in lower case.
///
/// `None` for http and https, for a URL without a scheme, and for `localhost:8080/x` and `localhost:8080)/x`, which are
/// a host and a port.
#[must_use]
pub fn foreign_scheme(text: &[u8]) -> Option<String> {
    let text = trim(text);
    let (scheme, rest) = split_scheme(text)?;
    if scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https") {
        return None;
    }
    let scheme = scheme.to_ascii_lowercase();
    // No scheme in use contains a dot; hosts do, and their port may be invalid.
    let may_be_host = !NON_HOST_SCHEMES.contains(&scheme.as_slice());
    if may_be_host && (scheme.contains(&b'.') || rest.is_empty() || starts_with_port(rest)) {
        return None;
    }
    String::from_utf8(scheme).ok()
}

/// Trims white space and control characters.
pub(super) fn trim(text: &[u8]) -> &[u8] {
    let retained = |byte: &u8| *byte > b' ';
    let start = text.iter().position(retained).unwrap_or(text.len());
    let end = text
        .iter()
        .rposition(retained)
        .map_or(start, |last| last + 1);
    &text[start..end]
}

/// The text before the first colon, if it has the form of a scheme, and the text after the colon.
fn split_scheme(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if !text.first()?.is_ascii_alphabetic() {
        return None;
    }
    let end = text
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || b"+-.".contains(byte)))?;
    (text[end] == b':').then(|| (&text[..end], &text[end + 1..]))
}

pub(super) fn has_web_scheme(text: &[u8]) -> bool {
    split_scheme(text).is_some_and(|(scheme, _)| {
        scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https")
    })
}

/// Whether the text after a colon is a port, not the rest of another scheme's URL.
fn starts_with_port(rest: &[u8]) -> bool {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    matches!(digits, 1..=5)
        && matches!(
            rest.get(digits),
            None | Some(b'/' | b'?' | b'#' | b'\\' | b')')
        )
}

/// Percent-encodes each byte that is not part of a UTF-8 sequence, as clients send it.
fn valid_utf8(text: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(text) {
        return Cow::Borrowed(text);
    }
    let mut valid = String::with_capacity(text.len() + 16);
    for chunk in text.utf8_chunks() {
        valid.push_str(chunk.valid());
        for &byte in chunk.invalid() {
            let mut escape = Vec::with_capacity(3);
            push_escape(byte, true, &mut escape);
            valid.extend(escape.into_iter().map(char::from));
        }
    }
    Cow::Owned(valid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uri::{RuleSet, canonical};

    #[test]
    fn schemes_are_distinguished_from_hosts_with_ports() {
        for (text, scheme) in [
            ("dns:www.archive.org", Some("dns")),
            ("WARCINFO:/x.warc.gz", Some("warcinfo")),
            ("mailto:a@example.com", Some("mailto")),
            ("tel:1234", Some("tel")),
            ("ftp://example.com/", Some("ftp")),
            ("http://example.com/", None),
            ("HTTPS:example.com", None),
            ("localhost:8080/x", None),
            ("example.com:80", None),
            ("example.com:808080/", None),
            ("localhost:", None),
            ("localhost:8080)/a", None),
            ("example.com/a:b", None),
            ("//example.com", None),
        ] {
            assert_eq!(foreign_scheme(text.as_bytes()).as_deref(), scheme, "{text}");
        }
    }

    #[test]
    fn plain_urls_match_the_parser() {
        for text in [
            "http://example.com",
            "https://example.com/",
            "http://www.a_b.example.com/a//b///c/",
            "http://example.com?q",
            "http://example.com#f",
            "http://example.com/a b\\c?d'e\"f<g>#h?i",
            "http://..example..com/",
            "http://example.com/;a,b)c",
        ] {
            let plain = plain(text.as_bytes()).map(WebUrl).expect("plain");
            let parsed = WebUrl(Form::Parsed(parse(text.as_bytes()).expect("parsed")));
            for rules in RuleSet::ALL {
                let forms = [&plain, &parsed].map(|url| {
                    let mut out = Vec::new();
                    canonical(url, rules, &mut out).expect("canonical");
                    out
                });
                assert_eq!(forms[0], forms[1], "{text}");
            }
        }
    }

    #[test]
    fn www_before_an_ip_address_is_dropped() {
        for (text, expected) in [
            ("http://www.170.245.7.15/a", "http://170.245.7.15/a"),
            (
                "https://me@WWW2.www.170.245.7.15:8080/?a",
                "https://170.245.7.15:8080/?a",
            ),
            ("www.170.245.7.15", "http://170.245.7.15/"),
        ] {
            let mut out = Vec::new();
            let url = WebUrl::read(text.as_bytes()).expect("a URL");
            canonical(&url, RuleSet::Wayback, &mut out).expect("canonical");
            assert_eq!(out.escape_ascii().to_string(), expected, "{text}");
        }
        assert!(WebUrl::read(b"http://www.256.1.1.1/").is_err());
    }

    #[test]
    fn invalid_urls_are_rejected_by_kind() {
        for (text, kind) in [
            (&b"  "[..], "empty"),
            (b"http://", "no-host"),
            (b"/a/b", "no-host"),
            (b"a.com:80:80/", "bad-port"),
            (b"http://a b/", "bad-host"),
            (b"http://a\0b/", "bad-host"),
            (b"http://\xff.com/", "bad-host"),
            (b"http://example.com:99999/", "bad-port"),
            (b"http://example.com:8o/", "bad-port"),
            (b"http://256.1.1.1/", "bad-host"),
        ] {
            let error = WebUrl::read(text).err().map(|error| error.kind());
            assert_eq!(error, Some(kind), "{}", text.escape_ascii());
        }
        let long = vec![b'a'; MAX_BYTES + 1];
        assert_eq!(
            WebUrl::read(&long).err().map(|error| error.kind()),
            Some("too-long")
        );
    }
}
