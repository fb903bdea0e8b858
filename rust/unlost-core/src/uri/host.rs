//! The host of a URL as the labels of a SURT: `news.bbc.co.uk` is `uk,co,bbc,news`.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::Host;

use super::UriError;
use super::escape::push_escape;
use super::path_query::KeyForm;

/// Appends a host as SURT labels.
pub(super) fn write(host: &Host<&[u8]>, usage: KeyForm, out: &mut Vec<u8>) -> Result<(), UriError> {
    match host {
        Host::Domain(name) => write_name(name, usage, out),
        Host::Ipv4(ip) => {
            write_ipv4(*ip, out);
            Ok(())
        }
        Host::Ipv6(ip) => {
            write_ipv6(*ip, out);
            Ok(())
        }
    }
}

fn write_name(name: &[u8], usage: KeyForm, out: &mut Vec<u8>) -> Result<(), UriError> {
    let name = without_www(name);
    let mut labels = name
        .rsplit(|&byte| byte == b'.')
        .filter(|label| !label.is_empty());
    let top = labels.next().ok_or(UriError::NoHost)?;
    // The parser accepts `1.2.3.4..` as a name; without its dots it is an IP address.
    if is_number(top) {
        write_ipv4(number(name)?, out);
        return Ok(());
    }
    write_label(top, usage, out);
    for label in labels {
        out.push(b',');
        write_label(label, usage, out);
    }
    Ok(())
}

/// The name without leading `www`, `www2` … labels, as long as one label is left.
///
/// All of them are dropped, so that a SURT read back is itself; indexes drop only the first, and their `,www)` is
/// dropped when their keys are normalized.
fn without_www(name: &[u8]) -> &[u8] {
    let end = name.iter().rposition(|&byte| byte != b'.');
    let mut name = &name[..end.map_or(0, |last| last + 1)];
    // The name has no final dots, so that text follows every dot.
    while let Some(dot) = memchr::memchr(b'.', name) {
        let first = &name[..dot];
        if !(first.is_empty() || is_www(first)) {
            break;
        }
        name = &name[dot + 1..];
    }
    name
}

pub(super) fn is_www(label: &[u8]) -> bool {
    label
        .strip_prefix(b"www")
        .is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}

/// The "ends in a number checker" of the WHATWG URL standard: such a host must be an IPv4 address.
pub(super) fn is_number(label: &[u8]) -> bool {
    let hex = label
        .strip_prefix(b"0x")
        .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    hex || label.iter().all(u8::is_ascii_digit)
}

/// An IPv4 address in any of its old notations, possibly surrounded by dots.
pub(super) fn number(name: &[u8]) -> Result<Ipv4Addr, UriError> {
    let text = std::str::from_utf8(name).unwrap_or_default();
    match Host::parse(text.trim_matches('.')) {
        Ok(Host::Ipv4(ip)) => Ok(ip),
        _ => Err(UriError::BadHost {
            reason: "invalid IPv4 address".to_owned(),
        }),
    }
}

/// Escapes the bytes of a label that have a meaning in SURTs, URLs and map files. The host of a parsed URL contains few
/// of these, and no `%`; a key that is used verbatim may contain any.
pub(super) fn write_label(label: &[u8], usage: KeyForm, out: &mut Vec<u8>) {
    let plain = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    if label.iter().all(plain) {
        out.extend_from_slice(label);
        return;
    }
    for &byte in label {
        // In keys nothing in a label may sort between `)` and `,`, so that a host's subdomains follow it directly.
        let in_key = usage != KeyForm::Surt && matches!(byte, b'*' | b'+');
        let special = in_key || b",()!%/?#:@[]\\<>^|".contains(&byte);
        if special || byte <= b' ' || byte >= 0x7f {
            push_escape(byte, true, out);
        } else {
            out.push(byte);
        }
    }
}

/// Reversed like a name's labels, as in the `surt` package.
pub(super) fn write_ipv4(ip: Ipv4Addr, out: &mut Vec<u8>) {
    let [a, b, c, d] = ip.octets();
    out.extend_from_slice(format!("{d},{c},{b},{a}").as_bytes());
}

/// In brackets, so that a port after it is distinguishable from its last group.
pub(super) fn write_ipv6(ip: Ipv6Addr, out: &mut Vec<u8>) {
    // The standard's own spelling, which has no dotted end.
    out.extend_from_slice(Host::<&str>::Ipv6(ip).to_string().as_bytes());
}
