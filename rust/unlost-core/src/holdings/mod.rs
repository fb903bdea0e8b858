//! What an archive holds: counted, compacted, looked up.

mod frequency;
pub mod lookup;

pub use frequency::{Count, Frequency};
