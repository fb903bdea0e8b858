//! Conversions between Python and the core: options in, counts and errors out.

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use unlost_core::mementomap::{
    self, BuildOptions, Compaction, Curve, Excluded, HoldingsError, LineStats, RowFilter,
};
use unlost_core::uri::RuleSet;

use crate::errors::{raise_input, raise_unsorted};

/// I/O errors stay `OSError`, so that the caller can add the file name.
pub fn raise(py: Python<'_>, error: HoldingsError) -> PyErr {
    match error {
        // With its errno, which pyo3 drops.
        HoldingsError::Io(error) => match error.raw_os_error() {
            Some(number) => PyOSError::new_err((number, strerror(&error))),
            None => error.into(),
        },
        HoldingsError::Cancelled => PyKeyboardInterrupt::new_err(()),
        HoldingsError::Unsorted { .. } | HoldingsError::Scattered { .. } => {
            raise_unsorted(py, error.to_string())
        }
        other => raise_input(py, other.to_string()),
    }
}

/// The system's message without the number that Rust appends.
fn strerror(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Which rows are counted, and under which keys.
pub fn row_filter(
    rules: &str,
    queries: bool,
    by_year: bool,
    status: Vec<Vec<u8>>,
    mime: Vec<Vec<u8>>,
    exclude: &[String],
) -> PyResult<RowFilter> {
    let excluded = |name: &String| match name.as_str() {
        "robots" => Ok(Excluded::Robots),
        "sitemaps" => Ok(Excluded::Sitemaps),
        _ => Err(PyValueError::new_err(format!("nothing is called {name}"))),
    };
    Ok(RowFilter {
        rules: rules
            .parse::<RuleSet>()
            .map_err(|error| PyValueError::new_err(error.to_string()))?,
        queries,
        by_year,
        status,
        mime,
        exclude: exclude.iter().map(excluded).collect::<PyResult<_>>()?,
    })
}

/// Performance options, with defaults for missing ones.
pub fn build_options(
    line_limit: usize,
    threads: Option<usize>,
    memory: Option<usize>,
    block: Option<usize>,
) -> BuildOptions {
    let defaults = BuildOptions::default();
    BuildOptions {
        threads: threads.unwrap_or(defaults.threads),
        memory: memory.unwrap_or(defaults.memory),
        line_limit,
        block_bytes: block.unwrap_or(defaults.block_bytes).max(1),
    }
}

/// Lines, counted, foreign, filtered, repaired; then kind, count, line, offset and example of each problem.
pub type PyLineStats = (
    u64,
    u64,
    u64,
    u64,
    u64,
    Vec<(&'static str, u64, u64, u64, Vec<u8>)>,
);

pub fn line_stats(stats: LineStats) -> PyLineStats {
    let problems = stats
        .problems
        .into_iter()
        .map(|(kind, problem)| {
            (
                kind,
                problem.count,
                problem.line,
                problem.offset,
                problem.example,
            )
        })
        .collect();
    (
        stats.lines,
        stats.counted,
        stats.foreign,
        stats.filtered,
        stats.repaired,
        problems,
    )
}

/// a, k, weight and depth of hosts and of paths, and the keys that are always rolled up.
pub type PyCompaction = ((f64, f64, f64, usize), (f64, f64, f64, usize), Vec<Vec<u8>>);

pub fn compaction((host, path, forced_keys): PyCompaction) -> Compaction {
    let curve = |(a, k, weight, depth): (f64, f64, f64, usize)| Curve {
        a,
        k,
        weight,
        depth: depth.clamp(1, 64),
    };
    Compaction {
        host: curve(host),
        path: curve(path),
        forced_keys: forced_keys.into_iter().collect(),
    }
}

/// Statistics of a map's tree and of its compaction.
#[pyclass(frozen, get_all, module = "unlost._core")]
pub struct CompactionStats {
    parents: Vec<u64>,
    children: Vec<u64>,
    rollups: Vec<u64>,
    host_levels: usize,
    lines_in: u64,
    lines_out: u64,
    trace: Vec<(u64, u64)>,
}

impl From<mementomap::CompactionStats> for CompactionStats {
    fn from(stats: mementomap::CompactionStats) -> Self {
        Self {
            parents: stats.parents,
            children: stats.children,
            rollups: stats.rollups,
            host_levels: stats.host_levels,
            lines_in: stats.lines_in,
            lines_out: stats.lines_out,
            trace: stats.trace,
        }
    }
}
