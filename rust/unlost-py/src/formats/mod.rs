//! Bindings of `unlost_core::formats`.

mod linkformat;

use pyo3::prelude::*;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    linkformat::add_to(module)
}
