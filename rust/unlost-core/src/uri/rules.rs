//! Named sets of canonicalisation rules.

use std::fmt;
use std::str::FromStr;

/// Which differences between two URLs are ignored.
///
/// Both sets drop userinfo, fragment, default port and leading `www\d*.` labels, lower-case the host, resolve dot
/// segments, collapse empty ones, drop a trailing slash, decode every percent escape that can be decoded, escape again
/// only what must be, and sort the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RuleSet {
    /// As in Wayback and pywb indexes: path and query lower-cased, session ids dropped.
    #[default]
    Wayback,
    /// As printed in the two profiling papers: the case of path and query and session ids are retained.
    Papers,
}

impl RuleSet {
    /// All rule sets, in display order.
    pub const ALL: [Self; 2] = [Self::Wayback, Self::Papers];

    /// Its name in options and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Wayback => "wayback",
            Self::Papers => "papers",
        }
    }

    pub(super) fn lower_cases(self) -> bool {
        self == Self::Wayback
    }

    pub(super) fn drops_session_ids(self) -> bool {
        self == Self::Wayback
    }
}

/// An unknown rule set name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRuleSet;

impl fmt::Display for UnknownRuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown rule set: expected one of")?;
        for (i, rules) in RuleSet::ALL.iter().enumerate() {
            write!(f, "{} {}", if i == 0 { "" } else { "," }, rules.name())?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownRuleSet {}

impl FromStr for RuleSet {
    type Err = UnknownRuleSet;

    fn from_str(name: &str) -> Result<Self, UnknownRuleSet> {
        Self::ALL
            .into_iter()
            .find(|rules| rules.name() == name)
            .ok_or(UnknownRuleSet)
    }
}
