//! Bindings of map look-up.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use unlost_core::input::Damage;
use unlost_core::input::Lines;
use unlost_core::input::Source;
use unlost_core::input::is_compressed;
use unlost_core::mapping::Mapping;
use unlost_core::mementomap::key_lines::key_lines;
use unlost_core::mementomap::lookup::{
    Layout, MemoryMapBuilder, QueryKind, SearchableMap, TextMap, check_first_row, header_end,
    query_one, with_workers,
};
use unlost_core::mementomap::wrong_row_bytes;
use unlost_core::string_arena::StringArena;

use super::lookup_result::LookupResult;
use super::lookup_results::LookupResults;
use crate::errors::{raise_input, raise_uri, raise_usage};
use crate::texts::{next_texts, text};
use crate::uri::rule_set;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<MapSource>()?;
    module.add_function(wrap_pyfunction!(py_wrong_row_bytes, module)?)?;
    module.add_class::<MapRows>()
}

enum Opened {
    Mapped(Mapping),
    Streamed {
        lines: Box<Lines>,
        first: Option<(u64, Vec<u8>)>,
        max_bytes: u64,
    },
}

/// The message about a map whose rows have another size than its header declares.
#[pyfunction(name = "wrong_row_bytes")]
fn py_wrong_row_bytes(declared: u64, actual: u64) -> String {
    wrong_row_bytes(declared, actual)
}

/// A map with its header: MapSource.open(path) maps the file, MapSource.load(path, limit) reads it, up to a maximum
/// text size.
#[pyclass(frozen, module = "unlost._core")]
struct MapSource {
    header: Vec<u8>,
    /// The size of the rows; `None` if the file is compressed or is not a regular file.
    #[pyo3(get)]
    row_bytes: Option<u64>,
    /// Whether the last line is terminated, as far as known.
    #[pyo3(get)]
    has_line_end: bool,
    opened: Mutex<Option<Opened>>,
}

impl MapSource {
    fn new(header: Vec<u8>, row_bytes: Option<u64>, has_line_end: bool, opened: Opened) -> Self {
        Self {
            header,
            row_bytes,
            has_line_end,
            opened: Mutex::new(Some(opened)),
        }
    }
}

