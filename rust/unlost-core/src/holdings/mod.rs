//! What an archive holds: counted, compacted, looked up.

mod frequency;

pub use frequency::{Count, Frequency};
