//! The core of unlost: everything that runs a billion times or byte by byte.
//!
//! It does not use Python, the network or file names. The crate `unlost-py` binds it. Every function has a slow Python
//! model in `tests/models/`, or properties in the tests, that it must agree with on random input.

pub mod checksum;
pub mod html;
pub mod index;
pub mod input;
pub mod mapping;
pub mod memento;
pub mod mementomap;
pub mod refresh;
pub mod string_arena;
#[cfg(test)]
mod test_rng;
pub mod uri;
pub mod vault;
pub mod warc;
