//! Files of indexes and archives, as bytes: what is read a billion times.

pub mod warc;
