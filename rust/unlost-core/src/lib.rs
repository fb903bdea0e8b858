//! The core of unlost: what is done a billion times or byte by byte.
//!
//! Nothing here knows Python, the network or a file's name. The crate `unlost-py` binds it; every function has
//! a slow Python model in `tests/models/`, or properties in the tests, that it must agree with on random input.

#[cfg(test)]
mod dice;
pub mod formats;
pub mod holdings;
pub mod mapping;
pub mod pages;
pub mod refresh;
pub mod texts;
pub mod uri;
pub mod vault;
