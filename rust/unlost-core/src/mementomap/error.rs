//! Errors of map, profile and filter operations.

use std::{fmt, io};

use super::filter::FilterError;

/// The reasons why a map or profile could not be written. Problems with single lines are counted instead.
#[derive(Debug)]
pub enum HoldingsError {
    /// A file could not be read or written.
    Io(io::Error),
    /// A count exceeded 18 digits.
    Overflow {
        /// Its key.
        key: Vec<u8>,
    },
    /// A line sorts before the previous one, although sorted input was promised.
    Unsorted {
        /// The line, from 1.
        line: u64,
    },
    /// The rows of a host are not contiguous.
    Scattered {
        /// The host, in key form.
        host: Vec<u8>,
    },
    /// Invalid content that makes the rest of a file unreadable.
    Unreadable {
        /// The line, from 1.
        line: u64,
        /// The message: what was expected, and how to solve the problem.
        message: String,
    },
    /// A wildcard in a map from which a profile or filter is built: these need each page.
    Wildcard {
        /// Its key.
        key: Vec<u8>,
    },
    /// An error with the name of the file.
    InFile {
        /// The file name.
        name: String,
        /// The error.
        error: Box<Self>,
    },
    /// A map key whose host is malformed, so that it has no position in the tree.
    Misplaced {
        /// The key.
        key: Vec<u8>,
    },
    /// The filter to append to is damaged.
    Filter(FilterError),
    /// The caller cancelled the operation.
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
