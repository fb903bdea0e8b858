//! Bindings of the readers of index files.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use unlost_core::formats::{Damage, Lines, Source, read_key_column};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LineReader>()?;
    module.add_class::<KeyColumn>()?;
    module.add_function(wrap_pyfunction!(inflated_length, module)?)?;
    module.add_function(wrap_pyfunction!(key_column, module)?)
}

/// Bytes per batch, more or less: lines may be long, and many of them must not be held at once.
const BATCH_BYTES: usize = 1 << 20;

/// The lines of a plain, gzip or zstd file: LineReader(path, limit).
#[pyclass(frozen, module = "unlost._core")]
struct LineReader {
    // Threads take turns; what they share is only ever one batch apart.
    lines: Mutex<Lines>,
}

#[pymethods]
impl LineReader {
    #[new]
    fn new(path: PathBuf, limit: usize) -> PyResult<Self> {
        let source = Source::new(File::open(path)?)?;
        Ok(Self {
            lines: Mutex::new(Lines::new(source, limit)),
        })
    }

    fn batch<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyList>> {
        let batch = PyList::empty(py);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held = 0;
        while batch.len() < count && held < BATCH_BYTES {
            let Some(line) = lines.next_line()? else {
                break;
            };
            let text = PyBytes::new(py, line.text);
            held += line.text.len();
            batch.append((line.number, line.offset, text, line.too_long))?;
        }
        Ok(batch)
    }

    #[getter]
    fn damage(&self) -> Option<&'static str> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.damage().map(Damage::kind)
    }
}

/// Reads a file through the decompressor and throws it away: the baseline of the benches.
#[pyfunction]
fn inflated_length(py: Python<'_>, path: PathBuf) -> PyResult<u64> {
    Ok(py.detach(|| {
        let mut source = Source::new(File::open(path)?)?;
        let mut buffer = vec![0; 256 << 10];
        let mut total = 0;
        loop {
            match source.read(&mut buffer)? {
                0 => return Ok::<u64, std::io::Error>(total),
                read => total += read as u64,
            }
        }
    })?)
}

#[pyclass(frozen, get_all, module = "unlost._core")]
struct KeyColumn {
    rows: u64,
    keys: u64,
    first_unsorted: Option<u64>,
    damage: Option<&'static str>,
}

#[pyfunction]
fn key_column(py: Python<'_>, path: PathBuf, limit: usize) -> PyResult<KeyColumn> {
    let column = py.detach(|| read_key_column(File::open(path)?, limit))?;
    Ok(KeyColumn {
        rows: column.rows,
        keys: column.keys,
        first_unsorted: column.first_unsorted,
        damage: column.damage.map(Damage::kind),
    })
}
