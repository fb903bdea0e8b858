//! URI-Key policies: how much of a URL a profile retains.

use std::fmt;
use std::str::FromStr;

use super::{Segments, Suffixes};

/// The 23 policies of the profiling paper, from coarse to fine in each family.
pub const ALL_POLICIES: [&str; 23] = [
    "H1P0", "H2P0", "H2P1", "H2P2", "H3P0", "H3P1", "H3P2", "H3P3", "H4P0", "H5P0", "HxP0", "HxP1",
    "HxP2", "HxP3", "HxP4", "HxP5", "HxPx", "DDom", "DSub", "DPth", "DQry", "DIni", "URIR",
];

/// How a key is derived from a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// `HmPn`: at most m host labels and n path segments; `None` is no limit.
    Segments {
        /// The `m`.
        host: Option<u32>,
        /// The `n`.
        path: Option<u32>,
    },
    /// `DDom`: the registered domain.
    Domain,
    /// `DSub`: and the number of labels below it.
    Subdomains,
    /// `DPth`: and the number of path segments.
    PathDepth,
    /// `DQry`: and the number of parameters.
    QueryLength,
    /// `DIni`: and the first character of the path, `-` if it is neither a letter nor a digit.
    Initial,
    /// `URIR`: the whole SURT.
    Whole,
}

impl Policy {
    /// Appends the key under this policy of a segmented URL.
    ///
    /// Path segments follow only a complete host, and an IP address is one label.
    pub fn write_key(self, segments: &Segments<'_>, suffixes: &Suffixes, out: &mut Vec<u8>) {
        match self {
            Self::Segments { host, path } => write_segments(segments, host, path, out),
            Self::Whole => {
                let labels: Vec<&[u8]> = segments.host_labels().collect();
                out.extend_from_slice(&labels.join(&b','));
                out.push(b')');
                out.extend_from_slice(segments.path_query());
            }
            _ => self.write_counts(segments, suffixes, out),
        }
    }

    fn write_counts(self, segments: &Segments<'_>, suffixes: &Suffixes, out: &mut Vec<u8>) {
        let host = segments.host();
        let labels: Vec<&[u8]> = if segments.is_ip() {
            vec![host]
        } else {
            host.split(|&byte| byte == b',').collect()
        };
        let registered = if segments.is_ip() {
            1
        } else {
            suffixes.registered_len(&labels)
        };
        out.extend_from_slice(&labels[..registered].join(&b','));
        out.extend_from_slice(b")/");
        let counts = [
            (Self::Subdomains, labels.len() - registered),
            (Self::PathDepth, segments.path_segments().count()),
            (Self::QueryLength, segments.parameters().count()),
        ];
        for (i, &(level, count)) in counts.iter().enumerate() {
            if self.depth() < level.depth() {
                return;
            }
            let slash = if i == 0 { "" } else { "/" };
            out.extend_from_slice(format!("{slash}{count}").as_bytes());
        }
        if self == Self::Initial {
            let first = segments
                .path_segments()
                .next()
                .and_then(|path| path.first());
            let initial = first.filter(|byte| byte.is_ascii_alphanumeric());
            out.extend([b'/', *initial.unwrap_or(&b'-')]);
        }
    }

    /// The number of sections after the registered domain.
    fn depth(self) -> u8 {
        match self {
            Self::Subdomains => 1,
            Self::PathDepth => 2,
            Self::QueryLength => 3,
            Self::Initial => 4,
            _ => 0,
        }
    }
}

fn write_segments(
    segments: &Segments<'_>,
    host: Option<u32>,
    path: Option<u32>,
    out: &mut Vec<u8>,
) {
    let limit = |limit: Option<u32>| limit.map_or(usize::MAX, |limit| limit as usize);
    let mut labels = segments.host_labels();
    for (i, label) in labels.by_ref().take(limit(host)).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(label);
    }
    out.push(b')');
    let whole_host = labels.next().is_none();
    let allowed = if whole_host { limit(path) } else { 0 };
    let start = out.len();
    for segment in segments.path_segments().take(allowed) {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    if out.len() == start {
        out.push(b'/');
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |limit: &Option<u32>| limit.map_or("x".to_owned(), |limit| limit.to_string());
        match self {
            Self::Segments { host, path } => write!(f, "H{}P{}", number(host), number(path)),
            Self::Domain => f.write_str("DDom"),
            Self::Subdomains => f.write_str("DSub"),
            Self::PathDepth => f.write_str("DPth"),
            Self::QueryLength => f.write_str("DQry"),
            Self::Initial => f.write_str("DIni"),
            Self::Whole => f.write_str("URIR"),
        }
    }
}

