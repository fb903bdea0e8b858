//! Archive files, WARC and ARC, as a stream of records and of what could not be read.
//!
//! ```text
//! file ── window ──► gzip members, zstd frames ── text ──► header, block ── scanner ──► records, problems
//! ```

mod arc;
mod fields;
mod gzip;
mod head;
mod problem;
mod record;
mod scanner;
mod stored;
mod text;
mod window;
mod zstd;

pub use problem::Problem;
pub use record::Record;
pub use scanner::{Event, Scanner};
pub use stored::StoredRecord;
