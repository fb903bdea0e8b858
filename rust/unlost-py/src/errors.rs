//! Converts the core's errors to the exceptions of `unlost.errors`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use unlost_core::uri::UriError;

static URI_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static FOREIGN_SCHEME_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static USAGE_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static INPUT_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static UNSORTED_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DATE_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static SUFFIX_LIST_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

const MODULE: &str = "unlost.errors";

/// An exception instance, to be raised or to represent an invalid URL in a list of results.
pub fn uri_error<'py>(py: Python<'py>, error: &UriError) -> PyResult<Bound<'py, PyAny>> {
    match error {
        UriError::Foreign { scheme } => FOREIGN_SCHEME_ERROR
            .import(py, MODULE, "ForeignSchemeError")?
            .call1((error.to_string(), error.kind(), scheme)),
        _ => URI_ERROR
            .import(py, MODULE, "UriError")?
            .call1((error.to_string(), error.kind())),
    }
}

pub fn raise_uri(py: Python<'_>, error: &UriError) -> PyErr {
    uri_error(py, error).map_or_else(|failure| failure, PyErr::from_value)
}

pub fn raise_usage(py: Python<'_>, message: String) -> PyErr {
    raise(py, &USAGE_ERROR, "UsageError", message)
}

pub fn raise_input(py: Python<'_>, message: String) -> PyErr {
    raise(py, &INPUT_ERROR, "InputError", message)
}

pub fn raise_unsorted(py: Python<'_>, message: String) -> PyErr {
    raise(py, &UNSORTED_ERROR, "UnsortedError", message)
}

pub fn raise_date(py: Python<'_>, message: String) -> PyErr {
    raise(py, &DATE_ERROR, "DateError", message)
}

pub fn raise_suffix_list(py: Python<'_>, message: String) -> PyErr {
    raise(py, &SUFFIX_LIST_ERROR, "SuffixListError", message)
}

fn raise(py: Python<'_>, kind: &PyOnceLock<Py<PyType>>, name: &str, message: String) -> PyErr {
    kind.import(py, MODULE, name)
        .and_then(|class| class.call1((message,)))
        .map_or_else(|failure| failure, PyErr::from_value)
}