#[pymethods]
impl MapSource {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(raise_input(py, "not a regular file".to_owned()));
        }
        let mapping = Mapping::of(&file)?;
        let bytes = mapping.as_ref();
        if is_compressed(bytes) {
            let message = "compressed: decompress it first, or use Map.load, which reads it";
            return Err(raise_input(py, message.to_owned()));
        }
        let end = py.detach(|| header_end(bytes));
        let row = bytes[end..].split(|&byte| byte == b'\n').next();
        check_first_row(&bytes[..end], row.filter(|_| end < bytes.len()))
            .map_err(|problem| raise_input(py, problem.to_string()))?;
        let header = bytes[..end].to_vec();
        let row_bytes = (bytes.len() - end) as u64;
        let has_line_end = bytes.ends_with(b"\n");
        let opened = Opened::Mapped(mapping);
        Ok(Self::new(header, Some(row_bytes), has_line_end, opened))
    }

    #[staticmethod]
    #[pyo3(signature = (path, limit, max_bytes=None))]
    fn load(py: Python<'_>, path: PathBuf, limit: usize, max_bytes: Option<u64>) -> PyResult<Self> {
        let max_bytes = max_bytes.unwrap_or(u64::MAX);
        let file = File::open(path)?;
        let end = end_of(&file)?;
        let source = Source::new(file)?;
        let end = end.filter(|_| !source.is_compressed());
        let mut lines = Box::new(Lines::new(source, limit));
        let mut header = Vec::new();
        let mut first = None;
        while let Some(line) = lines.next_line()? {
            let end = header_end(line.text);
            if exceeds_limit(max_bytes, line.offset, line.text) {
                return Err(raise_input(py, TooLarge(max_bytes).to_string()));
            }
            if end < line.text.len() {
                first = Some((line.offset, line.text[end..].to_vec()));
                break;
            }
            header.extend_from_slice(line.text);
            header.push(b'\n');
        }
        if first.is_none() {
            check_damage(py, &lines)?;
        }
        check_first_row(&header, first.as_ref().map(|(_, row)| row.as_slice()))
            .map_err(|problem| raise_input(py, problem.to_string()))?;
        let start = first
            .as_ref()
            .map_or_else(|| lines.offset(), |&(offset, _)| offset);
        let row_bytes = end.map(|(size, _)| size.saturating_sub(start));
        let has_line_end = end.is_none_or(|(_, has_line_end)| has_line_end);
        let opened = Opened::Streamed {
            lines,
            first,
            max_bytes,
        };
        Ok(Self::new(header, row_bytes, has_line_end, opened))
    }

    #[getter]
    fn header<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.header)
    }

    /// The rows, once; `frequency` is the number of that field, the key being 0. `row_bytes` is the declared size,
    /// which is checked for streams.
    #[pyo3(signature = (frequency, is_rolled_up, row_bytes=None))]
    fn rows(
        &self,
        py: Python<'_>,
        frequency: Option<usize>,
        is_rolled_up: bool,
        row_bytes: Option<u64>,
    ) -> PyResult<MapRows> {
        let layout = Layout {
            frequency,
            is_rolled_up,
        };
        let opened = {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            opened.take()
        };
        let form = match opened {
            None => return Err(raise_usage(py, "the rows were taken before".to_owned())),
            Some(Opened::Mapped(mapping)) => SearchableMap::Text(TextMap::new(mapping, layout)),
            Some(Opened::Streamed {
                mut lines,
                first,
                max_bytes,
            }) => {
                let mut builder = MemoryMapBuilder::new(layout);
                let start = first
                    .as_ref()
                    .map_or_else(|| lines.offset(), |&(offset, _)| offset);
                py.detach(|| push_all(&mut builder, first, &mut lines, max_bytes))?
                    .map_err(|problem| raise_input(py, problem))?;
                check_damage(py, &lines)?;
                let actual = lines.offset() - start;
                if let Some(declared) = row_bytes.filter(|&declared| declared != actual) {
                    return Err(raise_input(py, wrong_row_bytes(declared, actual)));
                }
                SearchableMap::Memory(py.detach(|| builder.finish()))
            }
        };
        Ok(MapRows { form })
    }
}

/// The length of a regular file, and whether its last line is terminated. `None` for pipes and devices.
fn end_of(file: &File) -> io::Result<Option<(u64, bool)>> {
    let about = file.metadata()?;
    if !about.is_file() {
        return Ok(None);
    }
    let mut last = [0];
    let has_line_end = match about.len().checked_sub(1) {
        Some(place) => file.read_at(&mut last, place)? == 1 && last[0] == b'\n',
        None => false,
    };
    Ok(Some((about.len(), has_line_end)))
}

fn push_all(
    builder: &mut MemoryMapBuilder,
    first: Option<(u64, Vec<u8>)>,
    lines: &mut Lines,
    max_bytes: u64,
) -> std::io::Result<Result<(), String>> {
    if let Some((offset, row)) = first {
        if let Err(error) = builder.push(&row, offset) {
            return Ok(Err(error.to_string()));
        }
    }
    while let Some(line) = lines.next_line()? {
        if exceeds_limit(max_bytes, line.offset, line.text) {
            return Ok(Err(TooLarge(max_bytes).to_string()));
        }
        if let Err(error) = builder.push(line.text, line.offset) {
            return Ok(Err(error.to_string()));
        }
    }
    Ok(Ok(()))
}

/// Whether an uncompressed line ends after the last allowed byte.
fn exceeds_limit(max_bytes: u64, offset: u64, text: &[u8]) -> bool {
    offset.saturating_add(text.len() as u64) > max_bytes
}

/// The map exceeds the maximum text size: compressed files may be of any size.
struct TooLarge(u64);

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a map of more than {} bytes", self.0)
    }
}

