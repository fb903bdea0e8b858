//! Checksums of files.

mod digest;
mod jenkins;

pub use digest::sha256_hex;
pub use jenkins::jenkins;
