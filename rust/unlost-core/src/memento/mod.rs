//! `TimeMap`s, mementos and their dates.

pub mod httpdate;
pub mod link_format;
pub mod list;
