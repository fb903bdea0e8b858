//! Reads the text of plain and compressed files: as lines, or as blocks for several threads.

mod blocks;
mod inflate_thread;
mod lines;
mod ordered_parallel;
mod random_access;
mod ranges;
mod read_ahead;
mod source;

pub(crate) use blocks::{BLOCK_BYTES, Block, Blocks};
pub use lines::{Line, Lines};
pub(crate) use ordered_parallel::process_in_order;
pub use random_access::Input;
pub use source::{Damage, Source, is_compressed};
