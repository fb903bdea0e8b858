//! The core of unlost: what is done a billion times or byte by byte.
//!
//! Nothing here knows Python, the network or a file's name. The crate `unlost-py` binds it; every function has
//! a slow Python model in `tests/models/`, or properties in the tests, that it must agree with on random input.

pub mod formats;
pub mod html;
pub mod mapping;
pub mod mementomap;
pub mod refresh;
pub mod string_arena;
#[cfg(test)]
mod test_rng;
pub mod uri;
pub mod vault;
