//! `unlost._core`: the Python bindings of unlost-core. Conversions only; semantics are documented there and in
//! `_core.pyi`.

mod errors;
mod formats;
mod html;
mod mementomap;
mod refresh;
mod rewriting;
mod texts;
mod uri;
mod vault;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    uri::add_to(module)?;
    formats::add_to(module)?;
    mementomap::add_to(module)?;
    html::add_to(module)?;
    refresh::add_to(module)?;
    vault::add_to(module)
}
