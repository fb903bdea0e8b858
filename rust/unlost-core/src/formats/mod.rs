//! Files of indexes and archives, as bytes: what is read a billion times.

mod ahead;
mod keys;
mod lines;
mod source;

pub use keys::{KeyColumn, is_header, read_key_column};
pub use lines::{Line, Lines};
pub use source::{Damage, Source};
