//! Bindings of building and compacting maps.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use unlost_core::index::Row;
use unlost_core::mementomap::{self, BuildOptions, Builder, HoldingsError, LineStats, MapReader};

use super::convert::{self, CompactionStats, PyCompaction, PyLineStats, raise};
use super::filter::digits;
use super::take_once::{FileResult, TakeOnce};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Progress>()?;
    module.add_class::<CompactionStats>()?;
    module.add_class::<MapBuilder>()?;
    module.add_function(wrap_pyfunction!(compact_map, module)?)
}

const ALREADY_WRITTEN: &str = "the map was written already";

/// The maximum length of a counted key: longer index lines are not read.
const MAX_COUNT_LINE_BYTES: usize = 64 << 20;

/// The progress of an operation.
#[pyclass(frozen, module = "unlost._core")]
#[derive(Default)]
pub struct Progress(pub Arc<mementomap::Progress>);

#[pymethods]
impl Progress {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    #[getter]
    fn lines(&self) -> u64 {
        self.0.lines()
    }

    fn cancel(&self) {
        self.0.cancel();
    }
}

/// Counts the holdings of indexes, then writes them once.
#[pyclass(frozen, module = "unlost._core")]
pub struct MapBuilder(TakeOnce<Builder>);

impl MapBuilder {
    /// The builder with everything counted, once.
    pub fn take(&self) -> PyResult<Builder> {
        self.0.take()
    }
}

/// Key, URL, date, media type, status.
pub type RowColumns = (Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>);

/// A row that was parsed elsewhere.
pub fn row((key, url, date, mime, status): &RowColumns) -> Row<'_> {
    Row {
        key,
        date,
        url: url.into(),
        mime: mime.into(),
        status: status.into(),
        ..Row::default()
    }
}

