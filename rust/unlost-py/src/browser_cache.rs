//! Formats of browser caches: bodies in zstd, and the hash of Firefox's cache.

use std::io::{Cursor, Read};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use unlost_core::input::Damage;
use unlost_core::input::Source;

/// The maximum size of a read; larger requests return less, as with a pipe.
const MAX_READ: usize = 1 << 20;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Inflated>()?;
    module.add_function(wrap_pyfunction!(jenkins, module)?)
}

/// The text of compressed bytes, gzip or zstd: Inflated(data).
#[pyclass(frozen, module = "unlost._core")]
struct Inflated {
    source: Mutex<Source<Cursor<Vec<u8>>>>,
}

#[pymethods]
impl Inflated {
    #[new]
    fn new(data: Vec<u8>) -> PyResult<Self> {
        if !unlost_core::input::is_compressed(&data) {
            return Err(PyValueError::new_err("neither gzip nor zstd"));
        }
        Ok(Self {
            source: Mutex::new(Source::new(Cursor::new(data))?),
        })
    }

    fn read<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyBytes>> {
        let text = py.detach(|| {
            let mut buffer = vec![0; count.min(MAX_READ)];
            let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
            let read = source.read(&mut buffer)?;
            buffer.truncate(read);
            Ok::<_, std::io::Error>(buffer)
        })?;
        Ok(PyBytes::new(py, &text))
    }

    #[getter]
    fn damage(&self) -> Option<&'static str> {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        source.damage().map(Damage::kind)
    }
}

#[pyfunction]
fn jenkins(data: &[u8]) -> u32 {
    unlost_core::checksum::jenkins(data)
}
