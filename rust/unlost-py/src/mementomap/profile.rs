//! Bindings of profiles.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyString;
use unlost_core::mementomap::{self, BuildOptions, HoldingsError, ProfileForm, ProfileReader};
use unlost_core::uri::{Policy, RuleSet};

use super::build::{MapBuilder, Progress, open};
use super::convert::{self, PyLineStats, raise};
use crate::errors::raise_usage;
use crate::uri::SuffixList;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<KeyPresence>()?;
    module.add_function(wrap_pyfunction!(write_profiles, module)?)?;
    module.add_function(wrap_pyfunction!(merge_profiles, module)?)?;
    module.add_function(wrap_pyfunction!(profiles_to_map, module)?)?;
    module.add_function(wrap_pyfunction!(check_profile, module)?)
}

/// Keys to search in profiles.
#[pyclass(module = "unlost._core")]
struct KeyPresence(mementomap::KeyPresence);

#[pymethods]
impl KeyPresence {
    #[new]
    fn new(keys: &Bound<'_, PyAny>) -> PyResult<Self> {
        let keys: Vec<Bound<'_, PyString>> = keys.extract()?;
        let texts = keys.iter().map(|key| key.to_str());
        let texts = texts.collect::<PyResult<Vec<_>>>()?;
        let bytes = texts.into_iter().map(str::as_bytes);
        Ok(Self(mementomap::KeyPresence::new(bytes)))
    }

    /// Reads whole rows, and returns their number.
    fn scan(&mut self, py: Python<'_>, rows: &[u8]) -> usize {
        py.detach(|| self.0.scan(rows))
    }

    /// For each given key in order, whether it was seen.
    fn seen(&self) -> Vec<bool> {
        self.0.seen().collect()
    }
}

fn policy(py: Python<'_>, name: &str) -> PyResult<Policy> {
    name.parse()
        .map_err(|error| raise_usage(py, format!("{name}: {error}")))
}

/// Writes the counts as profiles to existing files, each after its header and, in JSON, before its end.
#[pyfunction]
fn write_profiles(
    py: Python<'_>,
    builder: &MapBuilder,
    profiles: Vec<(String, PathBuf, Vec<u8>)>,
    suffixes: &SuffixList,
    as_json: bool,
    progress: &Progress,
) -> PyResult<()> {
    let form = if as_json {
        ProfileForm::Members
    } else {
        ProfileForm::Lines
    };
    let policies = profiles.iter().map(|(name, _, _)| policy(py, name));
    let policies: Vec<Policy> = policies.collect::<PyResult<_>>()?;
    let builder = builder.take()?;
    let suffixes = &suffixes.suffixes;
    let result = py.detach(|| {
        let mut outs = Vec::new();
        for (policy, (_, path, head)) in policies.into_iter().zip(&profiles) {
            // The output is read again if keys did not come in order, which a pipe does not allow.
            let is_file = path.metadata()?.is_file();
            let mut out = OpenOptions::new().read(is_file).write(true).open(path)?;
            out.write_all(head)?;
            outs.push((policy, out));
        }
        mementomap::write_profiles(builder, outs, suffixes, form, &progress.0)
    });
    result.map_err(|error| raise(py, error))
}

fn reader(
    path: &Path,
    line_limit: usize,
    progress: &Progress,
) -> Result<ProfileReader, HoldingsError> {
    let name = path.display().to_string();
    ProfileReader::with_progress(File::open(path)?, name, line_limit, &progress.0)
}

/// Opens profiles as they are needed.
fn readers<'a>(
    sources: &'a [PathBuf],
    line_limit: usize,
    progress: &'a Progress,
) -> impl Iterator<Item = Result<ProfileReader, HoldingsError>> + use<'a> {
    sources
        .iter()
        .map(move |path| reader(path, line_limit, progress))
}

/// Merges profiles into an existing file, after its headers.
#[pyfunction]
fn merge_profiles(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    line_limit: usize,
    target: PathBuf,
    headers: Vec<u8>,
    progress: &Progress,
) -> PyResult<()> {
    let result = py.detach(|| {
        let mut out = open(&target)?;
        out.write_all(&headers)?;
        mementomap::merge_profiles(
            readers(&sources, line_limit, progress),
            &mut out,
            &progress.0,
        )?;
        Ok(out.flush()?)
    });
    result.map_err(|error| raise(py, error))
}

/// Writes the map of profiles with their policies to an existing file, after its headers.
#[pyfunction]
#[pyo3(signature = (sources, line_limit, target, headers, progress, memory=None))]
fn profiles_to_map(
    py: Python<'_>,
    sources: Vec<(PathBuf, String)>,
    line_limit: usize,
    target: PathBuf,
    headers: Vec<u8>,
    progress: &Progress,
    memory: Option<usize>,
) -> PyResult<()> {
    let policies = sources.iter().map(|(_, name)| policy(py, name));
    let policies: Vec<Policy> = policies.collect::<PyResult<_>>()?;
    let paths: Vec<PathBuf> = sources.into_iter().map(|(path, _)| path).collect();
    let memory = memory.unwrap_or(BuildOptions::default().memory);
    let result = py.detach(|| {
        let mut out = open(&target)?;
        out.write_all(&headers)?;
        let profiles = readers(&paths, line_limit, progress)
            .zip(policies)
            .map(|(reader, policy)| Ok((reader?, policy)));
        mementomap::profiles_to_map(profiles, memory, &mut out, &progress.0)?;
        Ok(out.flush()?)
    });
    result.map_err(|error| raise(py, error))
}

/// The number of keys, their frequency (None if it is too large), the largest spread, and line statistics.
#[pyfunction]
fn check_profile(
    py: Python<'_>,
    path: PathBuf,
    policy_name: &str,
    rules: &str,
    suffixes: &SuffixList,
    line_limit: usize,
    progress: &Progress,
) -> PyResult<(u64, Option<u64>, u64, PyLineStats)> {
    let policy = policy(py, policy_name)?;
    let rules: RuleSet = rules
        .parse()
        .map_err(|error| raise_usage(py, format!("{rules}: {error}")))?;
    let suffixes = &suffixes.suffixes;
    let report = py.detach(|| {
        let mut reader = reader(&path, line_limit, progress)?;
        mementomap::check_profile(&mut reader, policy, rules, suffixes)
    });
    let report = report.map_err(|error| raise(py, error))?;
    let stats = convert::line_stats(report.line_stats);
    Ok((report.keys, report.frequency, report.spread, stats))
}
