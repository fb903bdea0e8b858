//! Erasure-coded blocks, and signatures on them. `docs/vault-format.md` specifies the code to the bit.

mod code;
mod signature;

pub use code::{CodeError, MAX_BLOCKS, decode, encode, spare_bytes};
pub use signature::{is_signed, public_key, sign};
