//! Bindings of `unlost_core::vault`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use unlost_core::vault;

use crate::errors::raise_input;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MAX_VAULT_BLOCKS", vault::MAX_BLOCKS)?;
    module.add_function(wrap_pyfunction!(encode_rows, module)?)?;
    module.add_function(wrap_pyfunction!(decode_rows, module)?)?;
    module.add_function(wrap_pyfunction!(signing_public_key, module)?)?;
    module.add_function(wrap_pyfunction!(sign, module)?)?;
    module.add_function(wrap_pyfunction!(is_signed, module)?)
}

#[pyfunction]
fn encode_rows<'py>(
    py: Python<'py>,
    rows: &[u8],
    needed: usize,
    count: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let raised = |error: vault::CodeError| raise_input(py, error.to_string());
    let length = vault::spare_bytes(rows, needed, count).map_err(raised)?;
    PyBytes::new_with(py, length, |made| {
        py.detach(|| vault::encode(rows, needed, count, made))
            .map_err(raised)
    })
}

#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // the arguments are converted from Python lists
fn decode_rows<'py>(
    py: Python<'py>,
    rows: &[u8],
    indices: Vec<usize>,
    needed: usize,
    count: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, rows.len(), |made| {
        py.detach(|| vault::decode(rows, &indices, needed, count, made))
            .map_err(|error| raise_input(py, error.to_string()))
    })
}

#[pyfunction]
fn signing_public_key(py: Python<'_>, seed: [u8; 32]) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &vault::public_key(seed))
}

#[pyfunction]
fn sign<'py>(py: Python<'py>, seed: [u8; 32], message: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &vault::sign(seed, message))
}

#[pyfunction]
fn is_signed(public_key: [u8; 32], message: &[u8], signature: [u8; 64]) -> bool {
    vault::is_signed(public_key, message, signature)
}
