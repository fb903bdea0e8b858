//! Bindings of `unlost_core::formats`.

pub mod warc;
