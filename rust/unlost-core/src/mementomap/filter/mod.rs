//! Filters: whether an archive may hold a page, in about nine bits per page with 8-bit fingerprints, without false
//! negatives.
//!
//! ```text
//! keys ─ hashes (64 bits) ─ buckets (temporary files if there are many) ─ sorted, unique ─ partitions ─ fuses ─ layer
//! ```
//!
//! A file is one or more consecutive layers, any of which may contain the page.

mod build;
mod dates;
mod file;
mod fuse;
mod hash;
mod hashes;
mod header;
mod query;

pub use build::{FilterBuilder, filter_header, make_partitions, partitions_of};
pub use dates::DateRange;
pub use file::{Filter, FilterError};
pub use hash::xxh64;
pub use header::{Header, KeyKind};
pub use query::{contains_each, contains_each_line, contains_each_uri, contains_uri};
