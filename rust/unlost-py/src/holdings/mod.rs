//! Bindings of `unlost_core::holdings`.

mod build;
mod convert;
mod synth;

use pyo3::prelude::*;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    build::add_to(module)?;
    synth::add_to(module)
}
