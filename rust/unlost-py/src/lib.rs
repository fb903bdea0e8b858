//! `unlost._core`: the Python bindings of unlost-core. Conversions only; semantics are documented there and in
//! `_core.pyi`.

mod browser_cache;
mod counted_file;
mod errors;
mod html;
mod index;
mod link_format;
mod memento_listing;
mod mementomap;
mod mementos;
mod refresh;
mod rewriting;
mod texts;
mod uri;
mod vault;
mod warc;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    uri::add_to(module)?;
    index::add_to(module)?;
    link_format::add_to(module)?;
    memento_listing::add_to(module)?;
    mementos::add_to(module)?;
    browser_cache::add_to(module)?;
    warc::add_to(module)?;
    mementomap::add_to(module)?;
    html::add_to(module)?;
    refresh::add_to(module)?;
    vault::add_to(module)
}
