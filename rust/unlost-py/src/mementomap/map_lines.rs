//! Bindings of map lines that are exchanged between machines.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use unlost_core::mementomap;

use super::convert::{self, PyLineStats, raise};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(split_lines, module)?)?;
    module.add_function(wrap_pyfunction!(read_map_lines, module)?)?;
    module.add_function(wrap_pyfunction!(add_totals, module)?)
}

/// Splits lines by bounds: the number of the part, and its lines.
#[pyfunction]
fn split_lines<'py>(
    py: Python<'py>,
    text: &[u8],
    bounds: Vec<Vec<u8>>,
    pages: bool,
) -> Vec<(usize, Bound<'py, PyBytes>)> {
    let parts = py.detach(|| mementomap::split_lines(text, &bounds, pages));
    let parts = parts.into_iter();
    parts
        .map(|(part, lines)| (part, PyBytes::new(py, &lines)))
        .collect()
}

/// A piece of a sorted map: lines without totals, totals, sums, and line statistics.
type PyMapLines<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    PyLineStats,
);

/// Parses a piece of a sorted map.
#[pyfunction]
fn read_map_lines(
    py: Python<'_>,
    text: Vec<u8>,
    fields: usize,
    line_limit: usize,
) -> PyResult<PyMapLines<'_>> {
    let map_lines = py
        .detach(|| mementomap::read_map_lines(text, fields, line_limit))
        .map_err(|error| raise(py, error))?;
    Ok((
        PyBytes::new(py, &map_lines.lines),
        PyBytes::new(py, &map_lines.totals),
        PyBytes::new(py, &map_lines.sums),
        convert::line_stats(map_lines.line_stats),
    ))
}

/// Adds up `*` lines.
#[pyfunction]
fn add_totals<'py>(py: Python<'py>, text: &[u8], fields: usize) -> PyResult<Bound<'py, PyBytes>> {
    let sum = mementomap::add_totals(text, fields).map_err(|error| raise(py, error))?;
    Ok(PyBytes::new(py, &sum))
}
