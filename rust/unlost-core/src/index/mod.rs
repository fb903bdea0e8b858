//! Parses index files: CDX, CDXJ and URL lists.

mod keys;
mod layout;
mod object;
mod shape;

pub use keys::{KeyColumn, is_header, read_key_column, without_bom};
pub use layout::{Layout, Row, RowShape};
pub use object::member;
