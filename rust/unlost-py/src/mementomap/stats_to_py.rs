//! Converts statistics to Python.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use unlost_core::mementomap::stats::{
    Domain, Estimates, FIRST_YEAR, Histogram, MONTHS, RowCounts, Statistics, YEARS,
};

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

/// Exact statistics as a dictionary.
pub fn exact_to_py<'py>(py: Python<'py>, statistics: &Statistics) -> PyResult<Bound<'py, PyDict>> {
    let bytes = |bytes: &[u8]| PyBytes::new(py, bytes).unbind();
    let out = PyDict::new(py);
    set_rows(&out, &statistics.rows)?;
    for (name, number) in [
        ("uris", statistics.uris),
        ("pages", statistics.pages),
        ("hosts", statistics.hosts),
    ] {
        out.set_item(name, number)?;
    }
    let years: Vec<_> = with_years(statistics.year_uris()).collect();
    out.set_item("year_uris", years)?;
    let new: Vec<_> = with_months(statistics.new_uris()).collect();
    out.set_item("new_uris", new)?;
    out.set_item("captures_by_uri", statistics.captures().counts())?;
    out.set_item("path_query", statistics.path_query())?;
    out.set_item("page_depths", statistics.page_depths())?;
    out.set_item("hosts_by_depth", &statistics.hosts_by_depth)?;
    out.set_item("pages_by_host_depth", &statistics.pages_by_host_depth)?;
    out.set_item("ip", domain(&statistics.ip))?;
    let domains: Vec<_> = statistics
        .domains()
        .into_iter()
        .map(|each| (bytes(&each.name), domain(each)))
        .collect();
    out.set_item("domains", domains)?;
    let levels: Vec<_> = statistics
        .levels()
        .into_iter()
        .map(|level| (level.name, level.prefixes.counts(), level.children.counts()))
        .collect();
    out.set_item("levels", levels)?;
    let pages: Vec<_> = statistics
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
    let hosts: Vec<_> = statistics
        .busy_hosts()
        .into_iter()
        .map(|host| (bytes(&host.host), host.captures, host.uris))
        .collect();
    out.set_item("busy_hosts", hosts)?;
    Ok(out)
}

/// Estimated statistics as a dictionary.
pub fn estimated_to_py<'py>(
    py: Python<'py>,
    statistics: &Estimates,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    set_rows(&out, &statistics.rows)?;
    for (name, sketch) in [
        ("uris", &statistics.uris),
        ("pages", &statistics.pages),
        ("hosts", &statistics.hosts),
        ("ips", &statistics.ips),
    ] {
        out.set_item(name, sketch.estimate())?;
    }
    out.set_item("ip_captures", statistics.ip_captures)?;
    let domains: Vec<_> = statistics
        .domains
        .iter()
        .map(|(name, captures)| (PyBytes::new(py, name), *captures))
        .collect();
    out.set_item("domains", domains)?;
    out.set_item("path_query", &statistics.path_query[..])?;
    let uris: Vec<_> = statistics
        .busy_uris()
        .into_iter()
        .map(|uri| (uri.key, uri.captures, uri.others, uri.others_captures))
        .collect();
    out.set_item("busy_pages", uris)?;
    out.set_item("busy_hosts", statistics.busy_hosts())?;
    out.set_item("busy_pages_error", statistics.top_uris.error())?;
    out.set_item("busy_hosts_error", statistics.top_hosts.error())?;
    let levels: Vec<_> = statistics
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
    let (hosts, pages) = (statistics.hosts.estimate().0, statistics.pages.estimate().0);
    let names = ["hosts_by_depth", "pages_by_host_depth", "page_depths"];
    for (name, counts) in names.into_iter().zip(statistics.depths.exact(hosts, pages)) {
        out.set_item(name, counts)?;
    }
    out.set_item("sampled_pages", statistics.depths.share())?;
    out.set_item("sampled", statistics.sample.share())?;
    let mut by_captures = Histogram::default();
    let (mut years, mut new) = (vec![0; YEARS], vec![0; MONTHS]);
    for uri in statistics.sample.values() {
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

/// Row statistics, for rows in any order.
fn set_rows(out: &Bound<'_, PyDict>, rows: &RowCounts) -> PyResult<()> {
    let bytes = |bytes: &[u8]| PyBytes::new(out.py(), bytes).unbind();
    for (name, number) in [
        ("text_bytes", rows.text_bytes),
        ("captures", rows.captures),
        ("record_bytes", rows.record_bytes),
        ("sized", rows.sized),
        ("first", rows.first),
        ("last", rows.last),
        ("invalid_dates", rows.invalid_dates),
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
