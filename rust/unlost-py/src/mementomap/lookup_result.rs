//! The look-up result for one page.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString, PyType};
use unlost_core::mementomap::Frequency;
use unlost_core::mementomap::lookup;
use unlost_core::uri::UriError;

use crate::errors::raise_input;

static FREQUENCY: PyOnceLock<Py<PyType>> = PyOnceLock::new();

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LookupResult>()
}

/// The result of looking up a page in a map: LookupResult(key, held, matched=None, frequency=None).
///
/// key: the page's key, without its query. held: whether the archive holds it, according to the map. matched: the
/// matched key of the map; None if no key of the map covers the page, which is then not held. frequency: the frequency
/// of that key; None as well if nothing matched.
///
/// Results with the same values are equal, and can be hashed and pickled.
///
/// >>> LookupResult("org,arxiv)/pdf/1", False, "org,arxiv)/pdf/*", Frequency(0))
/// LookupResult(key='org,arxiv)/pdf/1', held=False, matched='org,arxiv)/pdf/*', frequency='0')
#[pyclass(frozen, eq, hash, module = "unlost._core")]
pub struct LookupResult {
    /// Shared with other results of the same batch: the texts of most are never requested.
    group: Arc<lookup::LookupResults>,
    place: u32,
    held: bool,
}

impl PartialEq for LookupResult {
    fn eq(&self, other: &Self) -> bool {
        self.held == other.held && self.result() == other.result()
    }
}

impl Eq for LookupResult {}

impl Hash for LookupResult {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal results have equal keys; the other fields seldom differ for one key.
        self.result().key.hash(state);
    }
}

impl LookupResult {
    /// One of a group: the result of a query, or why the query is invalid.
    pub fn of(group: &Arc<lookup::LookupResults>, place: usize) -> Result<Self, &UriError> {
        group.get(place)?;
        Ok(Self {
            group: Arc::clone(group),
            // Groups contain some dozen results.
            place: place as u32,
            held: group.is_held(place),
        })
    }

    fn result(&self) -> lookup::LookupResult<'_> {
        match self.group.get(self.place as usize) {
            Ok(result) => result,
            Err(_) => unreachable!("only a valid result becomes an object"),
        }
    }

    fn frequency_text(&self) -> Option<String> {
        let mut out = Vec::new();
        self.result().matched?.1.write(&mut out);
        Some(String::from_utf8_lossy(&out).into_owned())
    }
}

/// Keys of URLs are ASCII; keys that were passed verbatim may be anything.
fn string<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text)),
        Err(_) => Ok(PyBytes::new(py, bytes)
            .call_method1("decode", ("utf-8", "surrogateescape"))?
            .cast_into()?),
    }
}

#[pymethods]
impl LookupResult {
    #[new]
    #[pyo3(signature = (key, held, matched=None, frequency=None))]
    fn new(
        key: &Bound<'_, PyAny>,
        held: bool,
        matched: Option<&Bound<'_, PyAny>>,
        frequency: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let key = crate::texts::text(key)?;
        let matched = matched.map(crate::texts::text).transpose()?;
        let frequency = match frequency {
            None => None,
            Some(frequency) => {
                let text = frequency.str()?;
                let read = Frequency::parse(text.to_str()?.as_bytes());
                let message = || "expected a frequency such as 300+/20-".to_owned();
                Some(read.ok_or_else(|| raise_input(text.py(), message()))?)
            }
        };
        let matched = match (matched.as_deref(), frequency) {
            (Some(matched), Some(frequency)) => Some((matched, frequency)),
            (None, None) => None,
            _ => return Err(PyTypeError::new_err("matched and frequency come together")),
        };
        let result = lookup::LookupResult { key: &key, matched };
        Ok(Self {
            group: Arc::new(lookup::LookupResults::of(result)),
            place: 0,
            held,
        })
    }

    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        string(py, self.result().key)
    }

    #[getter]
    fn held(&self) -> bool {
        self.held
    }

    #[getter]
    fn matched<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        let match_ = self.result().matched;
        match_.map(|(matched, _)| string(py, matched)).transpose()
    }

    #[getter]
    fn frequency<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some((_, frequency)) = self.result().matched else {
            return Ok(None);
        };
        let (mementos, resources) = (frequency.mementos, frequency.resources);
        FREQUENCY
            .import(py, "unlost.index.ukvs", "Frequency")?
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
            "LookupResult(key={}, held={}, matched={matched}, frequency={frequency})",
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
