//! Bindings of `unlost_core::holdings`.

mod synth;

use pyo3::prelude::*;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    synth::add_to(module)
}
