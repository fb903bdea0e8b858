//! The look-up results for many pages: a sequence that creates its items on access.

use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyType};
use unlost_core::mementomap::lookup::{self, GROUP_SIZE};

use super::lookup_result::LookupResult;
use crate::errors::uri_error;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LookupResults>()?;
    module.add_class::<LookupResultsIterator>()?;
    let sequence = module.py().import("collections.abc")?.getattr("Sequence")?;
    sequence.call_method1("register", (module.py().get_type::<LookupResults>(),))?;
    Ok(())
}

/// The results of many queries in order: for each a LookupResult, or the UriError of an invalid query.
///
/// A sequence, equal to a list of the same items. Items are created on access, since many callers need only `held`, or
/// drop each item before the next. The fastest way to create a list of all items is a slice, results[:], which suspends
/// the garbage collector.
#[pyclass(frozen, sequence, module = "unlost._core")]
pub struct LookupResults {
    /// All but the last are full.
    groups: Vec<Arc<lookup::LookupResults>>,
    len: usize,
}

impl LookupResults {
    pub fn new(groups: Vec<lookup::LookupResults>) -> Self {
        Self {
            len: groups.iter().map(lookup::LookupResults::len).sum(),
            groups: groups.into_iter().map(Arc::new).collect(),
        }
    }

    fn item<'py>(&self, py: Python<'py>, i: usize) -> PyResult<Bound<'py, PyAny>> {
        match LookupResult::of(&self.groups[i / GROUP_SIZE], i % GROUP_SIZE) {
            Ok(result) => Ok(Bound::new(py, result)?.into_any()),
            Err(error) => uri_error(py, error),
        }
    }

    fn held_each(&self) -> impl Iterator<Item = bool> {
        self.groups
            .iter()
            .flat_map(|group| (0..group.len()).map(|i| group.is_held(i)))
    }
}

#[pymethods]
impl LookupResults {
    /// For each whether the page is held; false for invalid URLs.
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let held: Vec<bool> = self.held_each().collect();
        PyList::new(py, held)
    }

    fn __len__(&self) -> usize {
        self.len
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        if let Ok(slice) = index.cast::<PySlice>() {
            let indices = slice.indices(isize::try_from(self.len)?)?;
            let items = PyList::empty(py);
            without_collecting(py, || {
                let mut position = indices.start;
                for _ in 0..indices.slicelength {
                    items.append(self.item(py, position.unsigned_abs())?)?;
                    position += indices.step;
                }
                Ok(())
            })?;
            return Ok(items.into_any());
        }
        let requested: isize = index
            .extract()
            .map_err(|_| PyTypeError::new_err("results are numbered: give a number or a slice"))?;
        let len = isize::try_from(self.len)?;
        let i = if requested < 0 {
            requested + len
        } else {
            requested
        };
        if i < 0 || i >= len {
            return Err(PyIndexError::new_err(format!(
                "there are {len} results, none numbered {requested}"
            )));
        }
        self.item(py, i.unsigned_abs())
    }

    fn __iter__(results: Bound<'_, Self>) -> LookupResultsIterator {
        LookupResultsIterator {
            results: results.unbind(),
            next: 0,
        }
    }

    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        let is_equal = if let Ok(other) = other.cast::<Self>() {
            let other = other.get();
            let groups = self.groups.iter().zip(&other.groups);
            self.len == other.len && groups.into_iter().all(|(ours, theirs)| ours == theirs)
        } else if let Ok(list) = other.cast::<PyList>() {
            let mut is_equal = self.len == list.len();
            for (i, theirs) in list.iter().enumerate() {
                is_equal = is_equal && self.item(py, i)?.eq(theirs)?;
            }
            is_equal
        } else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        Ok(is_equal.into_pyobject(py)?.to_owned().into_any())
    }

    fn __repr__(&self) -> String {
        let held = self.held_each().filter(|&held| held).count();
        format!("<{} results, {held} held>", self.len)
    }

    /// For annotations: `LookupResults[LookupResult]` without invalid URLs, `LookupResults[LookupResult | UriError]`
    /// otherwise.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        _item: &Bound<'py, PyAny>,
    ) -> Bound<'py, PyType> {
        class.clone()
    }
}

/// Creates many objects without repeated runs of the garbage collector, which would search them and everything else for
/// cycles: results refer to nothing.
fn without_collecting(py: Python<'_>, make: impl FnOnce() -> PyResult<()>) -> PyResult<()> {
    let collector = py.import("gc")?;
    let was_enabled = collector.call_method0("isenabled")?.is_truthy()?;
    collector.call_method0("disable")?;
    let made = make();
    if was_enabled {
        collector.call_method0("enable")?;
    }
    made
}

/// Iterates over results.
#[pyclass(module = "unlost._core")]
struct LookupResultsIterator {
    results: Py<LookupResults>,
    next: usize,
}

#[pymethods]
impl LookupResultsIterator {
    fn __iter__(iterator: PyRef<'_, Self>) -> PyRef<'_, Self> {
        iterator
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let results = self.results.get();
        if self.next == results.len {
            return Ok(None);
        }
        self.next += 1;
        results.item(py, self.next - 1).map(Some)
    }
}