#[pymethods]
impl MapBuilder {
    #[new]
    #[pyo3(signature = (*, rules, line_limit, queries=false, by_year=false, status=Vec::new(), mime=Vec::new(), exclude=Vec::new(), is_sorted=false, threads=None, memory=None, block=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        rules: &str,
        line_limit: usize,
        queries: bool,
        by_year: bool,
        status: Vec<Vec<u8>>,
        mime: Vec<Vec<u8>>,
        exclude: Vec<String>,
        is_sorted: bool,
        threads: Option<usize>,
        memory: Option<usize>,
        block: Option<usize>,
    ) -> PyResult<Self> {
        let row_filter = convert::row_filter(rules, queries, by_year, status, mime, &exclude)?;
        let build_options = convert::build_options(line_limit, threads, memory, block);
        let builder = Builder::new(row_filter, build_options, is_sorted);
        Ok(Self(TakeOnce::new(builder, ALREADY_WRITTEN)))
    }

    /// Counts the rows of an index, or with `urls` the URLs of a list, optionally in a column of a TSV table, from 0.
    #[pyo3(signature = (path, progress, urls=false, column=None))]
    fn add_file(
        &self,
        py: Python<'_>,
        path: PathBuf,
        progress: &Progress,
        urls: bool,
        column: Option<usize>,
    ) -> PyResult<FileResult> {
        let feed =
            |builder: &mut Builder, file, layout| builder.add_file(file, layout, &progress.0);
        self.0.feed(py, path, (urls, column), feed)
    }

    /// Counts rows that were parsed elsewhere: key, URL, date, media type, status.
    fn add_rows(&self, py: Python<'_>, rows: Vec<RowColumns>) -> PyResult<PyLineStats> {
        let stats = self.0.with(py, |builder| {
            let mut stats = LineStats::default();
            for columns in &rows {
                builder.add_row(&row(columns), &mut stats)?;
            }
            Ok(stats)
        })?;
        Ok(convert::line_stats(stats))
    }

    /// Adds the entries of another map, exclusions only if requested.
    fn add_map(
        &self,
        py: Python<'_>,
        path: PathBuf,
        fields: usize,
        line_limit: usize,
        exclusions: bool,
        progress: &Progress,
    ) -> PyResult<PyLineStats> {
        let stats = self.0.with(py, |builder| {
            let mut reader =
                MapReader::with_progress(File::open(path)?, fields, line_limit, &progress.0)?;
            reader.any_order = true;
            builder.add_map(&mut reader, exclusions, &progress.0)?;
            Ok(std::mem::take(&mut reader.line_stats))
        })?;
        Ok(convert::line_stats(stats))
    }

    /// Adds the output of `write_counts` of another builder, or whole lines of it.
    fn add_counts(&self, py: Python<'_>, text: Vec<u8>, fields: usize) -> PyResult<()> {
        self.0.with(py, |builder| {
            let mut reader = MapReader::new(Cursor::new(text), fields, MAX_COUNT_LINE_BYTES)?;
            builder.add_counts(&mut reader)
        })
    }

    /// Writes the counts to an existing file: whole keys in order, without headers and total.
    fn write_counts(&self, py: Python<'_>, path: PathBuf, progress: &Progress) -> PyResult<()> {
        let builder = self.0.take()?;
        let result = py.detach(|| {
            let mut out = open(&path)?;
            builder.write_counts(&mut out, &progress.0)?;
            Ok(out.flush()?)
        });
        result.map_err(|error| raise(py, error))
    }

    /// Starts writing the map to an existing file while its lines are being counted; `finish_streaming` completes it.
    /// Returns false, and does nothing, for devices and pipes. `headers` should be as long as those passed to
    /// `finish_streaming`, and `size` is the total input size; both affect only speed.
    fn start_streaming(
        &self,
        py: Python<'_>,
        path: PathBuf,
        headers: Vec<u8>,
        size: u64,
    ) -> PyResult<bool> {
        self.0.with(py, |builder| {
            if !path.metadata()?.is_file() {
                return Ok(false);
            }
            let mut file = OpenOptions::new().read(true).write(true).open(path)?;
            file.write_all(&headers)?;
            builder.start_streaming(file, size);
            Ok(true)
        })
    }

    /// The dates of the first and the last counted capture, 14 digits each.
    fn dates(&self, py: Python<'_>) -> PyResult<Option<(String, String)>> {
        self.0.with(py, |builder| Ok(digits(builder.dates())))
    }

    /// Completes the map that `start_streaming` started, with the final headers.
    fn finish_streaming(
        &self,
        py: Python<'_>,
        headers: &[u8],
        progress: &Progress,
    ) -> PyResult<()> {
        let builder = self.0.take()?;
        py.detach(|| builder.finish_streaming(headers, &progress.0))
            .map_err(|error| raise(py, error))
    }

    /// Writes the map to an existing file, after its headers.
    fn write(
        &self,
        py: Python<'_>,
        path: PathBuf,
        headers: Vec<u8>,
        compaction: Option<PyCompaction>,
        progress: &Progress,
    ) -> PyResult<Option<CompactionStats>> {
        let compaction = compaction.map(convert::compaction);
        let builder = self.0.take()?;
        let stats = py.detach(|| {
            let mut out = open(&path)?;
            out.write_all(&headers)?;
            let stats =
                builder
                    .finish(&progress.0)?
                    .write(compaction.as_ref(), &mut out, &progress.0)?;
            out.flush()?;
            Ok(stats)
        });
        let stats = stats.map_err(|error| raise(py, error))?;
        Ok(stats.map(CompactionStats::from))
    }
}

/// Regular files are temporary ones that are renamed when complete; devices and pipes are opened directly.
pub fn open(path: &Path) -> Result<BufWriter<File>, HoldingsError> {
    let file = OpenOptions::new().write(true).open(path)?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}

/// Compacts a sorted map.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn compact_map(
    py: Python<'_>,
    source: PathBuf,
    fields: usize,
    line_limit: usize,
    target: PathBuf,
    headers: Vec<u8>,
    compaction: PyCompaction,
    memory: Option<usize>,
    progress: &Progress,
) -> PyResult<(CompactionStats, PyLineStats)> {
    let compaction = convert::compaction(compaction);
    let memory = memory.unwrap_or(BuildOptions::default().memory);
    let result = py.detach(|| {
        let mut reader =
            MapReader::with_progress(File::open(source)?, fields, line_limit, &progress.0)?;
        let mut out = open(&target)?;
        out.write_all(&headers)?;
        let stats = mementomap::compact(
            &mut reader,
            fields,
            &compaction,
            memory,
            &mut out,
            &progress.0,
        )?;
        out.flush()?;
        Ok((stats, std::mem::take(&mut reader.line_stats)))
    });
    let (compaction_stats, line_stats): (mementomap::CompactionStats, LineStats) =
        result.map_err(|error| raise(py, error))?;
    Ok((compaction_stats.into(), convert::line_stats(line_stats)))
}
