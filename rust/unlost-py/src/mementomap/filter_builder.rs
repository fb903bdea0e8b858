//! Bindings of filter building.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use pyo3::prelude::*;
use unlost_core::mementomap::filter::{self, DateRange, Header, KeyKind};
use unlost_core::mementomap::{LineStats, MapReader};

use super::build::{Progress, RowColumns, open, row};
use super::convert::{self, PyLineStats, raise};
use super::filter::{FilterFile, digits};
use super::take_once::{FileResult, TakeOnce};
use crate::errors::{raise_input, raise_usage};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<FilterBuilder>()?;
    module.add_function(wrap_pyfunction!(filter_partitions_of, module)?)?;
    module.add_function(wrap_pyfunction!(make_filter_partitions, module)?)?;
    module.add_function(wrap_pyfunction!(filter_header, module)?)
}

/// The number of partitions for this many keys.
#[pyfunction]
fn filter_partitions_of(keys: u64) -> u64 {
    filter::partitions_of(keys)
}

/// Builds the partitions from `first` up to `end` from all hashes that belong to them. Returns their directory entries,
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

/// The data before the partitions of a filter with `bytes` bytes.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn filter_header(
    py: Python<'_>,
    rules: &str,
    queries: bool,
    bits: u8,
    keys: u64,
    dates: Option<(String, String)>,
    created: Option<String>,
    selection: [Option<String>; 3],
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
        created: created.map(String::into_bytes),
        selection,
    };
    Ok(filter::filter_header(&header, directory, bytes))
}

/// Collects the keys of indexes, then writes a filter of them, once. Same interface as MapBuilder.
#[pyclass(frozen, module = "unlost._core")]
struct FilterBuilder {
    builder: TakeOnce<filter::FilterBuilder>,
    has_queries: bool,
}

const ALREADY_WRITTEN: &str = "the filter was written already";

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
        let row_filter = convert::row_filter(rules, queries, false, status, mime, &exclude)?;
        let build_options = convert::build_options(line_limit, threads, memory, block);
        Ok(Self {
            builder: TakeOnce::new(
                filter::FilterBuilder::new(row_filter, build_options),
                ALREADY_WRITTEN,
            ),
            has_queries: queries,
        })
    }

    /// Takes the rows of an index, or with `urls` the URLs of a list, optionally in a column of a TSV table, from 0.
    #[pyo3(signature = (path, progress, urls=false, column=None))]
    fn add_file(
        &self,
        py: Python<'_>,
        path: PathBuf,
        progress: &Progress,
        urls: bool,
        column: Option<usize>,
    ) -> PyResult<FileResult> {
        let feed = |builder: &mut filter::FilterBuilder, file, layout| {
            builder.add_file(file, layout, &progress.0)
        };
        self.builder.feed(py, path, (urls, column), feed)
    }

    /// Takes rows that were parsed elsewhere.
    fn add_rows(&self, py: Python<'_>, rows: Vec<RowColumns>) -> PyResult<PyLineStats> {
        let stats = self.builder.with(py, |builder| {
            let mut stats = LineStats::default();
            for columns in &rows {
                builder.add_row(&row(columns), &mut stats)?;
            }
            Ok(stats)
        })?;
        Ok(convert::line_stats(stats))
    }

    /// Takes the keys of a map that are held; exclusions are always skipped.
    fn add_map(
        &self,
        py: Python<'_>,
        path: PathBuf,
        fields: usize,
        line_limit: usize,
        _exclusions: bool,
        progress: &Progress,
    ) -> PyResult<PyLineStats> {
        if self.has_queries {
            let message =
                "the keys of a map have no queries: ask for --key hxpx, or give the index";
            return Err(raise_input(py, message.to_owned()));
        }
        let stats = self.builder.with(py, |builder| {
            let mut reader =
                MapReader::with_progress(File::open(path)?, fields, line_limit, &progress.0)?;
            reader.any_order = true;
            builder.add_map(&mut reader, &progress.0)?;
            Ok(std::mem::take(&mut reader.line_stats))
        })?;
        Ok(convert::line_stats(stats))
    }

    /// Takes the output of `write_hashes` of another builder, or a part of it.
    fn add_hashes(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        self.builder.with(py, |builder| builder.add_hashes(bytes))
    }

    /// Writes the sorted, unique hashes of all keys to an existing file, 8 bytes each. Returns their number, and the
    /// dates of the first and the last capture.
    fn write_hashes(
        &self,
        py: Python<'_>,
        path: PathBuf,
        progress: &Progress,
    ) -> PyResult<(u64, Option<(String, String)>)> {
        let builder = self.builder.take()?;
        let result = py.detach(|| {
            let mut out = open(&path)?;
            let summary = builder.write_hashes(&mut out, &progress.0)?;
            out.flush()?;
            Ok(summary)
        });
        let (count, dates) = result.map_err(|error| raise(py, error))?;
        Ok((count, digits(&dates)))
    }

    /// Writes the filter to an existing file, after its base if it has one. Returns the number of keys of the new
    /// layer, and the bytes written.
    #[allow(clippy::too_many_arguments)]
    fn write(
        &self,
        py: Python<'_>,
        path: PathBuf,
        bits: u8,
        created: Option<String>,
        selection: [Option<String>; 3],
        base: Option<&FilterFile>,
        progress: &Progress,
    ) -> PyResult<(u64, u64)> {
        let builder = self.builder.take()?;
        let header = Header {
            bits,
            created: created.map(String::into_bytes),
            selection,
            ..Header::default()
        };
        py.detach(|| {
            let mut file = OpenOptions::new().write(true).open(path)?;
            builder.write(header, base.map(|base| &base.0), &mut file, &progress.0)
        })
        .map_err(|error| raise(py, error))
    }
}
