//! Bindings of what is told of indexes.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use unlost_core::formats::{Damage, Layout};
use unlost_core::holdings::stats::{Domain, FIRST_YEAR, Gatherer, Statistics};
use unlost_core::holdings::{HoldingsError, Tally};

use super::build::{Progress, RowColumns, row};
use super::convert::{self, PyTally, raise};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StatisticsGatherer>()
}

/// Gathers what is told of indexes, then gives it once.
#[pyclass(frozen, module = "unlost._core")]
struct StatisticsGatherer(Mutex<Option<Gatherer>>);

impl StatisticsGatherer {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Gatherer) -> Result<T, HoldingsError> + Send,
    ) -> PyResult<T> {
        let result = py.detach(|| {
            let mut gatherer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            gatherer.as_mut().map(work)
        });
        match result {
            Some(result) => result.map_err(|error| raise(py, error)),
            None => Err(PyValueError::new_err("the statistics were given already")),
        }
    }
}

#[pymethods]
impl StatisticsGatherer {
    #[new]
    #[pyo3(signature = (*, rules, line_limit, status=Vec::new(), mime=Vec::new(), exclude=Vec::new(), threads=None, memory=None, block=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        rules: &str,
        line_limit: usize,
        status: Vec<Vec<u8>>,
        mime: Vec<Vec<u8>>,
        exclude: Vec<String>,
        threads: Option<usize>,
        memory: Option<usize>,
        block: Option<usize>,
    ) -> PyResult<Self> {
        let wanted = convert::wanted(rules, true, false, status, mime, &exclude)?;
        let effort = convert::effort(line_limit, threads, memory, block);
        Ok(Self(Mutex::new(Some(Gatherer::new(wanted, effort)))))
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
    ) -> PyResult<(PyTally, Option<&'static str>)> {
        let layout = urls.then_some(Layout::Urls { column });
        let (tally, damage) = self.with(py, |gatherer| {
            gatherer.add_file(File::open(path)?, layout, &progress.0)
        })?;
        Ok((convert::tally(tally), damage.map(Damage::kind)))
    }

    /// Takes rows that were read elsewhere: key, address, date, media type, status.
    fn add_rows(&self, py: Python<'_>, rows: Vec<RowColumns>) -> PyResult<PyTally> {
        let tally = self.with(py, |gatherer| {
            let mut tally = Tally::default();
            for columns in &rows {
                gatherer.add_row(&row(columns), &mut tally)?;
            }
            Ok(tally)
        })?;
        Ok(convert::tally(tally))
    }

    /// Everything that was counted.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let gatherer = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(gatherer) = gatherer else {
            return Err(PyValueError::new_err("the statistics were given already"));
        };
        let found = py
            .detach(|| gatherer.finish())
            .map_err(|error| raise(py, error))?;
        given(py, &found)
    }
}

/// Captures, URI-Rs, pages, hosts, second-level domains.
fn domain(domain: &Domain) -> (u64, u64, u64, u64, u64) {
    (
        domain.captures,
        domain.uris,
        domain.pages,
        domain.hosts,
        domain.children,
    )
}

fn given<'py>(py: Python<'py>, found: &Statistics) -> PyResult<Bound<'py, PyDict>> {
    let bytes = |bytes: &[u8]| PyBytes::new(py, bytes).unbind();
    let rows = &found.rows;
    let out = PyDict::new(py);
    for (name, number) in [
        ("text_bytes", rows.text_bytes),
        ("captures", rows.captures),
        ("record_bytes", rows.record_bytes),
        ("sized", rows.sized),
        ("first", rows.first),
        ("last", rows.last),
        ("odd_dates", rows.odd_dates),
        ("further_kinds", rows.further_kinds),
        ("uris", found.uris),
        ("pages", found.pages),
        ("hosts", found.hosts),
        ("cuts", found.cuts),
    ] {
        out.set_item(name, number)?;
    }
    let years = FIRST_YEAR..;
    let classes: Vec<_> = years
        .clone()
        .zip(rows.classes.iter().zip(found.year_uris()))
        .filter(|(_, (classes, uris))| classes.iter().sum::<u64>() > 0 || **uris > 0)
        .map(|(year, (classes, uris))| (year, *uris, classes.to_vec()))
        .collect();
    out.set_item("years", classes)?;
    let months: Vec<_> = (FIRST_YEAR * 12..)
        .zip(rows.months.iter().zip(found.new_uris()))
        .filter(|(_, (captures, uris))| **captures > 0 || **uris > 0)
        .map(|(at, (captures, uris))| (at / 12 * 100 + at % 12 + 1, *captures, *uris))
        .collect();
    out.set_item("months", months)?;
    let kinds: Vec<_> = rows
        .kinds()
        .map(|kind| (bytes(&kind.mime), bytes(&kind.status), kind.count))
        .collect();
    out.set_item("kinds", kinds)?;
    let schemes: Vec<_> = rows.schemes.iter().collect();
    out.set_item("schemes", schemes)?;
    let samples: Vec<_> = rows
        .samples()
        .map(|(date, url)| (date, bytes(url)))
        .collect();
    out.set_item("samples", samples)?;
    out.set_item("captures_by_uri", found.captures().counts())?;
    out.set_item("path_query", found.path_query())?;
    out.set_item("page_depths", found.page_depths())?;
    out.set_item("hosts_by_depth", &found.hosts_by_depth)?;
    out.set_item("pages_by_host_depth", &found.pages_by_host_depth)?;
    out.set_item("ip", domain(&found.ip))?;
    let domains: Vec<_> = found
        .domains()
        .into_iter()
        .map(|each| (bytes(&each.name), domain(each)))
        .collect();
    out.set_item("domains", domains)?;
    let levels: Vec<_> = found
        .levels()
        .into_iter()
        .map(|level| (level.name, level.prefixes.counts(), level.children.counts()))
        .collect();
    out.set_item("levels", levels)?;
    let pages: Vec<_> = found
        .busy_pages()
        .into_iter()
        .map(|page| {
            (
                bytes(&page.key),
                page.captures,
                page.host_captures,
                page.host_uris,
            )
        })
        .collect();
    out.set_item("busy_pages", pages)?;
    let hosts: Vec<_> = found
        .busy_hosts()
        .into_iter()
        .map(|host| (bytes(&host.host), host.captures, host.uris))
        .collect();
    out.set_item("busy_hosts", hosts)?;
    Ok(out)
}
