//! Normalizes the host of a SURT, which indexes spell in many ways.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::Host;

use super::escape::decode_fully;
use super::path_query::KeyForm;
use super::{Segments, UriError, host};

/// Fast check for a lower-case name that is already normalized. May return false for a normalized one.
pub(super) fn is_plain_host(host_and_port: &[u8]) -> bool {
    let plain = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b',' | b'-' | b'_');
    let mut labels = host_and_port.split(|&byte| byte == b',');
    host_and_port.iter().all(plain)
        && host_and_port.first().is_some_and(u8::is_ascii_lowercase)
        && labels.all(|label| {
            !label.is_empty() && !label.starts_with(b"www") && !label.starts_with(b"xn--")
        })
}

/// Appends the host of a SURT, with its port, in the form used in keys.
pub(super) fn write_host(
    host_and_port: &[u8],
    usage: KeyForm,
    out: &mut Vec<u8>,
) -> Result<(), UriError> {
    if is_plain_host(host_and_port) {
        out.extend_from_slice(host_and_port);
        return Ok(());
    }
    // `surt` writes a port after an IPv6 address without brackets, where it looks like the address's last group.
    if let Some(ip) = bare_ipv6(host_and_port) {
        host::write_ipv6(ip, out);
        return Ok(());
    }
    let segments = Segments::of(host_and_port);
    let (name, port) = match segments.port() {
        None | Some([]) => (segments.host(), None),
        Some(port) => (segments.host(), Some(port_number(port)?)),
    };
    write_name(name, usage, out)?;
    if let Some(port) = port {
        out.extend_from_slice(format!(":{port}").as_bytes());
    }
    Ok(())
}

pub(super) fn bare_ipv6(host: &[u8]) -> Option<Ipv6Addr> {
    let text = std::str::from_utf8(host).ok()?;
    text.strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text)
        .parse()
        .ok()
}

fn port_number(digits: &[u8]) -> Result<u16, UriError> {
    std::str::from_utf8(digits)
        .ok()
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
        .and_then(|digits| digits.parse().ok())
        .ok_or(UriError::BadPort)
}

fn write_name(name: &[u8], usage: KeyForm, out: &mut Vec<u8>) -> Result<(), UriError> {
    if let Some(ip) = bare_ipv6(name) {
        host::write_ipv6(ip, out);
        return Ok(());
    }
    if let Some(ip) = std::str::from_utf8(name)
        .ok()
        .and_then(|text| text.parse::<Ipv4Addr>().ok())
    {
        host::write_ipv4(ip, out);
        return Ok(());
    }
    let mut labels: Vec<Vec<u8>> = name
        .split(|&byte| byte == b',')
        .map(decoded_label)
        .filter(|label| !label.is_empty())
        .collect();
    while labels.len() > 1 && labels.last().is_some_and(|label| host::is_www(label)) {
        labels.pop();
    }
    if labels.is_empty() {
        return Err(UriError::NoHost);
    }
    // The URL parser normalizes the name, so that both ways to a key give the same one.
    let forwards: Vec<&[u8]> = labels.iter().rev().map(Vec::as_slice).collect();
    let parsed = std::str::from_utf8(&forwards.join(&b'.'))
        .ok()
        .and_then(|text| Host::parse(text).ok());
    match parsed {
        Some(Host::Domain(name)) => {
            return host::write(&Host::Domain(name.as_bytes()), usage, out);
        }
        Some(Host::Ipv4(ip)) => host::write_ipv4(ip, out),
        Some(Host::Ipv6(ip)) => host::write_ipv6(ip, out),
        // An index may contain hosts that browsers reject: their keys are used verbatim.
        None => {
            for (i, label) in labels.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                host::write_label(label, usage, out);
            }
        }
    }
    Ok(())
}

fn decoded_label(label: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(label.len());
    decode_fully(label, &mut decoded);
    decoded.make_ascii_lowercase();
    decoded
}
