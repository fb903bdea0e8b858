//! What a map says about a page.

use std::hash::{Hash, Hasher};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString, PyType};
use unlost_core::holdings::Frequency;
use unlost_core::holdings::lookup;

use crate::errors::raise_input;

static FREQUENCY: PyOnceLock<Py<PyType>> = PyOnceLock::new();

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Answer>()
}

/// What a map says about one page: Answer(key, held, matched=None, frequency=None).
///
/// key: the page's key, without its query.
/// held: whether the archive holds it, as far as the map tells.
/// matched: the key of the map that says so; None if no key of the map covers the page, which is then not held.
/// frequency: what stands behind that key; None as well if nothing matched.
///
/// Answers with the same values are equal, and can be hashed and pickled.
///
/// >>> Answer("org,arxiv)/pdf/1", False, "org,arxiv)/pdf/*", Frequency(0))
/// Answer(key='org,arxiv)/pdf/1', held=False, matched='org,arxiv)/pdf/*', frequency='0')
#[pyclass(frozen, eq, hash, module = "unlost._core")]
#[derive(PartialEq, Eq)]
pub struct Answer {
    /// The key, then the key that matched: most answers are never asked for either.
    text: Box<[u8]>,
    key_length: usize,
    is_matched: bool,
    held: bool,
    frequency: Option<Frequency>,
}

impl Hash for Answer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal ones have equal texts; the rest seldom tells any apart.
        self.text.hash(state);
        self.held.hash(state);
    }
}

impl From<lookup::Answer<'_>> for Answer {
    fn from(answer: lookup::Answer<'_>) -> Self {
        let (matched, frequency) = match answer.found {
            Some((matched, frequency)) => (Some(matched), Some(frequency)),
            None => (None, None),
        };
        let held = frequency.is_some_and(Frequency::is_held);
        Self::of(answer.key, held, matched, frequency)
    }
}

impl Answer {
    fn of(key: &[u8], held: bool, matched: Option<&[u8]>, frequency: Option<Frequency>) -> Self {
        let other = matched.unwrap_or_default();
        let mut text = Vec::with_capacity(key.len() + other.len());
        text.extend_from_slice(key);
        text.extend_from_slice(other);
        Self {
            text: text.into_boxed_slice(),
            key_length: key.len(),
            is_matched: matched.is_some(),
            held,
            frequency,
        }
    }

    fn frequency_text(&self) -> Option<String> {
        let mut out = Vec::new();
        self.frequency?.write(&mut out);
        Some(String::from_utf8_lossy(&out).into_owned())
    }
}

/// Keys of addresses are ASCII; those that were given as they are may be anything.
fn string<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text)),
        Err(_) => Ok(PyBytes::new(py, bytes)
            .call_method1("decode", ("utf-8", "surrogateescape"))?
            .cast_into()?),
    }
}

#[pymethods]
impl Answer {
    #[new]
    #[pyo3(signature = (key, held, matched=None, frequency=None))]
    fn new(
        key: &Bound<'_, PyAny>,
        held: bool,
        matched: Option<&Bound<'_, PyAny>>,
        frequency: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let key = crate::uri::text(key)?;
        let matched = matched.map(crate::uri::text).transpose()?;
        let frequency = match frequency {
            None => None,
            Some(frequency) => {
                let text = frequency.str()?;
                let read = Frequency::parse(text.to_str()?.as_bytes());
                let message = || "expected a frequency such as 300+/20-".to_owned();
                Some(read.ok_or_else(|| raise_input(text.py(), message()))?)
            }
        };
        Ok(Self::of(&key, held, matched.as_deref(), frequency))
    }

    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        string(py, &self.text[..self.key_length])
    }

    #[getter]
    fn held(&self) -> bool {
        self.held
    }

    #[getter]
    fn matched<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        self.is_matched
            .then(|| string(py, &self.text[self.key_length..]))
            .transpose()
    }

    #[getter]
    fn frequency<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(Frequency {
            mementos,
            resources,
        }) = self.frequency
        else {
            return Ok(None);
        };
        FREQUENCY
            .import(py, "unlost.formats.frequency", "Frequency")?
            .call1((
                mementos.value(),
                mementos.bound(),
                resources.value(),
                resources.bound(),
            ))
            .map(Some)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let matched = match self.matched(py)? {
            Some(matched) => matched.repr()?.to_string(),
            None => "None".to_owned(),
        };
        let frequency = self
            .frequency_text()
            .map_or("None".to_owned(), |text| format!("'{text}'"));
        Ok(format!(
            "Answer(key={}, held={}, matched={matched}, frequency={frequency})",
            self.key(py)?.repr()?,
            if self.held { "True" } else { "False" },
        ))
    }

    #[allow(clippy::type_complexity)]
    fn __getnewargs__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(
        Bound<'py, PyString>,
        bool,
        Option<Bound<'py, PyString>>,
        Option<String>,
    )> {
        let frequency = self.frequency_text();
        Ok((self.key(py)?, self.held, self.matched(py)?, frequency))
    }
}
