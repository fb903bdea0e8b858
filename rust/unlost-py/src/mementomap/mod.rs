//! Bindings of `unlost_core::mementomap`.

mod budget;
mod build;
mod convert;
mod filter;
mod filter_builder;
mod lookup;
mod lookup_result;
mod lookup_results;
mod map_lines;
mod merge;
mod multi_lookup;
mod profile;
mod sketches;
mod stats;
mod stats_to_py;
mod synth;
mod take_once;

use pyo3::prelude::*;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    lookup_result::add_to(module)?;
    lookup_results::add_to(module)?;
    budget::add_to(module)?;
    build::add_to(module)?;
    map_lines::add_to(module)?;
    filter::add_to(module)?;
    filter_builder::add_to(module)?;
    lookup::add_to(module)?;
    merge::add_to(module)?;
    multi_lookup::add_to(module)?;
    profile::add_to(module)?;
    sketches::add_to(module)?;
    stats::add_to(module)?;
    synth::add_to(module)
}
