//! Bindings of `unlost_core::pages::rewriting`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use unlost_core::pages::rewriting::{self, Answer, Options, Spotted};
use unlost_core::pages::{MAX_ADDRESS_BYTES, Use};

use crate::errors::raise_usage;
use crate::pages::{aside, is_short};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SpottedLinks>()?;
    module.add_function(wrap_pyfunction!(spot_links, module)?)
}

/// A body in which the links have been found.
#[pyclass(frozen, module = "unlost._core")]
struct SpottedLinks {
    spotted: Spotted,
    body: Py<PyBytes>,
}

#[pyfunction]
#[pyo3(signature = (body, mime, base, charset, *, drop_base, drop_integrity, drop_policy))]
fn spot_links(
    body: &Bound<'_, PyBytes>,
    mime: Option<&str>,
    base: &str,
    charset: Option<&str>,
    drop_base: bool,
    drop_integrity: bool,
    drop_policy: bool,
) -> SpottedLinks {
    let options = Options {
        drop_base,
        drop_integrity,
        drop_policy,
    };
    let bytes = body.as_bytes();
    let spotted = aside(body.py(), is_short(bytes), || {
        rewriting::find(bytes, mime, base, charset, options)
    });
    SpottedLinks {
        spotted,
        body: body.clone().unbind(),
    }
}

#[pymethods]
impl SpottedLinks {
    /// The addresses, and what each is for: one of `uses`, which are those for pages, requisites and lists.
    fn links<'py>(
        &self,
        py: Python<'py>,
        uses: (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>),
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let links = self.spotted.links();
        let uris = PyList::new(py, links.clone().map(|(uri, _)| PyString::new(py, uri)))?;
        let uses = PyList::new(
            py,
            links.map(|(_, purpose)| match purpose {
                Use::Page => &uses.0,
                Use::Requisite => &uses.1,
                Use::List => &uses.2,
            }),
        )?;
        Ok((uris, uses))
    }

    #[getter]
    fn encoding(&self) -> Option<&'static str> {
        self.spotted.encoding
    }

    #[getter]
    fn transcoded(&self) -> bool {
        self.spotted.transcoded
    }

    #[getter]
    fn unpacked(&self) -> bool {
        self.spotted.unpacked
    }

    #[getter]
    fn has_policy(&self) -> bool {
        self.spotted.has_policy()
    }

    #[getter]
    fn cut(&self) -> bool {
        self.spotted.cut
    }

    /// Answers are in the order of the links. A body of which nothing changes is the one that was given.
    fn splice(
        &self,
        py: Python<'_>,
        answers: &Bound<'_, PyList>,
    ) -> PyResult<(Py<PyBytes>, bool, usize, usize)> {
        // Whoever else has the list may change it meanwhile: what is borrowed from is held here.
        let answers: Vec<_> = answers.iter().collect();
        let answers = answers.iter().map(address).collect::<PyResult<Vec<_>>>()?;
        let body = self.body.bind(py).as_bytes();
        let (plan, length) = aside(py, is_short(body), || {
            let plan = self.spotted.plan(&answers);
            let length = plan.length(body);
            (plan, length)
        });
        let is_new = plan.has_edits();
        let new = if is_new {
            PyBytes::new_with(py, length, |out| {
                plan.write(body, out);
                Ok(())
            })?
            .unbind()
        } else {
            self.body.clone_ref(py)
        };
        Ok((new, is_new, plan.changed, plan.left))
    }
}

/// An address that may be written into a page, or none.
fn address<'a>(answer: &'a Bound<'_, PyAny>) -> PyResult<Option<Answer<'a>>> {
    if answer.is_none() {
        return Ok(None);
    }
    // Half a letter is none that may be written, either.
    let text = answer.cast::<PyString>()?.to_str().unwrap_or_default();
    let written = Answer::of(text);
    if written.is_some() {
        return Ok(written);
    }
    Err(raise_usage(
        answer.py(),
        format!(
            "a new address must have 1 to {MAX_ADDRESS_BYTES} characters of ASCII, none of them a blank or control: \
             escape others as %XX"
        ),
    ))
}
