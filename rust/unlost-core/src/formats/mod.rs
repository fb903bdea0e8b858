//! Files of indexes and archives, as bytes: what is read a billion times.

mod ahead;
pub mod httpdate;
mod keys;
mod layout;
mod lines;
pub mod linkformat;
mod object;
mod source;
pub mod warc;

pub use keys::{KeyColumn, is_header, read_key_column};
pub use layout::{Layout, Row};
pub use lines::{Line, Lines};
pub use object::member;
pub use source::{Damage, Source, is_compressed};
