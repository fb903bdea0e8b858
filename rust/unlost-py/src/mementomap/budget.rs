//! Bindings of budgets.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use unlost_core::mementomap::budget::{self, BudgetOptions, Choice, Prior};
use unlost_core::mementomap::{
    self, BuildOptions, Compaction, Curve, HoldingsError, LineStats, MapReader,
};

use super::build::{Progress, open};
use super::convert::{self, CompactionStats, PyLineStats, raise};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RollupPlanner>()?;
    module.add_class::<Rollups>()?;
    module.add_function(wrap_pyfunction!(gzip_size, module)?)
}

/// A weighted map tree: the cost that each roll-up saves, and its loss.
#[pyclass(frozen, module = "unlost._core")]
pub struct RollupPlanner {
    planner: budget::RollupPlanner,
    line_stats: Mutex<Option<LineStats>>,
    depths: (usize, usize),
}

#[pymethods]
impl RollupPlanner {
    /// Analyses a sorted map, against a map of queries if there is one.
    #[new]
    #[pyo3(signature = (source, fields, line_limit, *, queries, by_compressed_size, depths, protect_suffixes, forced_keys, prior, memory, progress))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        source: PathBuf,
        fields: usize,
        line_limit: usize,
        queries: Option<PathBuf>,
        by_compressed_size: bool,
        depths: (usize, usize),
        protect_suffixes: bool,
        forced_keys: Vec<Vec<u8>>,
        prior: (f64, f64, f64, f64, f64),
        memory: Option<usize>,
        progress: &Progress,
    ) -> PyResult<Self> {
        let (page_discount, host_discount, host, extra_hosts, strength) = prior;
        let options = BudgetOptions {
            host_depth: depths.0,
            path_depth: depths.1,
            protect_suffixes,
            forced_keys: forced_keys.into_iter().collect(),
            by_compressed_size,
            prior: Prior {
                page_discount,
                host_discount,
                host,
                extra_hosts,
                strength,
            },
        };
        let memory = memory.unwrap_or(BuildOptions::default().memory);
        let result = py.detach(|| {
            let mut reader =
                MapReader::with_progress(File::open(source)?, fields, line_limit, &progress.0)?;
            let mut query_entries = match queries {
                Some(path) => Some(MapReader::new(File::open(path)?, 1, line_limit)?),
                None => None,
            };
            let planner = budget::analyse_tree(
                &mut reader,
                query_entries.as_mut(),
                fields,
                &options,
                memory,
                &progress.0,
            )?;
            Ok((planner, std::mem::take(&mut reader.line_stats)))
        });
        let (planner, line_stats) = result.map_err(|error| raise(py, error))?;
        Ok(Self {
            planner,
            line_stats: Mutex::new(Some(line_stats)),
            depths,
        })
    }

    /// The line statistics of the map, once.
    fn line_stats(&self) -> PyResult<PyLineStats> {
        let taken = self
            .line_stats
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        taken
            .map(convert::line_stats)
            .ok_or_else(|| PyValueError::new_err("was taken already"))
    }

    #[getter]
    fn keys(&self) -> u64 {
        self.planner.keys
    }

    /// The number of lines of the map that cover everything below them.
    #[getter]
    fn wildcards(&self) -> u64 {
        self.planner.wildcards
    }

    #[getter]
    fn missed_queries(&self) -> u64 {
        self.planner.missed_queries
    }

    #[getter]
    fn hit_queries(&self) -> u64 {
        self.planner.hit_queries
    }

    /// Cost and loss of the smallest map, in which every node that may be rolled up is.
    #[getter]
    fn smallest(&self) -> (f64, f64) {
        self.planner.smallest()
    }

    /// Cost and loss of the best map within a limit.
    fn evaluate(&self, py: Python<'_>, limit: f64) -> (f64, f64) {
        py.detach(|| self.planner.evaluate(limit))
    }

    /// The roll-ups within a limit.
    fn choose(&self, py: Python<'_>, limit: f64) -> Rollups {
        Rollups {
            choice: py.detach(|| self.planner.choose(limit)),
            depths: self.depths,
        }
    }
}

/// A set of roll-ups.
#[pyclass(frozen, module = "unlost._core")]
pub struct Rollups {
    choice: Choice,
    depths: (usize, usize),
}

#[pymethods]
impl Rollups {
    #[getter]
    fn cost(&self) -> f64 {
        self.choice.cost
    }

    #[getter]
    fn loss(&self) -> f64 {
        self.choice.loss
    }

    /// Whether only forced keys are rolled up.
    #[getter]
    fn is_complete(&self) -> bool {
        self.choice.is_complete
    }

    /// The wildcards, in byte order.
    fn keys(&self) -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> = self.choice.rollups.iter().cloned().collect();
        keys.sort_unstable();
        keys
    }

    /// Writes the map, rolled up, to an existing file, after its headers.
    #[allow(clippy::too_many_arguments)]
    fn write(
        &self,
        py: Python<'_>,
        source: PathBuf,
        fields: usize,
        line_limit: usize,
        target: PathBuf,
        headers: Vec<u8>,
        memory: Option<usize>,
        progress: &Progress,
    ) -> PyResult<CompactionStats> {
        let never = |depth: usize| Curve {
            a: 1.0,
            k: 0.0,
            weight: f64::INFINITY,
            depth,
        };
        let compaction = Compaction {
            host: never(self.depths.0),
            path: never(self.depths.1),
            forced_keys: self.choice.rollups.clone(),
        };
        let memory = memory.unwrap_or(BuildOptions::default().memory);
        let result = py.detach(|| {
            let mut reader = MapReader::new(File::open(source)?, fields, line_limit)?;
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
            Ok(stats)
        });
        let stats: mementomap::CompactionStats =
            result.map_err(|error: HoldingsError| raise(py, error))?;
        Ok(stats.into())
    }
}

/// The size of a file as gzip of a level.
#[pyfunction]
fn gzip_size(py: Python<'_>, path: PathBuf, level: u32, progress: &Progress) -> PyResult<u64> {
    py.detach(|| budget::gzip_size(&mut File::open(path)?, level, &progress.0))
        .map_err(|error| raise(py, error))
}