/// A truncated map is not usable: its missing keys would count as not held.
fn check_damage(py: Python<'_>, lines: &Lines) -> PyResult<()> {
    let message = match lines.damage() {
        None => return Ok(()),
        Some(Damage::Truncated) => "the compressed file ends in the middle: get it again",
        Some(Damage::Corrupt) => "the compressed data is damaged: get it again",
        Some(Damage::TrailingGarbage) => "there are bytes behind the end of the compressed data",
    };
    Err(raise_input(py, message.to_owned()))
}

/// A map for look-ups. Thread-safe; releases the GIL.
#[pyclass(frozen, module = "unlost._core")]
pub struct MapRows {
    form: SearchableMap<Mapping>,
}

impl MapRows {
    /// Whether the row that matches a normalized key is held, and is a wildcard; the inner `None` means no match, the
    /// outer one unsorted rows.
    pub fn find(&self, key: &[u8]) -> Option<Option<(bool, bool)>> {
        let results = query_one(&self.form, key, QueryKind::Keys).ok()?;
        let result = results.get(0).ok()?;
        let found = result.matched;
        Some(found.map(|(matched, frequency)| (frequency.is_held(), matched.ends_with(b"*"))))
    }

    fn query_many(
        &self,
        py: Python<'_>,
        kind: QueryKind,
        threads: Option<usize>,
        mut queries: impl FnMut(usize) -> PyResult<StringArena>,
    ) -> PyResult<LookupResults> {
        let threads = threads.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
        with_workers(&self.form, kind, threads, |mut pool| {
            loop {
                let count = pool.block();
                let block = queries(count)?;
                let is_last = block.len() < count;
                py.detach(|| pool.submit(block));
                if is_last {
                    break;
                }
            }
            py.detach(|| pool.finish())
                .map(LookupResults::new)
                .map_err(|error| raise_input(py, error.to_string()))
        })
    }
}

#[pymethods]
impl MapRows {
    fn lookup(&self, uri: &Bound<'_, PyAny>, rules: &str) -> PyResult<LookupResult> {
        let py = uri.py();
        let kind = QueryKind::Uris(rule_set(py, rules)?);
        let query = text(uri)?;
        let results = py
            .detach(|| query_one(&self.form, &query, kind))
            .map_err(|error| raise_input(py, error.to_string()))?;
        LookupResult::of(&Arc::new(results), 0).map_err(|error| raise_uri(py, error))
    }

    /// For one normalized key. In memory that takes less time than releasing the GIL.
    fn lookup_key(&self, key: &Bound<'_, PyAny>) -> PyResult<LookupResult> {
        let py = key.py();
        let query = text(key)?;
        let results = match &self.form {
            SearchableMap::Memory(_) => query_one(&self.form, &query, QueryKind::Keys),
            SearchableMap::Text(_) => py.detach(|| query_one(&self.form, &query, QueryKind::Keys)),
        }
        .map_err(|error| raise_input(py, error.to_string()))?;
        LookupResult::of(&Arc::new(results), 0).map_err(|error| raise_uri(py, error))
    }

    #[pyo3(signature = (uris, rules, threads=None))]
    fn lookup_many(
        &self,
        uris: &Bound<'_, PyAny>,
        rules: &str,
        threads: Option<usize>,
    ) -> PyResult<LookupResults> {
        let rules = rule_set(uris.py(), rules)?;
        let mut uris = uris.try_iter()?;
        self.query_many(uris.py(), QueryKind::Uris(rules), threads, |count| {
            next_texts(&mut uris, count)
        })
    }

    #[pyo3(signature = (keys, threads=None))]
    fn lookup_keys_many(
        &self,
        keys: &Bound<'_, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<LookupResults> {
        let mut keys = keys.try_iter()?;
        self.query_many(keys.py(), QueryKind::Keys, threads, |count| {
            next_texts(&mut keys, count)
        })
    }

    /// For keys in one text, one per line.
    #[pyo3(signature = (lines, threads=None))]
    fn lookup_key_lines(
        &self,
        py: Python<'_>,
        lines: &[u8],
        threads: Option<usize>,
    ) -> PyResult<LookupResults> {
        let mut keys = key_lines(lines);
        self.query_many(py, QueryKind::Keys, threads, |count| {
            Ok(keys.by_ref().take(count).collect())
        })
    }
}
