//! Converts the keys of any policy to map keys.

use std::io::Write;

use super::line::{Holding, ProfileReader};
use crate::mementomap::sorter::Sorter;
use crate::mementomap::totals::Totals;
use crate::mementomap::totals_inserter::TotalsInserter;
use crate::mementomap::{Entry, Frequency, HoldingsError, Progress};
use crate::uri::{Policy, Segments};

/// Reads profiles and writes a map that covers every page counted in them.
pub fn profiles_to_map(
    profiles: impl IntoIterator<Item = Result<(ProfileReader, Policy), HoldingsError>>,
    memory: usize,
    out: &mut impl Write,
    progress: &Progress,
) -> Result<(), HoldingsError> {
    let mut sorter = Sorter::new(1, memory);
    let mut totals = Totals::default();
    let mut key = Vec::new();
    for profile in profiles {
        let (mut reader, policy) = profile?;
        while reader.advance()? {
            progress.check_cancelled()?;
            let (cut, holding) = reader.row();
            for (port, frequency) in shares(holding) {
                // A key without holdings is skipped: as a line of a map, it would exclude all pages below it.
                if frequency > 0 {
                    key.clear();
                    write_map_key(policy, cut, port, &mut key);
                    let entry = Entry::new(&key, Frequency::of(frequency));
                    totals.add_entry(&entry)?;
                    sorter.push_near(&entry)?;
                }
            }
        }
    }
    let mut out = TotalsInserter::new(out, totals.text());
    sorter.write_to(&mut out, progress)?;
    Ok(out.finish()?)
}

/// The holdings by ports that the key does not show, and the rest.
fn shares(holding: &Holding) -> impl Iterator<Item = (Option<u16>, u64)> {
    let of_ports: u64 = holding.ports.iter().map(|(_, count)| count).sum();
    let others = (None, holding.frequency.saturating_sub(of_ports));
    let ports = holding
        .ports
        .iter()
        .map(|&(port, count)| (Some(port), count));
    std::iter::once(others).chain(ports)
}

/// Appends the map key that covers all pages with this key under a policy.
fn write_map_key(policy: Policy, key: &[u8], port: Option<u16>, out: &mut Vec<u8>) {
    let segments = Segments::of(key);
    let (host, path) = match policy {
        Policy::Segments { host, path } => (host, path),
        // Pages of a map have no query.
        Policy::Whole => return write_page(&segments, out),
        _ => return write_domain(policy, &segments, port, out),
    };
    let labels = segments.host_labels().count();
    let depth = segments.path_segments().count();
    let as_many =
        |limit: Option<u32>, count: usize| limit.is_some_and(|limit| count >= limit as usize);
    // A port, or a path, follows only a whole host.
    let may_be_cut = depth == 0 && !segments.is_ip() && segments.port().is_none();
    if may_be_cut && as_many(host, labels) {
        write_host(&segments, out);
        out.extend_from_slice(b",*");
    } else {
        write_page(&segments, out);
        if as_many(path, depth) {
            out.extend_from_slice(if depth == 0 { b"*" } else { b"/*" });
        }
    }
}

fn write_host(segments: &Segments<'_>, out: &mut Vec<u8>) {
    for (i, label) in segments.host_labels().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(label);
    }
}

fn write_page(segments: &Segments<'_>, out: &mut Vec<u8>) {
    write_host(segments, out);
    out.push(b')');
    let start = out.len();
    for segment in segments.path_segments() {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    if out.len() == start {
        out.push(b'/');
    }
}

/// `uk,co,bbc)/1/2` covers hosts below `uk,co,bbc`; `uk,co,bbc)/0/2` covers that host alone, as does a name of one
/// label.
fn write_domain(policy: Policy, segments: &Segments<'_>, port: Option<u16>, out: &mut Vec<u8>) {
    let is_host = match policy {
        Policy::Domain => segments.is_ip() || segments.host_labels().nth(1).is_none(),
        _ => segments.path_segments().next() == Some(b"0"),
    };
    write_host(segments, out);
    if let Some(port) = port {
        out.extend_from_slice(format!(":{port}").as_bytes());
    }
    let whole_host = is_host || port.is_some();
    out.extend_from_slice(if whole_host { b")/*" } else { b",*" });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_maps_to_its_wildcards() {
        for (policy, key, expected) in [
            ("H1P0", "com)/", "com,*"),
            ("H1P0", "4,3,2,1)/", "4,3,2,1)/*"),
            ("H1P0", "localhost:81)/", "localhost:81)/*"),
            ("H2P0", "com,a)/", "com,a,*"),
            ("H2P0", "com)/", "com)/*"),
            ("H3P1", "com,a)/x", "com,a)/x/*"),
            ("H3P1", "com,a)/", "com,a)/"),
            ("H3P1", "com,a,b)/", "com,a,b,*"),
            ("H3P1", "com,a,b:81)/", "com,a,b:81)/"),
            ("H3P3", "com,a,b)/x", "com,a,b)/x"),
            ("H3P0", "com,a,b:81)/", "com,a,b:81)/*"),
            ("HxP0", "com,a)/", "com,a)/*"),
            ("HxP1", "com,a)/", "com,a)/"),
            ("HxP1", "com,a)/x", "com,a)/x/*"),
            ("HxP2", "com,a)/x", "com,a)/x"),
            ("HxPx", "com,a)/x", "com,a)/x"),
            ("URIR", "com,a)/x?q", "com,a)/x"),
            ("URIR", "com,a)/?q", "com,a)/"),
            ("DDom", "uk,co,bbc)/", "uk,co,bbc,*"),
            ("DDom", "localhost)/", "localhost)/*"),
            ("DDom", "4,3,2,1)/", "4,3,2,1)/*"),
            ("DSub", "uk,co,bbc)/0", "uk,co,bbc)/*"),
            ("DIni", "uk,co,bbc)/1/2/3/i", "uk,co,bbc,*"),
        ] {
            let mut out = Vec::new();
            write_map_key(
                policy.parse().expect(policy),
                key.as_bytes(),
                None,
                &mut out,
            );
            assert_eq!(String::from_utf8_lossy(&out), expected, "{policy} {key}");
        }
        let mut out = Vec::new();
        write_map_key(Policy::Domain, b"com,a)/", Some(81), &mut out);
        assert_eq!(out, b"com,a:81)/*");
    }
}
