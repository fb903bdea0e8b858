//! What an archive holds: counted, compacted, looked up.

mod frequency;
pub mod synth;

pub use frequency::{Count, Frequency};
