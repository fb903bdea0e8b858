//! Bindings of `unlost_core::pages::rewriting`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use unlost_core::pages::MAX_ADDRESS_BYTES;
use unlost_core::pages::rewriting::{self, Options, Spotted};

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
    /// The addresses, and what each is for as the first letter of the word for it.
    #[getter]
    fn links<'py>(&self, py: Python<'py>) -> (Vec<Bound<'py, PyString>>, Bound<'py, PyBytes>) {
        let links = self.spotted.links();
        let uses: Vec<u8> = links
            .iter()
            .map(|(_, purpose)| purpose.name().as_bytes()[0])
            .collect();
        let uris = links.iter().map(|(uri, _)| PyString::new(py, uri));
        (uris.collect(), PyBytes::new(py, &uses))
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
        let answers = answers.iter().map(|answer| address(&answer));
        let answers = answers.collect::<PyResult<Vec<_>>>()?;
        let body = self.body.bind(py).as_bytes();
        let spliced = aside(py, is_short(body), || self.spotted.splice(body, &answers));
        let new = spliced.body.map(|new| PyBytes::new(py, &new).unbind());
        let is_new = new.is_some();
        let body = new.unwrap_or_else(|| self.body.clone_ref(py));
        Ok((body, is_new, spliced.changed, spliced.left))
    }
}

/// An address that may be written into a page, or none.
fn address(answer: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if answer.is_none() {
        return Ok(None);
    }
    let text = answer.cast::<PyString>()?.to_string_lossy();
    let is_written = text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_written && (1..=MAX_ADDRESS_BYTES).contains(&text.len()) {
        return Ok(Some(text.into_owned()));
    }
    Err(raise_usage(
        answer.py(),
        format!(
            "a new address must have 1 to {MAX_ADDRESS_BYTES} characters of ASCII, none of them a blank or control: \
             escape others as %XX"
        ),
    ))
}
