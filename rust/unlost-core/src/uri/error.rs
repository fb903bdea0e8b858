//! The reasons why a text is not a URL with a SURT.

use std::fmt;

/// The error of an invalid URL. The message is one line and never repeats the URL: the caller knows it, and it may be
/// long or hostile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UriError {
    /// Only white space.
    Empty,
    /// Longer than [`super::MAX_BYTES`].
    TooLong,
    /// A scheme other than http or https, which has no SURT: not a syntax error.
    Foreign {
        /// The scheme in lower case, without its colon.
        scheme: String,
    },
    /// No host, or only dots.
    NoHost,
    /// A host that browsers reject.
    BadHost {
        /// The parser's message.
        reason: String,
    },
    /// A port that is not a number from 0 to 65535.
    BadPort,
    /// Malformed SURT.
    NotSurt,
    /// A query of nested session ids, too deep to be intended.
    Nested,
}

impl UriError {
    /// The error code, used for counting.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong => "too-long",
            Self::Foreign { .. } => "foreign-scheme",
            Self::NoHost => "no-host",
            Self::BadHost { .. } => "bad-host",
            Self::BadPort => "bad-port",
            Self::NotSurt => "not-surt",
            Self::Nested => "nested",
        }
    }
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "empty: expected an address such as http://example.com/"),
            Self::TooLong => write!(f, "too long: more than {} bytes", super::MAX_BYTES),
            Self::Foreign { scheme } => {
                write!(
                    f,
                    "not a web page: expected an address that begins with http:// or https://, found `{scheme}:`"
                )
            }
            Self::NoHost => write!(f, "no host: expected a name after `http://`"),
            Self::BadHost { reason } => {
                write!(f, "bad host: {reason}: look for blanks and typing errors")
            }
            Self::BadPort => write!(f, "bad port: expected a number from 0 to 65535"),
            Self::NotSurt => write!(f, "not a SURT: expected a form such as `com,example)/path`"),
            Self::Nested => write!(f, "nested: its query has session ids within session ids"),
        }
    }
}

impl std::error::Error for UriError {}
