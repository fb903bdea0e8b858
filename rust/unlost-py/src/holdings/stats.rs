//! Bindings of what gathers statistics of indexes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use unlost_core::holdings::HoldingsError;
use unlost_core::holdings::stats::{
    self, Estimator, Gatherer, HostCounter, RunCounter, Statistics,
};

use super::build::{Progress, RowColumns, row};
use super::convert::{self, PyTally, raise};
use super::once::{Fed, Once};
use super::stats_told::{estimated, given};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StatisticsGatherer>()?;
    module.add_class::<StatisticsPart>()?;
    module.add_class::<StatisticsHosts>()?;
    module.add_function(wrap_pyfunction!(sample_lot, module)?)
}

/// Gathers what is told of indexes, then gives it once: exactly from those in order, estimated from others.
#[pyclass(frozen, module = "unlost._core")]
struct StatisticsGatherer(Once<Work>);

enum Work {
    Exact(Box<Gatherer>),
    Estimated(Box<Estimator>),
}

const GIVEN: &str = "the statistics were given already";

#[pymethods]
impl StatisticsGatherer {
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
        let wanted = convert::wanted(rules, true, false, status, mime, &exclude)?;
        let effort = convert::effort(line_limit, threads, memory, block);
        let work = if is_estimated {
            Work::Estimated(Box::new(Estimator::new(wanted, effort, sampled)))
        } else {
            Work::Exact(Box::new(Gatherer::new(wanted, effort)))
        };
        Ok(Self(Once::new(work, GIVEN)))
    }

    /// Takes the rows of an index, or with `urls` the addresses of a list.
    #[pyo3(signature = (path, progress, urls=false, column=None))]
    fn add_file(
        &self,
        py: Python<'_>,
        path: PathBuf,
        progress: &Progress,
        urls: bool,
        column: Option<usize>,
    ) -> PyResult<Fed> {
        let feed = |work: &mut Work, file, layout| match work {
            Work::Exact(work) => work.add_file(file, layout, &progress.0),
            Work::Estimated(work) => work.add_file(file, layout, &progress.0),
        };
        self.0.feed(py, path, (urls, column), feed)
    }

    /// Takes rows that were read elsewhere: key, address, date, media type, status.
    fn add_rows(&self, py: Python<'_>, rows: Vec<RowColumns>) -> PyResult<PyTally> {
        let tally = self.0.with(py, |work| match work {
            Work::Exact(work) => work.add_rows(rows.iter().map(row)),
            Work::Estimated(work) => work.add_rows(rows.iter().map(row)),
        })?;
        Ok(convert::tally(tally))
    }

    /// Everything that was counted.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match self.0.take()? {
            Work::Exact(work) => {
                let found = py
                    .detach(|| work.finish())
                    .map_err(|error| raise(py, error))?;
                given(py, &found)
            }
            Work::Estimated(work) => estimated(py, &work.finish()),
        }
    }
}

/// What one of many machines counts: rows, and the runs that are made of them or were made by others.
#[pyclass(frozen, module = "unlost._core")]
struct StatisticsPart(Once<RunCounter>);

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
        let wanted = convert::wanted(rules, true, false, status, mime, &exclude)?;
        let effort = convert::effort(line_limit, Some(1), memory, None);
        Ok(Self(Once::new(RunCounter::new(wanted, effort), GIVEN)))
    }

    /// Takes the rows of an index, in any order, or with `urls` the addresses of a list.
    #[pyo3(signature = (path, progress, urls=false, column=None))]
    fn add_file(
        &self,
        py: Python<'_>,
        path: PathBuf,
        progress: &Progress,
        urls: bool,
        column: Option<usize>,
    ) -> PyResult<Fed> {
        let feed = |work: &mut RunCounter, file, layout| work.add_file(file, layout, &progress.0);
        self.0.feed(py, path, (urls, column), feed)
    }

    /// Takes lines of runs.
    fn add_runs(&self, py: Python<'_>, lines: &[u8]) -> PyResult<()> {
        self.0.with(py, |work| work.add_runs(lines))
    }

    /// Writes the runs to a file; returns what was counted by row.
    fn write<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyDict>> {
        self.given_to(py, path, RunCounter::write)
    }

    /// Writes the hosts to a file; returns what was counted in them.
    fn gather<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyDict>> {
        self.given_to(py, path, RunCounter::gather)
    }
}

impl StatisticsPart {
    fn given_to<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        end: fn(RunCounter, &mut BufWriter<File>) -> Result<Statistics, HoldingsError>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let work = self.0.take()?;
        let found = py
            .detach(|| {
                let mut file = BufWriter::new(File::create(path)?);
                let found = end(work, &mut file)?;
                file.flush()?;
                Ok(found)
            })
            .map_err(|error| raise(py, error))?;
        given(py, &found)
    }
}

/// What is told of hosts, all of a domain, from lines as `StatisticsPart.gather` writes them, in order.
#[pyclass(frozen, module = "unlost._core")]
struct StatisticsHosts(Once<HostCounter>);

#[pymethods]
impl StatisticsHosts {
    #[new]
    fn new() -> Self {
        Self(Once::new(HostCounter::default(), GIVEN))
    }

    fn add_hosts(&self, py: Python<'_>, lines: &[u8]) -> PyResult<()> {
        self.0.with(py, |hosts| hosts.add_hosts(lines))
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        given(py, &self.0.take()?.finish())
    }
}

/// What decides which samples are kept.
#[pyfunction]
fn sample_lot(date: u64, url: &[u8]) -> u64 {
    stats::sample_lot(date, url)
}
