//! Looks up keys in a map: in the text of its file, or in a hash table.
//!
//! ```text
//! URL ─ key (normalized, without query) ─ candidates, general to specific ─┬─ TextMap: one narrowing binary search
//!                                                                          └─ MemoryMap: a hash table
//! ```
//!
//! The most specific candidate that the map contains is the match.

mod batch;
mod candidates;
mod memory;
mod prefix_hash;
mod results;
mod row;
mod samples;
mod search;
mod text;

use std::fmt;

use super::Frequency;

pub use batch::{GROUP_SIZE, LookupPool, SearchableMap, query_one, with_workers};
pub use memory::{MemoryMap, MemoryMapBuilder};
pub use results::{LookupResult, LookupResults, QueryKind};
pub use row::{Layout, NotAMap, check_first_row, header_end};
pub use text::{TextMap, TextSeeker};

/// The rows are not sorted by the bytes of their keys, so that a search is unreliable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotSorted {
    /// The offset of a misplaced row, or of its neighbour, in bytes of the text.
    pub offset: u64,
}

impl fmt::Display for NotSorted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "not sorted: the row at byte {} and those before it are not in the order of their bytes",
            self.offset
        )
    }
}

impl std::error::Error for NotSorted {}

/// Adds another row of the same key. A sum that is too large becomes unknown, and held.
fn add(sum: Frequency, other: Frequency) -> Frequency {
    sum.plus_overlapping(other).unwrap_or(row::UNKNOWN)
}

#[cfg(test)]
mod tests;