/// An unknown policy name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError;

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown policy: expected HmPn (such as H3P1 or HxPx, m at least 1), DDom, DSub, DPth, DQry, DIni or URIR"
        )
    }
}

impl std::error::Error for PolicyError {}

impl FromStr for Policy {
    type Err = PolicyError;

    /// Parses a name in any case.
    fn from_str(name: &str) -> Result<Self, PolicyError> {
        match name.to_ascii_lowercase().as_str() {
            "ddom" => Ok(Self::Domain),
            "dsub" => Ok(Self::Subdomains),
            "dpth" => Ok(Self::PathDepth),
            "dqry" => Ok(Self::QueryLength),
            "dini" => Ok(Self::Initial),
            "urir" => Ok(Self::Whole),
            name => {
                let (host, path) = name
                    .strip_prefix('h')
                    .and_then(|rest| rest.split_once('p'))
                    .ok_or(PolicyError)?;
                let (host, path) = (limit(host)?, limit(path)?);
                if host == Some(0) {
                    return Err(PolicyError);
                }
                Ok(Self::Segments { host, path })
            }
        }
    }
}

/// A number without sign or leading zeros, or `x`. Names have at most 127 labels; 4 digits are enough for any path.
fn limit(text: &str) -> Result<Option<u32>, PolicyError> {
    match text {
        "x" => Ok(None),
        "0" => Ok(Some(0)),
        _ if text.starts_with('0')
            || text.len() > 4
            || !text.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            Err(PolicyError)
        }
        _ => text.parse().map(Some).map_err(|_| PolicyError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uri::Section;

    fn key(policy: &str, surt: &str) -> String {
        let mut out = Vec::new();
        let suffixes = Suffixes::built_in(Section::All);
        policy.parse::<Policy>().expect("a policy").write_key(
            &Segments::of(surt.as_bytes()),
            &suffixes,
            &mut out,
        );
        String::from_utf8(out).expect("ascii")
    }

    #[test]
    fn keys_match_the_example_of_the_paper() {
        let surt = "uk,co,bbc,news)/images/Logo.png?height=80&rotate=90&width=200";
        for (policy, expected) in [
            ("H1P0", "uk)/"),
            ("H3P0", "uk,co,bbc)/"),
            ("H3P3", "uk,co,bbc)/"),
            ("HxP1", "uk,co,bbc,news)/images"),
            ("H4P2", "uk,co,bbc,news)/images/Logo.png"),
            ("HxPx", "uk,co,bbc,news)/images/Logo.png"),
            ("DDom", "uk,co,bbc)/"),
            ("DSub", "uk,co,bbc)/1"),
            ("DPth", "uk,co,bbc)/1/2"),
            ("DQry", "uk,co,bbc)/1/2/3"),
            ("DIni", "uk,co,bbc)/1/2/3/i"),
            ("URIR", surt),
        ] {
            assert_eq!(key(policy, surt), expected, "{policy}");
        }
    }

    #[test]
    fn ports_and_ip_addresses_are_retained_in_keys() {
        assert_eq!(key("H1P0", "com,example:81)/a"), "com)/");
        assert_eq!(key("H2P1", "com,example:81)/a"), "com,example:81)/a");
        assert_eq!(key("DIni", "com,example:81)/a"), "com,example)/0/1/0/a");
        assert_eq!(key("H1P1", "4,3,2,1:81)/a"), "4,3,2,1:81)/a");
        assert_eq!(key("DIni", "4,3,2,1)/"), "4,3,2,1)/0/0/0/-");
        assert_eq!(key("DSub", "[2001:db8::1]:81)/"), "[2001:db8::1])/0");
        assert_eq!(key("URIR", "4,3,2,1:81)/a?b"), "4,3,2,1:81)/a?b");
    }

    #[test]
    fn names_are_parsed_in_any_case_and_formatted_in_one() {
        for name in ALL_POLICIES {
            let policy: Policy = name.to_lowercase().parse().expect("a policy");
            assert_eq!(policy.to_string(), name);
        }
        for name in [
            "", "H", "HP", "H0P1", "H01P1", "H1P-1", "H1P12345", "HxPy", "DFoo", "all",
        ] {
            assert_eq!(name.parse::<Policy>(), Err(PolicyError), "{name}");
        }
    }
}
