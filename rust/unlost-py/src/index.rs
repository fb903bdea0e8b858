//! Bindings of the readers of index files.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use unlost_core::index::read_key_column;
use unlost_core::input::Damage;
use unlost_core::input::Lines;
use unlost_core::input::Source;

use crate::counted_file::{Counted, Counter};

/// The maximum bytes of text per batch: lines may be long, and batches are in memory.
const BATCH_BYTES: usize = 1 << 20;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LineReader>()?;
    module.add_class::<KeyColumn>()?;
    module.add_function(wrap_pyfunction!(inflated_length, module)?)?;
    module.add_function(wrap_pyfunction!(is_compressed, module)?)?;
    module.add_function(wrap_pyfunction!(key_column, module)?)?;
    module.add_function(wrap_pyfunction!(sha256_hex, module)?)
}

/// The lines of a plain, gzip or zstd file: LineReader(path, limit).
#[pyclass(frozen, module = "unlost._core")]
struct LineReader {
    // Threads alternate; each holds the lock for one batch.
    lines: Mutex<Lines>,
    read: Counter,
}

#[pymethods]
impl LineReader {
    #[new]
    fn new(path: PathBuf, limit: usize) -> PyResult<Self> {
        let file = Counted::new(File::open(path)?, 0);
        let read = file.counter();
        Ok(Self {
            lines: Mutex::new(Lines::new(Source::new(file)?, limit)),
            read,
        })
    }

    fn batch<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyList>> {
        let batch = PyList::empty(py);
        let (text, lines) = py.detach(|| self.next_lines(count))?;
        let mut rest = text.as_slice();
        for (number, offset, length, too_long, is_cut) in lines {
            let (text, after) = rest.split_at(length);
            rest = after;
            batch.append((number, offset, PyBytes::new(py, text), too_long, is_cut))?;
        }
        Ok(batch)
    }

    /// The number of stored bytes of the file that were read so far.
    #[getter]
    fn position(&self) -> u64 {
        self.read.get()
    }

    #[getter]
    fn damage(&self) -> Option<&'static str> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.damage().map(Damage::kind)
    }
}

type Placed = (u64, u64, usize, bool, bool);

impl LineReader {
    /// A batch of lines: their concatenated text, and for each its number, offset, length, and whether it is too long
    /// or cut.
    fn next_lines(&self, count: usize) -> std::io::Result<(Vec<u8>, Vec<Placed>)> {
        let (mut text, mut placed) = (Vec::new(), Vec::new());
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        while placed.len() < count && text.len() < BATCH_BYTES {
            let Some(line) = lines.next_line()? else {
                break;
            };
            text.extend_from_slice(line.text);
            let length = line.text.len();
            placed.push((line.number, line.offset, length, line.too_long, line.is_cut));
        }
        Ok((text, placed))
    }
}

#[pyfunction]
fn is_compressed(head: &[u8]) -> bool {
    unlost_core::input::is_compressed(head)
}

/// Returns the SHA-256 digest of data as hexadecimal digits. Importing hashlib takes longer than the digest.
#[pyfunction]
fn sha256_hex(py: Python<'_>, data: &[u8]) -> String {
    py.detach(|| unlost_core::checksum::sha256_hex(data))
}

/// Decompresses a file and discards the text: the baseline of the benchmarks.
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
    skipped: u64,
    keys: u64,
    first_unsorted: Option<u64>,
    damage: Option<&'static str>,
}

#[pyfunction]
fn key_column(py: Python<'_>, path: PathBuf, limit: usize) -> PyResult<KeyColumn> {
    let column = py.detach(|| read_key_column(File::open(path)?, limit))?;
    Ok(KeyColumn {
        rows: column.rows,
        skipped: column.skipped,
        keys: column.keys,
        first_unsorted: column.first_unsorted,
        damage: column.damage.map(Damage::kind),
    })
}
