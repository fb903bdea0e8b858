//! Registered domains by the Public Suffix List.

use std::fmt;

use psl::{Psl, Type};

/// The sections of the list that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Section {
    /// Includes private suffixes of companies that offer subdomains: `blogspot.com`.
    #[default]
    All,
    /// Only suffixes of registries: `co.uk`.
    Icann,
}

/// The maximum length of a rule. A host has at most 253 bytes (RFC 1035, 2.3.4); rules in other scripts take more
/// before they are converted to punycode.
const MAX_RULE_BYTES: usize = 1000;

enum List {
    BuiltIn,
    Read(Box<publicsuffix::List>),
}

/// A Public Suffix List: the built-in one, or a newer file.
pub struct Suffixes {
    list: List,
    section: Section,
}

impl Suffixes {
    /// The list at the build time of unlost.
    #[must_use]
    pub fn built_in(section: Section) -> Self {
        Self {
            list: List::BuiltIn,
            section,
        }
    }

    /// A list in its published format.
    pub fn read(text: &[u8], section: Section) -> Result<Self, SuffixError> {
        let too_long = |line: &&[u8]| !line.starts_with(b"//") && line.len() > MAX_RULE_BYTES;
        if text
            .split(|&byte| byte == b'\n')
            .any(|line| too_long(&line))
        {
            return Err(SuffixError {
                reason: format!("a rule of more than {MAX_RULE_BYTES} bytes"),
            });
        }
        // Lines outside the sections are ignored, so that no other file passes for a list.
        let list = publicsuffix::List::from_bytes(text).map_err(|error| SuffixError {
            reason: match error {
                publicsuffix::Error::InvalidList => {
                    "no rule below a line `===BEGIN ICANN DOMAINS===`".to_owned()
                }
                error => error.to_string(),
            },
        })?;
        Ok(Self {
            list: List::Read(Box::new(list)),
            section,
        })
    }

    /// The number of labels, from the top, of the registered domain. All labels for a name that is a suffix itself,
    /// which has no shorter registered name.
    #[must_use]
    pub fn registered_len(&self, labels: &[&[u8]]) -> usize {
        (self.suffix_len(labels) + 1).min(labels.len())
    }

    /// The number of labels, from the top, of the public suffix; at least one.
    #[must_use]
    pub fn suffix_len(&self, labels: &[&[u8]]) -> usize {
        let mut considered = labels;
        loop {
            let info = self.find(considered);
            let len = labels_in(considered, info.len);
            if self.section == Section::All || info.typ != Some(Type::Private) || len <= 1 {
                return len;
            }
            // A private suffix is below a registry's: drop its own label and search again.
            considered = &considered[..len - 1];
        }
    }

    fn find(&self, labels: &[&[u8]]) -> psl::Info {
        let labels = labels.iter().copied();
        match &self.list {
            List::BuiltIn => psl::List.find(labels),
            List::Read(list) => list.find(labels),
        }
    }
}

/// The number of labels in `bytes` bytes of dotted suffix.
fn labels_in(labels: &[&[u8]], bytes: usize) -> usize {
    let mut seen = 0;
    for (i, label) in labels.iter().enumerate() {
        seen += label.len() + usize::from(i > 0);
        if seen >= bytes {
            return i + 1;
        }
    }
    labels.len()
}

/// A file that is not a Public Suffix List.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuffixError {
    reason: String,
}

impl fmt::Display for SuffixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a Public Suffix List: {}", self.reason)
    }
}

impl std::error::Error for SuffixError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered(suffixes: &Suffixes, host: &str) -> String {
        let labels: Vec<&[u8]> = host.split(',').map(str::as_bytes).collect();
        let labels: Vec<&str> = host
            .split(',')
            .take(suffixes.registered_len(&labels))
            .collect();
        labels.join(",")
    }

    #[test]
    fn sections_differ_for_private_suffixes() {
        let (all, icann) = (
            Suffixes::built_in(Section::All),
            Suffixes::built_in(Section::Icann),
        );
        for (host, with_private, registries_only) in [
            ("uk,co,bbc,news", "uk,co,bbc", "uk,co,bbc"),
            ("com,blogspot,foo,a", "com,blogspot,foo", "com,blogspot"),
            ("io,github,foo", "io,github,foo", "io,github"),
            ("ck,www,a", "ck,www", "ck,www"),
            ("ck,foo,bar,a", "ck,foo,bar", "ck,foo,bar"),
            ("uk,co", "uk,co", "uk,co"),
            ("localhost", "localhost", "localhost"),
            ("nosuchtld,b,a", "nosuchtld,b", "nosuchtld,b"),
        ] {
            assert_eq!(registered(&all, host), with_private, "{host}");
            assert_eq!(registered(&icann, host), registries_only, "{host}");
        }
    }

    #[test]
    fn given_list_replaces_the_built_in_one() {
        let text = b"// ===BEGIN ICANN DOMAINS===\nuk\nco.uk\n\xe5\x85\xac\xe5\x8f\xb8.cn\n// ===END ICANN DOMAINS===\n\
            // ===BEGIN PRIVATE DOMAINS===\nbbc.co.uk\n// ===END PRIVATE DOMAINS===\n";
        let all = Suffixes::read(text, Section::All).expect("a list");
        assert_eq!(registered(&all, "uk,co,bbc,news,a"), "uk,co,bbc,news");
        assert_eq!(registered(&all, "cn,xn--55qx5d,b,a"), "cn,xn--55qx5d,b");
        let icann = Suffixes::read(text, Section::Icann).expect("a list");
        assert_eq!(registered(&icann, "uk,co,bbc,news,a"), "uk,co,bbc");
    }

    #[test]
    fn invalid_list_is_rejected() {
        assert!(Suffixes::read(b"\xff\xfe", Section::All).is_err());
        assert!(Suffixes::read(b"// nothing\n", Section::All).is_err());
        let deep = [
            &b"// ===BEGIN ICANN DOMAINS===\n"[..],
            &b"a.".repeat(500_000),
        ]
        .concat();
        assert!(Suffixes::read(&deep, Section::All).is_err());
    }
}
