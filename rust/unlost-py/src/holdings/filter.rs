//! Bindings of filters.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList};
use unlost_core::formats::{Damage, Layout};
use unlost_core::holdings::filter::{
    self, DateRange, FilterError, Header, KeyKind, has_each, has_each_line, has_each_uri,
};
use unlost_core::holdings::{HoldingsError, MapReader, Tally};
use unlost_core::mapping::Mapping;
use unlost_core::texts::Texts;

use super::build::{Progress, RowColumns, open, row};
use super::convert::{self, PyTally, raise};
use crate::errors::{raise_input, raise_uri, raise_usage, uri_error};
use crate::texts::{for_each_text, text};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<FilterFile>()?;
    module.add_class::<FilterBuilder>()?;
    module.add_function(wrap_pyfunction!(filter_partitions_of, module)?)?;
    module.add_function(wrap_pyfunction!(make_filter_partitions, module)?)?;
    module.add_function(wrap_pyfunction!(filter_head, module)?)
}

/// How many partitions a filter of so many keys has.
#[pyfunction]
fn filter_partitions_of(keys: u64) -> u64 {
    filter::partitions_of(keys)
}

/// Makes the partitions from `first` up to `end` of all hashes that belong to them. Returns their entries of the directory,
/// and their bytes.
#[pyfunction]
fn make_filter_partitions(
    py: Python<'_>,
    hashes: &[u8],
    first: u64,
    end: u64,
    partitions: u64,
    bits: u8,
) -> (Vec<u8>, Vec<u8>) {
    py.detach(|| filter::make_partitions(hashes, first..end, partitions, bits))
}

/// What stands before the partitions of a filter, `bytes` long together.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn filter_head(
    py: Python<'_>,
    rules: &str,
    queries: bool,
    bits: u8,
    keys: u64,
    dates: Option<(String, String)>,
    made: Option<String>,
    chosen: [Option<String>; 3],
    directory: &[u8],
    bytes: u64,
) -> PyResult<Vec<u8>> {
    let rules = rules
        .parse()
        .map_err(|error| raise_usage(py, format!("{rules}: {error}")))?;
    let dates = dates.and_then(|(first, last)| DateRange::of(first.as_bytes(), last.as_bytes()));
    let header = Header {
        kind: if queries {
            KeyKind::Urir
        } else {
            KeyKind::Hxpx
        },
        rules,
        bits,
        keys,
        dates: dates.unwrap_or_default(),
        made: made.map(String::into_bytes),
        chosen,
    };
    Ok(filter::filter_head(&header, directory, bytes))
}

/// Key kind, rules, bits, keys; first and last date; when it was made; statuses, media types, pages left out.
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
fn digits(dates: &DateRange) -> Option<(String, String)> {
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
            .made
            .as_deref()
            .map(|date| String::from_utf8_lossy(date).into_owned()),
        header.chosen.clone(),
    )
}

/// A filter to ask. Thread-safe; others run while it searches, but for one key in memory, which takes less time than that.
#[pyclass(frozen, module = "unlost._core")]
pub struct FilterFile(filter::Filter<Bytes>);

/// The bytes of a filter.
enum Bytes {
    /// Where they lie.
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
    /// Whether it has a normal key; nothing if it turns out to be damaged.
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

    /// What the layers say about themselves, the oldest first.
    #[getter]
    fn layers(&self) -> Vec<PyLayer> {
        self.0.headers().map(layer).collect()
    }

    /// Reads everything; returns what is damaged.
    fn check(&self, py: Python<'_>) -> Vec<String> {
        let damage = py.detach(|| self.0.check());
        damage.iter().map(ToString::to_string).collect()
    }

    fn lookup(&self, uri: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = uri.py();
        let hash = self
            .0
            .kind()
            .hash_uri(&text(uri)?, self.0.rules(), &mut Vec::new())
            .map_err(|error| raise_uri(py, &error))?;
        py.detach(|| self.0.has(hash))
            .map_err(|error| refuse(py, &error))
    }

    #[pyo3(signature = (uris, threads=None))]
    fn lookup_many<'py>(
        &self,
        uris: &Bound<'py, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = uris.py();
        let mut texts = Texts::default();
        for_each_text(uris, |text| texts.push(text))?;
        let questions: Vec<&[u8]> = texts.iter().collect();
        let answers = py
            .detach(|| has_each_uri(&self.0, &questions, threads_or_all(threads)))
            .map_err(|error| refuse(py, &error))?;
        let found = PyList::empty(py);
        for answer in answers {
            match answer {
                Ok(held) => found.append(PyBool::new(py, held))?,
                Err(error) => found.append(uri_error(py, &error)?)?,
            }
        }
        Ok(found)
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
        let answers = py
            .detach(|| has_each(&self.0, &hashes, threads_or_all(threads)))
            .map_err(|error| refuse(py, &error))?;
        PyList::new(py, answers)
    }

    /// For keys in one text, one on each line.
    #[pyo3(signature = (lines, threads=None))]
    fn lookup_key_lines<'py>(
        &self,
        py: Python<'py>,
        lines: &[u8],
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let answers = py
            .detach(|| has_each_line(&self.0, lines, threads_or_all(threads)))
            .map_err(|error| refuse(py, &error))?;
        PyList::new(py, answers)
    }
}

