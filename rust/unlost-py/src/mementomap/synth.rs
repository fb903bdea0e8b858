//! Binding of the generator of synthetic indexes.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use unlost_core::mementomap::synth::{Packing, RejectedLines, Settings, UrlList, write_index};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SynthUrls>()?;
    module.add_function(wrap_pyfunction!(write_synthetic_index, module)?)
}

/// The URLs of a list: SynthUrls(path, column).
#[pyclass(frozen, module = "unlost._core")]
struct SynthUrls(UrlList);

#[pymethods]
impl SynthUrls {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, column: Option<usize>) -> PyResult<Self> {
        let list = py.detach(|| UrlList::read(File::open(path)?, column))?;
        Ok(Self(list))
    }

    #[getter]
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[getter]
    fn rejected(&self) -> Vec<(&'static str, u64, u64, u64, String)> {
        let row = |each: &RejectedLines| {
            let message = each.message.clone();
            (each.kind, each.count, each.number, each.offset, message)
        };
        self.0.rejected().iter().map(row).collect()
    }
}

/// Passes output to a Python function, and checks for Ctrl-C.
struct Callback(Py<PyAny>);

impl Write for Callback {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            py.check_signals()?;
            self.0.call1(py, (PyBytes::new(py, bytes),))
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[pyfunction]
#[pyo3(signature = (write, lines, seed, urls, largest_host, shuffled, packing))]
#[allow(clippy::too_many_arguments)] // the options of the command
fn write_synthetic_index(
    py: Python<'_>,
    write: Py<PyAny>,
    lines: u64,
    seed: u64,
    urls: Option<Py<SynthUrls>>,
    largest_host: Option<u64>,
    shuffled: bool,
    packing: &str,
) -> PyResult<()> {
    let packing = match packing {
        "gzip" => Packing::Gzip,
        "zstd" => Packing::Zstd,
        _ => Packing::Plain,
    };
    let settings = Settings {
        lines,
        seed,
        largest_host,
        is_shuffled: shuffled,
        packing,
    };
    let list = urls.as_ref().map(|urls| &urls.get().0);
    Ok(py.detach(|| write_index(&settings, list, Callback(write)))?)
}
