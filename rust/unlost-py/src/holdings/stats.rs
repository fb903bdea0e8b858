//! Bindings of what is told of indexes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use unlost_core::formats::{Damage, Layout};
use unlost_core::holdings::HoldingsError;
use unlost_core::holdings::stats::{
    self, Distinct, Domain, Estimates, Estimator, FIRST_YEAR, Frequent, Gatherer, Histogram,
    HostCounter, MONTHS, RowCounts, RunCounter, Statistics, YEARS,
};

use super::build::{Progress, RowColumns, row};
use super::convert::{self, PyTally, raise};
use super::once::Once;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StatisticsGatherer>()?;
    module.add_class::<StatisticsPart>()?;
    module.add_class::<StatisticsHosts>()?;
    module.add_function(wrap_pyfunction!(sample_lot, module)?)?;
    module.add_class::<FrequentTexts>()?;
    module.add_class::<DistinctTexts>()
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
    ) -> PyResult<(PyTally, Option<&'static str>)> {
        let layout = urls.then_some(Layout::Urls { column });
        let (tally, damage) = self.0.with(py, |work| {
            let file = File::open(path)?;
            match work {
                Work::Exact(work) => work.add_file(file, layout, &progress.0),
                Work::Estimated(work) => work.add_file(file, layout, &progress.0),
            }
        })?;
        Ok((convert::tally(tally), damage.map(Damage::kind)))
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
    ) -> PyResult<(PyTally, Option<&'static str>)> {
        let layout = urls.then_some(Layout::Urls { column });
        let (tally, damage) = self.0.with(py, |work| {
            work.add_file(File::open(path)?, layout, &progress.0)
        })?;
        Ok((convert::tally(tally), damage.map(Damage::kind)))
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

/// Texts that occur most often, in bounded memory.
#[pyclass(frozen, module = "unlost._core")]
struct FrequentTexts(Mutex<Frequent>);

#[pymethods]
impl FrequentTexts {
    #[new]
    fn new(size: usize) -> Self {
        Self(Mutex::new(Frequent::new(size)))
    }

    #[pyo3(signature = (text, times=1))]
    fn see(&self, text: String, times: u64) {
        self.lock().see(text, times);
    }

    /// Texts, and between which numbers they occurred.
    fn first(&self, most: usize) -> Vec<(String, u64, u64)> {
        self.lock().first(most)
    }

    #[getter]
    fn error(&self) -> u64 {
        self.lock().error()
    }
}

impl FrequentTexts {
    fn lock(&self) -> std::sync::MutexGuard<'_, Frequent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many different texts there are, about.
#[pyclass(frozen, module = "unlost._core")]
#[derive(Default)]
struct DistinctTexts(Mutex<Distinct>);

#[pymethods]
impl DistinctTexts {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn see(&self, text: &str) {
        self.lock().see_text(text.as_bytes());
    }

    /// The number, and between which it lies in 95 of 100 cases.
    fn estimate(&self) -> (u64, u64, u64) {
        self.lock().estimate()
    }
}

impl DistinctTexts {
    fn lock(&self) -> std::sync::MutexGuard<'_, Distinct> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    let out = PyDict::new(py);
    set_rows(&out, &found.rows)?;
    for (name, number) in [
        ("uris", found.uris),
        ("pages", found.pages),
        ("hosts", found.hosts),
    ] {
        out.set_item(name, number)?;
    }
    let years: Vec<_> = with_years(found.year_uris()).collect();
    out.set_item("year_uris", years)?;
    let new: Vec<_> = with_months(found.new_uris()).collect();
    out.set_item("new_uris", new)?;
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

fn estimated<'py>(py: Python<'py>, found: &Estimates) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    set_rows(&out, &found.rows)?;
    for (name, sketch) in [
        ("uris", &found.uris),
        ("pages", &found.pages),
        ("hosts", &found.hosts),
        ("ips", &found.ips),
    ] {
        out.set_item(name, sketch.estimate())?;
    }
    out.set_item("ip_captures", found.ip_captures)?;
    let domains: Vec<_> = found
        .domains
        .iter()
        .map(|(name, captures)| (PyBytes::new(py, name), *captures))
        .collect();
    out.set_item("domains", domains)?;
    out.set_item("path_query", &found.path_query[..])?;
    let uris: Vec<_> = found
        .busy_uris()
        .into_iter()
        .map(|uri| (uri.key, uri.captures, uri.others, uri.others_captures))
        .collect();
    out.set_item("busy_pages", uris)?;
    out.set_item("busy_hosts", found.busy_hosts())?;
    out.set_item("busy_pages_error", found.top_uris.error())?;
    out.set_item("busy_hosts_error", found.top_hosts.error())?;
    let levels: Vec<_> = found
        .depths
        .levels()
        .into_iter()
        .map(|level| {
            (
                level.name,
                level.prefixes,
                level.pages,
                level.parents,
                level.max,
                level.median,
                level.deviation,
            )
        })
        .collect();
    out.set_item("levels", levels)?;
    let (hosts, pages) = (found.hosts.estimate().0, found.pages.estimate().0);
    let names = ["hosts_by_depth", "pages_by_host_depth", "page_depths"];
    for (name, counts) in names.into_iter().zip(found.depths.exact(hosts, pages)) {
        out.set_item(name, counts)?;
    }
    out.set_item("sampled_pages", found.depths.share())?;
    out.set_item("sampled", found.sample.share())?;
    let mut by_captures = Histogram::default();
    let (mut years, mut new) = (vec![0; YEARS], vec![0; MONTHS]);
    for uri in found.sample.values() {
        by_captures.add(uri.captures, 1);
        for (year, count) in years.iter_mut().enumerate() {
            *count += uri.years >> year & 1;
        }
        if let Some(count) = new.get_mut(usize::from(uri.first)) {
            *count += 1;
        }
    }
    out.set_item("captures_by_uri", by_captures.counts())?;
    out.set_item("year_uris", with_years(&years).collect::<Vec<_>>())?;
    out.set_item("new_uris", with_months(&new).collect::<Vec<_>>())?;
    Ok(out)
}

/// What is counted by row, whatever the order.
fn set_rows(out: &Bound<'_, PyDict>, rows: &RowCounts) -> PyResult<()> {
    let bytes = |bytes: &[u8]| PyBytes::new(out.py(), bytes).unbind();
    for (name, number) in [
        ("text_bytes", rows.text_bytes),
        ("captures", rows.captures),
        ("record_bytes", rows.record_bytes),
        ("sized", rows.sized),
        ("first", rows.first),
        ("last", rows.last),
        ("odd_dates", rows.odd_dates),
        ("further_kinds", rows.further_kinds),
    ] {
        out.set_item(name, number)?;
    }
    let classes: Vec<_> = (FIRST_YEAR..)
        .zip(&rows.classes)
        .filter(|(_, classes)| classes.iter().any(|count| *count > 0))
        .map(|(year, classes)| (year, classes.to_vec()))
        .collect();
    out.set_item("years", classes)?;
    out.set_item("months", with_months(&rows.months).collect::<Vec<_>>())?;
    let kinds: Vec<_> = rows
        .kinds()
        .map(|kind| (bytes(&kind.mime), bytes(&kind.status), kind.count))
        .collect();
    out.set_item("kinds", kinds)?;
    out.set_item("schemes", rows.schemes.iter().collect::<Vec<_>>())?;
    let samples: Vec<_> = rows
        .samples()
        .map(|(date, url)| (date, bytes(url)))
        .collect();
    out.set_item("samples", samples)
}

/// Years with a count, such as 2014.
fn with_years(counts: &[u64]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let years = (FIRST_YEAR..).zip(counts.iter().copied());
    years.filter(|(_, count)| *count > 0)
}

/// Months with a count, such as 201401.
fn with_months(counts: &[u64]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let months = (FIRST_YEAR * 12..).zip(counts.iter().copied());
    months
        .filter(|(_, count)| *count > 0)
        .map(|(at, count)| (at / 12 * 100 + at % 12 + 1, count))
}
