//! Readers of index and archive files at the byte level.

mod blocks;
pub mod coding;
mod digest;
pub mod httpdate;
mod inflate_thread;
mod input;
mod jenkins;
mod keys;
mod layout;
mod lines;
pub mod linkformat;
pub mod mementos;
mod object;
mod ordered_parallel;
mod ranges;
mod read_ahead;
mod shape;
mod source;
pub mod warc;

pub(crate) use blocks::{BLOCK_BYTES, Block, Blocks};
pub use digest::sha256_hex;
pub use input::Input;
pub use jenkins::jenkins;
pub use keys::{KeyColumn, is_header, read_key_column, without_bom};
pub use layout::{Layout, Row, RowShape};
pub use lines::{Line, Lines};
pub use object::member;
pub(crate) use ordered_parallel::process_in_order;
pub use source::{Damage, Source, is_compressed};
