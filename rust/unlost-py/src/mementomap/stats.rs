//! Bindings of index statistics.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use unlost_core::mementomap::HoldingsError;
use unlost_core::mementomap::stats::{self, Estimator, HostCounter, RunCounter, Statistics};

use super::build::{Progress, RowColumns, row};
use super::convert::{self, PyLineStats, raise};
use super::stats_to_py::{estimated_to_py, exact_to_py};
use super::take_once::{FileResult, TakeOnce};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StatisticsCollector>()?;
    module.add_class::<StatisticsPart>()?;
    module.add_class::<StatisticsHosts>()?;
    module.add_function(wrap_pyfunction!(sample_priority, module)?)
}

/// Collects statistics of indexes, then returns them once: exact for sorted ones, estimated for others.
#[pyclass(frozen, module = "unlost._core")]
struct StatisticsCollector(TakeOnce<Work>);

enum Work {
    Exact(Box<stats::StatisticsCollector>),
    Estimated(Box<Estimator>),
}

const ALREADY_TAKEN: &str = "the statistics were given already";

#[pymethods]
impl StatisticsCollector {
    #[new]
    #[pyo3(signature = (*, rules, line_limit, is_estimated=false, status=Vec::new(), mime=Vec::new(), exclude=Vec::new(), threads=None, memory=None, block=None, sampled=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        rules: &str,
        line_limit: usize,
        is_estimated: bool,
        status: Vec<Vec<u8>>,
        mime: Vec<Vec<u8>>,
        exclude: Vec<String>,
        threads: Option<usize>,
        memory: Option<usize>,
        block: Option<usize>,
        sampled: Option<usize>,
    ) -> PyResult<Self> {
        let row_filter = convert::row_filter(rules, true, false, status, mime, &exclude)?;
        let build_options = convert::build_options(line_limit, threads, memory, block);
        let work = if is_estimated {
            Work::Estimated(Box::new(Estimator::new(row_filter, build_options, sampled)))
        } else {
            Work::Exact(Box::new(stats::StatisticsCollector::new(
                row_filter,
                build_options,
            )))
        };
        Ok(Self(TakeOnce::new(work, ALREADY_TAKEN)))
    }

    /// Takes the rows of an index, or with `urls` the URLs of a list.
    #[pyo3(signature = (path, progress, urls=false, column=None))]
    fn add_file(
        &self,
        py: Python<'_>,
        path: PathBuf,
        progress: &Progress,
        urls: bool,
        column: Option<usize>,
    ) -> PyResult<FileResult> {
        let feed = |work: &mut Work, file, layout| match work {
            Work::Exact(work) => work.add_file(file, layout, &progress.0),
            Work::Estimated(work) => work.add_file(file, layout, &progress.0),
        };
        self.0.feed(py, path, (urls, column), feed)
    }

    /// Takes rows that were parsed elsewhere: key, URL, date, media type, status.
    fn add_rows(&self, py: Python<'_>, rows: Vec<RowColumns>) -> PyResult<PyLineStats> {
        let stats = self.0.with(py, |work| match work {
            Work::Exact(work) => work.add_rows(rows.iter().map(row)),
            Work::Estimated(work) => work.add_rows(rows.iter().map(row)),
        })?;
        Ok(convert::line_stats(stats))
    }

    /// All statistics.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match self.0.take()? {
            Work::Exact(work) => {
                let statistics = py
                    .detach(|| work.finish())
                    .map_err(|error| raise(py, error))?;
                exact_to_py(py, &statistics)
            }
            Work::Estimated(work) => estimated_to_py(py, &work.finish()),
        }
    }
}

/// The counts of one of many machines: rows, and runs that this or other machines made.
#[pyclass(frozen, module = "unlost._core")]
struct StatisticsPart(TakeOnce<RunCounter>);

#[pymethods]
impl StatisticsPart {
    #[new]
    #[pyo3(signature = (*, rules, line_limit, status=Vec::new(), mime=Vec::new(), exclude=Vec::new(), memory=None))]
    fn new(
        rules: &str,
        line_limit: usize,
        status: Vec<Vec<u8>>,
        mime: Vec<Vec<u8>>,
        exclude: Vec<String>,
        memory: Option<usize>,
    ) -> PyResult<Self> {
        let row_filter = convert::row_filter(rules, true, false, status, mime, &exclude)?;
        let build_options = convert::build_options(line_limit, Some(1), memory, None);
        Ok(Self(TakeOnce::new(
            RunCounter::new(row_filter, build_options),
            ALREADY_TAKEN,
        )))
    }

    /// Takes the rows of an index in any order, or with `urls` the URLs of a list.
    #[pyo3(signature = (path, progress, urls=false, column=None))]
    fn add_file(
        &self,
        py: Python<'_>,
        path: PathBuf,
        progress: &Progress,
        urls: bool,
        column: Option<usize>,
    ) -> PyResult<FileResult> {
        let feed = |work: &mut RunCounter, file, layout| work.add_file(file, layout, &progress.0);
        self.0.feed(py, path, (urls, column), feed)
    }

    /// Takes lines of runs.
    fn add_runs(&self, py: Python<'_>, lines: &[u8]) -> PyResult<()> {
        self.0.with(py, |work| work.add_runs(lines))
    }

    /// Writes the runs to a file; returns the row statistics.
    fn write<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyDict>> {
        self.write_to(py, path, RunCounter::write)
    }

    /// Writes the hosts to a file; returns their statistics.
    fn count_paths<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyDict>> {
        self.write_to(py, path, RunCounter::count_paths)
    }
}

impl StatisticsPart {
    fn write_to<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        end: fn(RunCounter, &mut BufWriter<File>) -> Result<Statistics, HoldingsError>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let work = self.0.take()?;
        let statistics = py
            .detach(|| {
                let mut file = BufWriter::new(File::create(path)?);
                let statistics = end(work, &mut file)?;
                file.flush()?;
                Ok(statistics)
            })
            .map_err(|error| raise(py, error))?;
        exact_to_py(py, &statistics)
    }
}

/// Host statistics of whole domains, from sorted lines of `StatisticsPart.count_paths`.
#[pyclass(frozen, module = "unlost._core")]
struct StatisticsHosts(TakeOnce<HostCounter>);

#[pymethods]
impl StatisticsHosts {
    #[new]
    fn new() -> Self {
        Self(TakeOnce::new(HostCounter::default(), ALREADY_TAKEN))
    }

    fn add_hosts(&self, py: Python<'_>, lines: &[u8]) -> PyResult<()> {
        self.0.with(py, |hosts| hosts.add_hosts(lines))
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        exact_to_py(py, &self.0.take()?.finish())
    }
}

/// The sampling priority of a row.
#[pyfunction]
fn sample_priority(date: u64, url: &[u8]) -> u64 {
    stats::sample_priority(date, url)
}
