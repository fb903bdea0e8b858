//! Bindings for parsing `TimeMap`s: `unlost_core::memento::list::read`, and the detection of repeated mementos.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyString;
use unlost_core::memento::list;

use crate::link_format::{List, SMALL_BYTES, list, occurred};
use crate::mementos::Mementos;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<MementoDedup>()?;
    module.add_function(wrap_pyfunction!(read_mementos, module)?)
}

/// Detects mementos that were listed before.
#[pyclass(frozen, module = "unlost._core")]
#[derive(Default)]
struct MementoDedup {
    inner: Mutex<list::DedupSet>,
}

#[pymethods]
impl MementoDedup {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Add mementos, and return how many of them are new.
    fn add(&self, py: Python<'_>, mementos: &Bound<'_, Mementos>) -> usize {
        let mementos = &mementos.get().inner;
        py.detach(|| {
            self.inner
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .add(mementos)
        })
    }
}

type Listing<'py> = (
    Mementos,
    Option<Bound<'py, PyString>>,
    Option<List<'py>>,
    Option<Bound<'py, PyString>>,
    Vec<List<'py>>,
    usize,
    Vec<(&'static str, usize, usize)>,
);

#[pyfunction]
fn read_mementos<'py>(py: Python<'py>, body: &[u8], archive: &str, base: &str) -> Listing<'py> {
    // Other threads run meanwhile; for a short list, releasing the GIL costs more than parsing.
    let timemap = if body.len() < SMALL_BYTES {
        list::read(body, archive, base)
    } else {
        py.detach(|| list::read(body, archive, base))
    };
    (
        Mementos {
            inner: timemap.mementos,
        },
        timemap
            .original
            .as_deref()
            .map(|uri| PyString::new(py, uri)),
        timemap.self_link.map(|link| list(py, link)),
        timemap
            .timegate
            .as_deref()
            .map(|uri| PyString::new(py, uri)),
        timemap
            .timemaps
            .into_iter()
            .map(|link| list(py, link))
            .collect(),
        timemap.other_links,
        occurred(timemap.faults),
    )
}
