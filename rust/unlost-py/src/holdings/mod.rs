//! Bindings of `unlost_core::holdings`.

mod build;
mod convert;
mod profile;

use pyo3::prelude::*;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    build::add_to(module)?;
    profile::add_to(module)
}
