//! Bindings of `unlost_core::holdings`.

mod answer;
mod lookup;

use pyo3::prelude::*;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    answer::add_to(module)?;
    lookup::add_to(module)
}
