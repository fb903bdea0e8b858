//! Bindings of `unlost_core::html::rewriting`.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use unlost_core::html::rewriting::{self, Directory, Options, RelativeLink, ReplacementUrl};
use unlost_core::html::{LinkKind, MAX_URL_BYTES};

use crate::errors::raise_usage;
use crate::html::{aside, is_short};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LinkDirectory>()?;
    module.add_function(wrap_pyfunction!(rewrite_links, module)?)
}

/// The fields of `unlost.html.RewriteResult`.
type Rewritten = (
    Py<PyBytes>,
    usize,
    usize,
    Option<&'static str>,
    Option<&'static str>,
    bool,
    bool,
    bool,
    Py<PyTuple>,
);

/// Calls `replace` for each link, with its kind from `kinds`: pages, requisites and lists. Links that `directory`
/// contains are written relative to `folder` without a call. An unchanged body is returned as the same object.
/// `disable`: whether to disable `<base>`, subresource integrity, and the content security policy. `candidate` is
/// called for each URL that scripts may use.
#[pyfunction]
#[expect(clippy::too_many_arguments)]
fn rewrite_links(
    body: &Bound<'_, PyBytes>,
    mime: Option<&str>,
    base: &str,
    charset: Option<&str>,
    disable: (bool, bool, bool),
    kinds: (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>),
    replace: &Bound<'_, PyAny>,
    candidate: Option<&Bound<'_, PyAny>>,
    directory: Option<&Bound<'_, LinkDirectory>>,
    folder: &str,
) -> PyResult<Rewritten> {
    let py = body.py();
    let (drop_base, drop_integrity, drop_policy) = disable;
    let options = Options {
        drop_base,
        drop_integrity,
        drop_policy,
        candidates: candidate.is_some(),
    };
    let bytes = body.as_bytes();
    let document = aside(py, is_short(bytes), || {
        rewriting::find(bytes, mime, base, charset, options)
    });
    let links = document.links();
    let mut known: Vec<Option<RelativeLink>> = Vec::new();
    let mut text = String::new();
    let mut groups: Vec<usize> = Vec::new();
    if let Some(directory) = directory {
        // Not locked during callbacks, which may add to it.
        let directory = directory.get().read();
        known.extend(links.clone().map(|link| {
            let (sign, group) = directory.relative_url(link, folder, &mut text)?;
            let group = usize::from(group);
            if groups.len() <= group {
                groups.resize(group + 1, 0);
            }
            groups[group] += 1;
            Some(sign)
        }));
    }
    let number = links.len();
    let known = |nth: usize| known.get(nth).and_then(Option::as_ref);
    let mut requested = Vec::with_capacity(number);
    for (nth, (uri, kind)) in links.enumerate() {
        if known(nth).is_none() {
            let kind = match kind {
                LinkKind::Page => &kinds.0,
                LinkKind::Requisite => &kinds.1,
                LinkKind::List => &kinds.2,
            };
            requested.push(call(replace, &PyString::new(py, uri), kind)?);
        }
    }
    let mut requested = requested.iter();
    let mut replacements = Vec::with_capacity(number);
    for nth in 0..number {
        replacements.push(match known(nth) {
            None => requested.next().map_or(Ok(None), replacement_url)?,
            Some(RelativeLink::Unchanged) => None,
            Some(RelativeLink::Relative(span, spelled)) => {
                let replacement = spelled.replacement(&text[span.clone()]);
                Some(replacement.ok_or_else(|| invalid_url(py))?)
            }
        });
    }
    let mut candidate_results = Vec::new();
    if let Some(candidate) = candidate {
        for uri in document.candidates() {
            candidate_results.push(candidate.call1((uri,))?);
        }
    }
    let candidates = candidate_results
        .iter()
        .map(replacement_url)
        .collect::<PyResult<Vec<_>>>()?;
    let (plan, length) = aside(py, is_short(bytes), || {
        let plan = document.plan(&replacements, &candidates);
        let length = plan.length(bytes);
        (plan, length)
    });
    let is_new = plan.has_edits();
    let new = if is_new {
        PyBytes::new_with(py, length, |out| {
            plan.write(bytes, out);
            Ok(())
        })?
        .unbind()
    } else {
        body.clone().unbind()
    };
    let is_transcoded = is_new && document.transcoded;
    Ok((
        new,
        plan.changed,
        plan.not_replaced,
        document.encoding.filter(|_| is_transcoded),
        if is_transcoded {
            Some("UTF-8")
        } else {
            document.encoding
        },
        is_new && document.unpacked,
        document.has_policy(),
        document.cut,
        PyTuple::new(py, groups)?.unbind(),
    ))
}

/// Calls a function with two arguments without creating a tuple for them.
///
/// With the stable ABI of Python 3.11, `call1` creates a tuple for each call. Measured: that takes a third of the time
/// of a short callback, which is called a hundred times per page.
#[allow(unsafe_code)]
fn call<'py>(
    function: &Bound<'py, PyAny>,
    first: &Bound<'py, PyAny>,
    second: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: three live objects, and a null after the arguments, as the function requires; it returns an owned object,
    // or null with an error set.
    unsafe {
        let result = ffi::PyObject_CallFunctionObjArgs(
            function.as_ptr(),
            first.as_ptr(),
            second.as_ptr(),
            std::ptr::null_mut::<ffi::PyObject>(),
        );
        Bound::from_owned_ptr_or_err(function.py(), result)
    }
}

/// Replacement links for all pages of a site.
#[pyclass(frozen, module = "unlost._core")]
struct LinkDirectory(RwLock<Directory>);

impl LinkDirectory {
    fn read(&self) -> RwLockReadGuard<'_, Directory> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl LinkDirectory {
    #[new]
    fn new(max_bytes: usize) -> Self {
        Self(RwLock::new(Directory::new(max_bytes)))
    }

    /// Adds the replacement of a URL: that of a file, relative to the top of the site, or unchanged.
    fn add(
        &self,
        py: Python<'_>,
        uri: &str,
        kind: &str,
        url: Option<&str>,
        group: u8,
    ) -> PyResult<()> {
        let kind = [LinkKind::Page, LinkKind::Requisite, LinkKind::List]
            .into_iter()
            .find(|known| known.name() == kind)
            .ok_or_else(|| raise_usage(py, format!("{kind}: no kind of a link")))?;
        let mut directory = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if directory.add(uri, kind, url, group) {
            Ok(())
        } else {
            Err(invalid_url(py))
        }
    }
}

/// Converts the result of a callback to a replacement URL; `None` leaves the link unchanged.
fn replacement_url<'a>(result: &'a Bound<'_, PyAny>) -> PyResult<Option<ReplacementUrl<'a>>> {
    if result.is_none() {
        return Ok(None);
    }
    // A lone surrogate is invalid, too.
    let text = result.cast::<PyString>()?.to_str().unwrap_or_default();
    let written = ReplacementUrl::of(text);
    if written.is_some() {
        return Ok(written);
    }
    Err(invalid_url(result.py()))
}

fn invalid_url(py: Python<'_>) -> PyErr {
    raise_usage(
        py,
        format!(
            "a new URL must have 1 to {MAX_URL_BYTES} characters of ASCII, none of them a blank or control: \
             escape others as %XX"
        ),
    )
}
