//! What ends a piece of work on holdings.

use std::{fmt, io};

use super::filter::FilterError;

/// Why a map or profile could not be made. What is wrong with single lines is counted instead.
#[derive(Debug)]
pub enum HoldingsError {
    /// A file could not be read or written; the system says why.
    Io(io::Error),
    /// A count grew past 18 digits.
    Overflow {
        /// Under which key.
        key: Vec<u8>,
    },
    /// A line stands before the one above it, where sorted input was promised.
    Unsorted {
        /// Which line, from 1.
        line: u64,
    },
    /// The rows of a host do not stand together.
    Scattered {
        /// The host, as keys have it.
        host: Vec<u8>,
    },
    /// Something in a file makes everything behind it unreadable.
    Unreadable {
        /// Which line, from 1.
        line: u64,
        /// What was expected, and what to do.
        message: String,
    },
    /// A line of a map that stands for many pages, where each is needed by itself.
    Wildcard {
        /// Its key.
        key: Vec<u8>,
    },
    /// The same, with the file that it is about.
    InFile {
        /// Its name.
        name: String,
        /// What is wrong with it.
        error: Box<Self>,
    },
    /// The host of a map's key is in no form in which a tree could be made of it.
    Misplaced {
        /// The key.
        key: Vec<u8>,
    },
    /// A filter that was to be added to is damaged.
    Filter(FilterError),
    /// Whoever asked for it does not want it any more.
    Cancelled,
}

impl fmt::Display for HoldingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Overflow { key } => write!(
                f,
                "a frequency of more than 18 digits under {}",
                String::from_utf8_lossy(&key[..key.len().min(100)])
            ),
            Self::Unsorted { line } => write!(
                f,
                "line {line} belongs before the one above it: sort the file by bytes (LC_ALL=C sort), or leave out the promise that it is sorted"
            ),
            Self::Scattered { host } => write!(
                f,
                "not sorted: the host {} has its place before another that came already",
                String::from_utf8_lossy(&host[..host.len().min(100)])
            ),
            Self::Unreadable { line, message } => write!(f, "line {line}: {message}"),
            Self::Wildcard { key } => write!(
                f,
                "neither a profile nor a filter can be made of the wildcard {}: build it from the index that the map was made of",
                String::from_utf8_lossy(&key[..key.len().min(100)])
            ),
            Self::Misplaced { key } => write!(
                f,
                "the host of {} is not as keys have it, so it cannot be rolled up: `unlost map build` brings keys to their normal form",
                String::from_utf8_lossy(&key[..key.len().min(100)])
            ),
            Self::InFile { name, error } => write!(f, "{name}: {error}"),
            Self::Filter(error) => error.fmt(f),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for HoldingsError {}

impl From<io::Error> for HoldingsError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FilterError> for HoldingsError {
    fn from(error: FilterError) -> Self {
        Self::Filter(error)
    }
}
