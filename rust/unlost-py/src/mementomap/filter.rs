//! Bindings of filter queries.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::thread::available_parallelism;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList};
use unlost_core::mapping::Mapping;
use unlost_core::mementomap::filter::{
    self, DateRange, FilterError, Header, contains_each, contains_each_line, contains_each_uri,
    contains_uri,
};
use unlost_core::string_arena::StringArena;

use crate::errors::{raise_input, raise_uri, uri_error};
use crate::texts::{for_each_text, text};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<FilterFile>()
}

/// Key kind, rules, bits, keys; first and last date; creation date; statuses, media types, excluded pages.
type PyLayer = (
    &'static str,
    &'static str,
    u8,
    u64,
    Option<(String, String)>,
    Option<String>,
    [Option<String>; 3],
);

/// The first and the last date, if there are any.
pub(super) fn digits(dates: &DateRange) -> Option<(String, String)> {
    let text = |date: &[u8]| String::from_utf8_lossy(date).into_owned();
    dates.get().map(|(first, last)| (text(first), text(last)))
}

fn layer(header: &Header) -> PyLayer {
    (
        header.kind.name(),
        header.rules.name(),
        header.bits,
        header.keys,
        digits(&header.dates),
        header
            .created
            .as_deref()
            .map(|date| String::from_utf8_lossy(date).into_owned()),
        header.selection.clone(),
    )
}

/// A filter for queries. Thread-safe; releases the GIL, except for one key in memory, which takes less time than that.
#[pyclass(frozen, module = "unlost._core")]
pub struct FilterFile(pub(super) filter::Filter<Bytes>);

/// The bytes of a filter.
pub(super) enum Bytes {
    /// Memory-mapped.
    Mapped(Mapping),
    /// In memory.
    Loaded(Vec<u8>),
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Mapped(mapping) => mapping.as_ref(),
            Self::Loaded(bytes) => bytes,
        }
    }
}

fn regular(py: Python<'_>, path: PathBuf) -> PyResult<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(raise_input(py, "not a regular file".to_owned()))
}

impl FilterFile {
    /// Whether it contains a normalized key; `None` if it is damaged.
    pub fn has(&self, key: &[u8]) -> Option<bool> {
        self.0.has(self.0.kind().hash_key(key)).ok()
    }

    fn is_loaded(&self) -> bool {
        matches!(self.0.source(), Bytes::Loaded(_))
    }
}

fn refuse(py: Python<'_>, error: &FilterError) -> PyErr {
    raise_input(py, error.to_string())
}

fn threads_or_all(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(|| available_parallelism().map_or(1, usize::from))
}

#[pymethods]
impl FilterFile {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let mapping = Mapping::of(&regular(py, path)?)?;
        let opened = py.detach(|| filter::Filter::open(Bytes::Mapped(mapping)));
        opened.map(Self).map_err(|error| refuse(py, &error))
    }

    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let mut file = regular(py, path)?;
        let opened = py.detach(|| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)
                .map(|_| filter::Filter::open(Bytes::Loaded(bytes)))
        })?;
        opened.map(Self).map_err(|error| refuse(py, &error))
    }

    /// The headers of the layers, oldest first.
    #[getter]
    fn layers(&self) -> Vec<PyLayer> {
        self.0.headers().map(layer).collect()
    }

    /// Verifies everything; returns the errors.
    fn check(&self, py: Python<'_>) -> Vec<String> {
        let damage = py.detach(|| self.0.check());
        damage.iter().map(ToString::to_string).collect()
    }

    fn lookup(&self, uri: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = uri.py();
        let query = text(uri)?;
        py.detach(|| contains_uri(&self.0, &query, &mut Vec::new()))
            .map_err(|error| refuse(py, &error))?
            .map_err(|error| raise_uri(py, &error))
    }

    #[pyo3(signature = (uris, threads=None))]
    fn lookup_many<'py>(
        &self,
        uris: &Bound<'py, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = uris.py();
        let mut texts = StringArena::default();
        for_each_text(uris, |text| texts.push(text))?;
        let queries: Vec<&[u8]> = texts.iter().collect();
        let query_results = py
            .detach(|| contains_each_uri(&self.0, &queries, threads_or_all(threads)))
            .map_err(|error| refuse(py, &error))?;
        let results = PyList::empty(py);
        for result in query_results {
            match result {
                Ok(held) => results.append(PyBool::new(py, held))?,
                Err(error) => results.append(uri_error(py, &error)?)?,
            }
        }
        Ok(results)
    }

    fn lookup_key(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = key.py();
        let hash = self.0.kind().hash_key(&text(key)?);
        if self.is_loaded() {
            self.0.has(hash)
        } else {
            py.detach(|| self.0.has(hash))
        }
        .map_err(|error| refuse(py, &error))
    }

    #[pyo3(signature = (keys, threads=None))]
    fn lookup_keys_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = keys.py();
        let kind = self.0.kind();
        let mut hashes = Vec::new();
        for_each_text(keys, |key| hashes.push(kind.hash_key(key)))?;
        let query_results = py
            .detach(|| contains_each(&self.0, &hashes, threads_or_all(threads)))
            .map_err(|error| refuse(py, &error))?;
        PyList::new(py, query_results)
    }

    /// For keys in one text, one per line.
    #[pyo3(signature = (lines, threads=None))]
    fn lookup_key_lines<'py>(
        &self,
        py: Python<'py>,
        lines: &[u8],
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let query_results = py
            .detach(|| contains_each_line(&self.0, lines, threads_or_all(threads)))
            .map_err(|error| refuse(py, &error))?;
        PyList::new(py, query_results)
    }
}
