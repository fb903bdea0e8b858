//! Bindings of `unlost_core::html`.

use pyo3::prelude::*;
use pyo3::types::PyString;
use unlost_core::html::{
    self, MAX_BODY_BYTES, MAX_LINKS, MAX_UNPACKED_BYTES, MAX_URL_BYTES, shingles,
};

use crate::errors::raise_usage;
use crate::rewriting;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MAX_PAGE_BYTES", MAX_BODY_BYTES)?;
    module.add("MAX_UNPACKED_PAGE_BYTES", MAX_UNPACKED_BYTES)?;
    module.add("MAX_PAGE_LINKS", MAX_LINKS)?;
    module.add("MAX_LINK_BYTES", MAX_URL_BYTES)?;
    module.add_function(wrap_pyfunction!(find_links, module)?)?;
    module.add_function(wrap_pyfunction!(page_text, module)?)?;
    module.add_function(wrap_pyfunction!(resemblance, module)?)?;
    module.add_function(wrap_pyfunction!(srcset_urls, module)?)?;
    module.add_function(wrap_pyfunction!(css_urls, module)?)?;
    module.add_function(wrap_pyfunction!(refresh_url, module)?)?;
    module.add_function(wrap_pyfunction!(script_candidates, module)?)?;
    module.add_function(wrap_pyfunction!(page_candidates, module)?)?;
    rewriting::add_to(module)
}

/// The size of uncompressed input that is read in some hundred microseconds.
const SMALL_BYTES: usize = 1 << 14;

/// Runs a task with the GIL released; for short input, releasing it would cost more than the task.
pub fn aside<T: Send>(py: Python<'_>, is_short: bool, task: impl Send + FnOnce() -> T) -> T {
    if is_short { task() } else { py.detach(task) }
}

pub fn is_short(body: &[u8]) -> bool {
    body.len() < SMALL_BYTES && !body.starts_with(b"\x1f\x8b")
}

type Links<'py> = (Vec<(Bound<'py, PyString>, &'static str)>, usize, bool);

#[pyfunction]
fn find_links<'py>(
    py: Python<'py>,
    body: &[u8],
    mime: Option<&str>,
    base: &str,
    charset: Option<&str>,
) -> Links<'py> {
    let body_links = aside(py, is_short(body), || html::find(body, mime, base, charset));
    let links = body_links.links.iter();
    let links = links.map(|(uri, kind)| (PyString::new(py, uri), kind.name()));
    (links.collect(), body_links.dropped, body_links.cut)
}

#[pyfunction]
fn page_text<'py>(
    py: Python<'py>,
    body: &[u8],
    mime: Option<&str>,
    base: &str,
    charset: Option<&str>,
) -> Option<(Bound<'py, PyString>, bool)> {
    let read = aside(py, is_short(body), || {
        html::text::read(body, mime, base, charset)
    });
    read.map(|read| (PyString::new(py, &read.text), read.cut))
}

#[pyfunction]
fn resemblance(
    py: Python<'_>,
    first: &Bound<'_, PyString>,
    second: &Bound<'_, PyString>,
    size: usize,
) -> PyResult<f64> {
    if size == 0 {
        return Err(raise_usage(
            py,
            "0: a shingle has at least one word".to_owned(),
        ));
    }
    // Lone surrogates separate words, like all characters other than letters and digits.
    let (first, second) = (first.to_string_lossy(), second.to_string_lossy());
    let is_short = first.len() + second.len() < SMALL_BYTES;
    Ok(aside(py, is_short, || {
        shingles::resemblance(&first, &second, size)
    }))
}

/// Spans are of bytes in UTF-8.
#[pyfunction]
fn srcset_urls(value: &str) -> Vec<(usize, usize)> {
    let spans = html::spans::srcset::urls(value);
    spans.map(|span| (span.start, span.end)).collect()
}

#[pyfunction]
fn css_urls(text: &str) -> Vec<(usize, usize, String)> {
    let mut found = Vec::new();
    html::spans::css::urls(text, |url| {
        found.push((url.span.start, url.span.end, url.value.to_string()));
    });
    found
}

#[pyfunction]
fn refresh_url(content: &str) -> Option<(usize, usize)> {
    html::spans::refresh::url(content).map(|span| (span.start, span.end))
}

#[pyfunction]
fn script_candidates(py: Python<'_>, body: &[u8], base: &str) -> Vec<String> {
    aside(py, is_short(body), || html::script_candidates(body, base))
}

#[pyfunction]
fn page_candidates(
    py: Python<'_>,
    body: &[u8],
    mime: Option<&str>,
    base: &str,
    charset: Option<&str>,
) -> Vec<String> {
    aside(py, is_short(body), || {
        html::page_candidates(body, mime, base, charset)
    })
}
