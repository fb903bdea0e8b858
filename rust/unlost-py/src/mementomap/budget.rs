//! Bindings of budgets.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use unlost_core::mementomap::budget::{self, BudgetOptions, Choice, Prior, RollupPlanner};
use unlost_core::mementomap::{
    self, BuildOptions, Compaction, CompactionStats, Curve, HoldingsError, LineStats, MapReader,
};

use super::build::{Progress, open};
use super::convert::{self, MapShape, PyTally, raise};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<MapScale>()?;
    module.add_class::<Rollups>()?;
    module.add_function(wrap_pyfunction!(gzip_size, module)?)
}

/// A weighted map tree: what each roll-up saves and loses.
#[pyclass(frozen, module = "unlost._core")]
pub struct MapScale {
    planner: RollupPlanner,
    tally: Mutex<Option<LineStats>>,
    depths: (usize, usize),
}

#[pymethods]
impl MapScale {
    /// Analyses a sorted map, against a map of queries if there is one.
    #[new]
    #[pyo3(signature = (source, fields, line_limit, *, queries, weighs, depths, protects, forced, prior, memory, progress))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        source: PathBuf,
        fields: usize,
        line_limit: usize,
        queries: Option<PathBuf>,
        weighs: bool,
        depths: (usize, usize),
        protects: bool,
        forced: Vec<Vec<u8>>,
        prior: (f64, f64, f64, f64, f64),
        memory: Option<usize>,
        progress: &Progress,
    ) -> PyResult<Self> {
        let (page_discount, host_discount, host, extra_hosts, strength) = prior;
        let options = BudgetOptions {
            host_depth: depths.0,
            path_depth: depths.1,
            protect_suffixes: protects,
            forced: forced.into_iter().collect(),
            by_compressed_size: weighs,
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
        let (planner, tally) = result.map_err(|error| raise(py, error))?;
        Ok(Self {
            planner,
            tally: Mutex::new(Some(tally)),
            depths,
        })
    }

    /// The line statistics of the map, once.
    fn tally(&self) -> PyResult<PyTally> {
        let taken = self
            .tally
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        taken
            .map(convert::tally)
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
    fn missed(&self) -> u64 {
        self.planner.missed
    }

    #[getter]
    fn hit(&self) -> u64 {
        self.planner.hit
    }

    /// Cost and loss with everything rolled up that may be.
    #[getter]
    fn smallest(&self) -> (f64, f64) {
        self.planner.smallest()
    }

    /// Cost and loss within a limit.
    fn weigh(&self, py: Python<'_>, limit: f64) -> (f64, f64) {
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

/// What is rolled up.
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

    /// Whether nothing is rolled up unnecessarily.
    #[getter]
    fn is_all(&self) -> bool {
        self.choice.is_all
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
    ) -> PyResult<MapShape> {
        let never = |depth: usize| Curve {
            a: 1.0,
            k: 0.0,
            weight: f64::INFINITY,
            depth,
        };
        let compaction = Compaction {
            host: never(self.depths.0),
            path: never(self.depths.1),
            forced: self.choice.rollups.clone(),
        };
        let memory = memory.unwrap_or(BuildOptions::default().memory);
        let result = py.detach(|| {
            let mut reader = MapReader::new(File::open(source)?, fields, line_limit)?;
            let mut out = open(&target)?;
            out.write_all(&headers)?;
            let shape = mementomap::compact(
                &mut reader,
                fields,
                &compaction,
                memory,
                &mut out,
                &progress.0,
            )?;
            out.flush()?;
            Ok(shape)
        });
        let shape: CompactionStats = result.map_err(|error: HoldingsError| raise(py, error))?;
        Ok(shape.into())
    }
}

/// The size of a file as gzip of a level.
#[pyfunction]
fn gzip_size(py: Python<'_>, path: PathBuf, level: u32, progress: &Progress) -> PyResult<u64> {
    py.detach(|| budget::gzip_size(&mut File::open(path)?, level, &progress.0))
        .map_err(|error| raise(py, error))
}
