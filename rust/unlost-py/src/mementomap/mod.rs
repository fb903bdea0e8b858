//! Bindings of `unlost_core::mementomap`.

mod answer;
mod answers;
mod budget;
mod build;
mod convert;
mod cutting;
mod filter;
mod filter_builder;
mod lookup;
mod merge;
mod panel;
mod profile;
mod sketches;
mod stats;
mod stats_to_py;
mod synth;
mod take_once;

use pyo3::prelude::*;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    answer::add_to(module)?;
    answers::add_to(module)?;
    budget::add_to(module)?;
    build::add_to(module)?;
    cutting::add_to(module)?;
    filter::add_to(module)?;
    filter_builder::add_to(module)?;
    lookup::add_to(module)?;
    merge::add_to(module)?;
    panel::add_to(module)?;
    profile::add_to(module)?;
    sketches::add_to(module)?;
    stats::add_to(module)?;
    synth::add_to(module)
}
