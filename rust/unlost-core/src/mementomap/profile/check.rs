//! Validates profiles.

use super::line::{Fault, ProfileReader};
use crate::mementomap::{HoldingsError, LineStats};
use crate::uri::{Policy, RuleSet, Segments, Suffixes, normal_key};

/// The summary of a profile, and its problems.
#[derive(Debug, Clone, Default)]
pub struct ProfileReport {
    /// The number of keys.
    pub keys: u64,
    /// The number of URI-Ms; `None` if the sum has more than 18 digits.
    pub frequency: Option<u64>,
    /// The largest spread of a key.
    pub spread: u64,
    /// The line statistics.
    pub line_stats: LineStats,
}

/// Reads a profile to its end. Its keys must be those of the policy for URLs under the rules.
pub fn check_profile(
    reader: &mut ProfileReader,
    policy: Policy,
    rules: RuleSet,
    suffixes: &Suffixes,
) -> Result<ProfileReport, HoldingsError> {
    let mut report = ProfileReport {
        frequency: Some(0),
        ..ProfileReport::default()
    };
    let mut normal = Vec::new();
    while let Some(found) = reader.next()? {
        report.line_stats.lines = reader.number;
        let (key, holding) = reader.row();
        let was_read = matches!(found, Ok(()) | Err(Fault::Unsorted | Fault::Duplicate));
        let example = if was_read { key } else { b"" };
        if let Err(fault) = found {
            report
                .line_stats
                .add_problem(fault.kind(), reader.offset, example);
        }
        if !was_read {
            continue;
        }
        if !is_key(policy, key, rules, suffixes, &mut normal) {
            report.line_stats.add_problem("bad-key", reader.offset, key);
        }
        if holding.frequency == 0 || holding.spread == 0 {
            report
                .line_stats
                .add_problem("nothing-held", reader.offset, key);
        }
        report.keys += 1;
        report.spread = report.spread.max(holding.spread);
        report.frequency = report
            .frequency
            .and_then(|sum| sum.checked_add(holding.frequency))
            .filter(|sum| *sum <= 999_999_999_999_999_999);
    }
    Ok(report)
}

/// Whether a URL could have this key under the policy. Does not check that a domain is a registered one: suffix lists
/// change.
fn is_key(
    policy: Policy,
    key: &[u8],
    rules: RuleSet,
    suffixes: &Suffixes,
    normal: &mut Vec<u8>,
) -> bool {
    normal.clear();
    let page = match policy {
        Policy::Segments { .. } | Policy::Whole => key,
        _ => {
            let Some(host_end) = memchr::memchr(b')', key) else {
                return false;
            };
            if !are_counts(policy, &key[host_end + 1..]) || Segments::of(key).port().is_some() {
                return false;
            }
            &key[..(host_end + 2).min(key.len())]
        }
    };
    if normal_key(page, rules, normal).is_err() || normal != page {
        return false;
    }
    if !matches!(policy, Policy::Segments { .. }) {
        return true;
    }
    normal.clear();
    policy.write_key(&Segments::of(key), suffixes, normal);
    normal == key
}

/// `/`, `/1`, `/1/2`, `/1/2/3` or `/1/2/3/i`.
fn are_counts(policy: Policy, tail: &[u8]) -> bool {
    let Some(counts) = tail.strip_prefix(b"/") else {
        return false;
    };
    let depth = match policy {
        Policy::Domain => return counts.is_empty(),
        Policy::Subdomains => 1,
        Policy::PathDepth => 2,
        Policy::QueryLength => 3,
        _ => 4,
    };
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let is_initial =
        |text: &[u8]| text.len() == 1 && (text[0].is_ascii_alphanumeric() || text == b"-");
    let parts: Vec<&[u8]> = counts.split(|&byte| byte == b'/').collect();
    let numbers = parts.len().min(3);
    parts.len() == depth
        && parts[..numbers].iter().all(|part| is_number(part))
        && parts[numbers..].iter().all(|part| is_initial(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uri::Section;

    #[test]
    fn keys_that_no_url_can_have_are_rejected() {
        let suffixes = Suffixes::built_in(Section::All);
        let is_key = |policy: &str, key: &str| {
            let policy = policy.parse().expect(policy);
            is_key(
                policy,
                key.as_bytes(),
                RuleSet::default(),
                &suffixes,
                &mut Vec::new(),
            )
        };
        for (policy, key) in [
            ("H1P0", "com)/"),
            ("H1P0", "4,3,2,1:81)/"),
            ("H3P1", "com,a:81)/x"),
            ("HxPx", "com,a)/x/y"),
            ("URIR", "com,a)/x/y?a&b"),
            ("DDom", "uk,co,bbc)/"),
            ("DSub", "uk,co,bbc)/12"),
            ("DQry", "4,3,2,1)/1/2/3"),
            ("DIni", "uk,co,bbc)/1/2/3/-"),
        ] {
            assert!(is_key(policy, key), "{policy} {key}");
        }
        for (policy, key) in [
            ("H1P0", "com,a)/"),
            ("H2P0", "com,a)/x"),
            ("H3P1", "com,a)/x/y"),
            ("HxPx", "com,a)/x?q"),
            ("HxPx", "com,a)/X"),
            ("HxPx", "com,a"),
            ("HxPx", "com,a)/*"),
            ("DDom", "uk,co,bbc)/1"),
            ("DDom", "uk,co,bbc:81)/"),
            ("DSub", "uk,co,bbc)/"),
            ("DSub", "uk,co,bbc"),
            ("DIni", "uk,co,bbc)/1/2/3"),
            ("DIni", "uk,co,bbc)/1/2/3/ab"),
        ] {
            assert!(!is_key(policy, key), "{policy} {key}");
        }
    }
}
