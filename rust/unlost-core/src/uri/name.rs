//! The name that identifies a page during recovery: the common form of all its spellings.
//!
//! A name is a URL without its scheme, `example.com/a/b?x=1`; with `http://` before it, it is a URL that has the same
//! name. It drops less than a SURT does: letter case and the order of parameters can distinguish pages.

use url::Host;

use super::escape::{hex_value, push_escape};
use super::path_query::{drop_asp_segments, split_query};
use super::session;
use super::{UriError, WebUrl, host};

/// Index pages of folders, which links name or not. Other names (`index.php`) are detected from archive listings.
const DEFAULT_PAGES: [&[u8]; 3] = [b"index.html", b"index.htm", b"default.htm"];

/// Appends the name of a page.
pub fn name(url: &WebUrl<'_>, out: &mut Vec<u8>) -> Result<(), UriError> {
    match url.host().ok_or(UriError::NoHost)? {
        Host::Domain(name) => write_domain(name, out)?,
        Host::Ipv4(ip) => out.extend_from_slice(ip.to_string().as_bytes()),
        Host::Ipv6(ip) => host::write_ipv6(ip, out),
    }
    // Without a scheme, the default port of either scheme is meaningless.
    if let Some(port) = url.port().filter(|port| !matches!(port, 80 | 443)) {
        out.extend_from_slice(format!(":{port}").as_bytes());
    }
    let (path, query) = split_query(url.path_query());
    write_path(path, out);
    write_query(query, out);
    Ok(())
}

/// A host's labels without a leading `www`, unless only a top-level domain would be left.
fn write_domain(name: &[u8], out: &mut Vec<u8>) -> Result<(), UriError> {
    let dots = name.split(|&byte| byte == b'.');
    let labels: Vec<&[u8]> = dots.filter(|label| !label.is_empty()).collect();
    let (top, mut rest) = labels.split_last().ok_or(UriError::NoHost)?;
    // The parser accepts `1.2.3.4..` as a name; without its dots it is an IP address.
    if host::is_number(top) {
        let ip = host::number(&labels.join(&b'.'))?;
        out.extend_from_slice(ip.to_string().as_bytes());
        return Ok(());
    }
    while let [b"www", tail_part @ ..] = rest {
        if tail_part.is_empty() {
            break;
        }
        rest = tail_part;
    }
    for label in rest {
        out.extend_from_slice(label);
        out.push(b'.');
    }
    out.extend_from_slice(top);
    Ok(())
}

fn write_path(path: &[u8], out: &mut Vec<u8>) {
    let mut decoded = Vec::with_capacity(path.len());
    decode(path, &mut decoded);
    let mut segments: Vec<&[u8]> = Vec::with_capacity(8);
    for segment in decoded.split(|&byte| byte == b'/' || byte == b'\\') {
        match session::without_java_session(segment) {
            b"" | b"." => {}
            b".." => {
                segments.pop();
            }
            retained => segments.push(retained),
        }
    }
    drop_asp_segments(&mut segments);
    let is_default = |segment: &&[u8]| {
        let mut pages = DEFAULT_PAGES.iter();
        pages.any(|page| segment.eq_ignore_ascii_case(page))
    };
    while segments.last().is_some_and(is_default) {
        segments.pop();
    }
    if segments.is_empty() {
        out.push(b'/');
    }
    for segment in segments {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
}

/// Decodes printable characters without a meaning in paths once; a space becomes `+`. Remaining escapes have capital
/// digits.
fn decode(path: &[u8], out: &mut Vec<u8>) {
    for_each_byte(path, |byte, is_escaped| match byte {
        b'#' | b'%' | b'/' | b'?' if is_escaped => push_escape(byte, false, out),
        b' ' => out.push(b'+'),
        b'!'..=b'~' => out.push(byte),
        _ => push_escape(byte, false, out),
    });
}

/// Calls `take` with each decoded byte, and whether it was escaped. A percent sign without two hexadecimal digits
/// counts as escaped.
fn for_each_byte(text: &[u8], mut take: impl FnMut(u8, bool)) {
    let mut rest = text;
    while let [byte, tail_part @ ..] = rest {
        rest = tail_part;
        if *byte != b'%' {
            take(*byte, false);
        } else if let Some(value) = escaped_byte(tail_part) {
            rest = &tail_part[2..];
            take(value, true);
        } else {
            take(b'%', true);
        }
    }
}

/// The byte of the two digits after a percent sign.
fn escaped_byte(digits: &[u8]) -> Option<u8> {
    let [high, low, ..] = digits else {
        return None;
    };
    Some(hex_value(*high)? << 4 | hex_value(*low)?)
}

/// The query without session ids; without a `?` if nothing else is in it.
fn write_query(query: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.push(b'?');
    let has_pair = session::has_cold_fusion_pair(query);
    let parameters = query.split(|&byte| byte == b'&');
    let retained = parameters.filter(|parameter| {
        !(session::is_parameter(parameter)
            || has_pair && session::is_cold_fusion_parameter(parameter))
    });
    for (i, parameter) in retained.enumerate() {
        if i > 0 {
            out.push(b'&');
        }
        write_parameter(parameter, out);
    }
    if out.len() == start + 1 {
        out.truncate(start);
    }
}

/// Nothing is decoded, since servers distinguish `%26` from `&`. Characters that are not allowed in a query (RFC 3986,
/// and `'`, which browsers escape) are escaped, since clients differ.
fn write_parameter(parameter: &[u8], out: &mut Vec<u8>) {
    for_each_byte(parameter, |byte, is_escaped| {
        let is_plain = matches!(byte, b'!'..=b'~') && !b"\"#'<>[\\]^`{|}".contains(&byte);
        if is_plain && !is_escaped {
            out.push(byte);
        } else {
            push_escape(byte, false, out);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(text: &str) -> String {
        let mut out = Vec::new();
        let url = WebUrl::read(text.as_bytes()).expect("a URL");
        name(&url, &mut out).expect("a name");
        String::from_utf8(out).expect("ascii")
    }

    #[test]
    fn name_of_a_name_is_itself() {
        for (url, expected) in [
            ("http://www.Example.com:80/", "example.com/"),
            ("https://www.example.com/A/index.html#top", "example.com/A"),
            ("http://www.com/", "www.com/"),
            ("http://a.com/%4%31/%2541/100%", "a.com/%2541/%2541/100%25"),
            ("http://a.com/a%5C..%5Cb", "a.com/b"),
            ("http://a.com/?q=%c3%zz '", "a.com/?q=%C3%25zz%20%27"),
            ("http://1.2.3.4../", "1.2.3.4/"),
        ] {
            let found = name_of(url);
            assert_eq!(found, expected, "{url}");
            assert_eq!(name_of(&format!("http://{found}")), found, "{url}");
        }
    }
}
