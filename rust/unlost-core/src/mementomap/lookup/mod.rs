//! Looking a key up in a map: in its text as it stands in the file, or in a hash table.
//!
//! ```text
//! address ─ key (normal, without query) ─ candidates, general to specific ─┬─ TextMap: one narrowing binary search
//!                                                                          └─ MemoryMap: a hash table
//! ```
//!
//! Of the candidates that the map has, the most specific answers.

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

pub use batch::{GROUP, LookupPool, SearchableMap, query_one, with_workers};
pub use memory::{MemoryMap, MemoryMapBuilder};
pub use results::{LookupResult, LookupResults, QueryKind};
pub use row::{Layout, NotAMap, check_first_row, header_end};
pub use text::{TextMap, TextSeeker};

/// The rows are not in the order of their keys' bytes, so that searching them finds nothing for sure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotSorted {
    /// Where the row begins that stands in the wrong place, or beside which one does; in bytes of the text.
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

/// Adds what another row says about the same key. A sum that is too large to be written is unknown, and held.
fn add(sum: Frequency, other: Frequency) -> Frequency {
    sum.plus_overlapping(other).unwrap_or(row::UNKNOWN)
}

#[cfg(test)]
mod tests;