/// Takes the keys of what indexes hold, then writes a filter of them, once. Fed as MapBuilder is.
#[pyclass(frozen, module = "unlost._core")]
struct FilterBuilder {
    builder: Mutex<Option<filter::FilterBuilder>>,
    has_queries: bool,
}

impl FilterBuilder {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut filter::FilterBuilder) -> Result<T, HoldingsError> + Send,
    ) -> PyResult<T> {
        let result = py.detach(|| {
            let mut builder = self.builder.lock().unwrap_or_else(PoisonError::into_inner);
            builder.as_mut().map(work)
        });
        match result {
            Some(result) => result.map_err(|error| raise(py, error)),
            None => Err(PyValueError::new_err(WRITTEN)),
        }
    }
}

const WRITTEN: &str = "the filter was written already";

#[pymethods]
impl FilterBuilder {
    #[new]
    #[pyo3(signature = (*, rules, queries, status, mime, exclude, line_limit, threads=None, memory=None, block=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        rules: &str,
        queries: bool,
        status: Vec<Vec<u8>>,
        mime: Vec<Vec<u8>>,
        exclude: Vec<String>,
        line_limit: usize,
        threads: Option<usize>,
        memory: Option<usize>,
        block: Option<usize>,
    ) -> PyResult<Self> {
        let wanted = convert::wanted(rules, queries, false, status, mime, &exclude)?;
        let effort = convert::effort(line_limit, threads, memory, block);
        Ok(Self {
            builder: Mutex::new(Some(filter::FilterBuilder::new(wanted, effort))),
            has_queries: queries,
        })
    }

    /// Takes the rows of an index, or with `urls` the addresses of a list, in a column from 0 of a table if one is given.
    #[pyo3(signature = (path, progress, urls=false, column=None))]
    fn add_file(
        &self,
        py: Python<'_>,
        path: PathBuf,
        progress: &Progress,
        urls: bool,
        column: Option<usize>,
    ) -> PyResult<(PyTally, Option<&'static str>)> {
        let layout = urls.then_some(Layout::Urls { column });
        let (tally, damage) = self.with(py, |builder| {
            builder.add_file(File::open(path)?, layout, &progress.0)
        })?;
        Ok((convert::tally(tally), damage.map(Damage::kind)))
    }

    /// Takes rows that were read elsewhere.
    fn add_rows(&self, py: Python<'_>, rows: Vec<RowColumns>) -> PyResult<PyTally> {
        let tally = self.with(py, |builder| {
            let mut tally = Tally::default();
            for columns in &rows {
                builder.add_row(&row(columns), &mut tally)?;
            }
            Ok(tally)
        })?;
        Ok(convert::tally(tally))
    }

    /// Takes the keys of a map that are held; whether exclusions are wanted makes no difference.
    fn add_map(
        &self,
        py: Python<'_>,
        path: PathBuf,
        fields: usize,
        line_limit: usize,
        _exclusions: bool,
        progress: &Progress,
    ) -> PyResult<PyTally> {
        if self.has_queries {
            let message =
                "the keys of a map have no queries: ask for --key hxpx, or give the index";
            return Err(raise_input(py, message.to_owned()));
        }
        let tally = self.with(py, |builder| {
            let mut reader =
                MapReader::watched(File::open(path)?, fields, line_limit, &progress.0)?;
            reader.any_order = true;
            builder.add_map(&mut reader, &progress.0)?;
            Ok(std::mem::take(&mut reader.tally))
        })?;
        Ok(convert::tally(tally))
    }

    /// Takes what `write_hashes` of another builder wrote, or some of it.
    fn add_hashes(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        self.with(py, |builder| builder.add_hashes(bytes))
    }

    /// Writes the hashes of all keys to a file that is there already: in order, each once, 8 bytes each. Returns how many
    /// there are, and the dates of the first and the last capture.
    fn write_hashes(
        &self,
        py: Python<'_>,
        path: PathBuf,
        progress: &Progress,
    ) -> PyResult<(u64, Option<(String, String)>)> {
        let builder = self
            .builder
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(builder) = builder else {
            return Err(PyValueError::new_err(WRITTEN));
        };
        let result = py.detach(|| {
            let mut out = open(&path)?;
            let found = builder.write_hashes(&mut out, &progress.0)?;
            out.flush()?;
            Ok(found)
        });
        let (count, dates) = result.map_err(|error| raise(py, error))?;
        Ok((count, digits(&dates)))
    }

    /// Writes the filter to a file that is there already, behind its base if it has one. Returns how many keys the new
    /// layer has, and how many bytes were written.
    #[allow(clippy::too_many_arguments)]
    fn write(
        &self,
        py: Python<'_>,
        path: PathBuf,
        bits: u8,
        made: Option<String>,
        chosen: [Option<String>; 3],
        base: Option<&FilterFile>,
        progress: &Progress,
    ) -> PyResult<(u64, u64)> {
        let builder = self
            .builder
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(builder) = builder else {
            return Err(PyValueError::new_err(WRITTEN));
        };
        let header = Header {
            bits,
            made: made.map(String::into_bytes),
            chosen,
            ..Header::default()
        };
        py.detach(|| {
            let mut file = OpenOptions::new().write(true).open(path)?;
            builder.write(header, base.map(|base| &base.0), &mut file, &progress.0)
        })
        .map_err(|error| raise(py, error))
    }
}
