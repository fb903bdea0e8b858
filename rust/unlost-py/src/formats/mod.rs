//! Bindings of `unlost_core::formats`.

mod counted;
mod index;
mod linkformat;
mod listing;
mod mementos;
mod stored;
mod warc;

use pyo3::prelude::*;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    index::add_to(module)?;
    linkformat::add_to(module)?;
    listing::add_to(module)?;
    mementos::add_to(module)?;
    stored::add_to(module)?;
    warc::add_to(module)
}
