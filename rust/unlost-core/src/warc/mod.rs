//! Reads WARC and ARC files as a stream of records and problems.
//!
//! ```text
//! file ── window ──► gzip members, zstd frames ── text ──► header, block ── scanner ──► records, problems
//! ```

mod arc;
pub mod coding;
mod fields;
pub(crate) mod gzip;
mod head;
mod problem;
mod record;
mod scanner;
mod stored;
mod text;
pub(crate) mod window;
pub(crate) mod zstd;

pub use problem::Problem;
pub use record::{Details, Record};
pub use scanner::{Event, Scanner};
pub use stored::StoredRecord;
