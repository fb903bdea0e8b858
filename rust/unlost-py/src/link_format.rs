//! Bindings of `unlost_core::memento::link_format`.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use unlost_core::memento::httpdate::Digits;
use unlost_core::memento::link_format::{self, Fault, TimeMapLink};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_timemap, module)?)
}

/// The size of input that is parsed in some hundred microseconds.
pub const SMALL_BYTES: usize = 1 << 18;

pub type List<'py> = (
    Bound<'py, PyString>,
    Option<String>,
    Option<Bound<'py, PyString>>,
    Option<Bound<'py, PyString>>,
);

type Columns<'py> = (
    Bound<'py, PyList>,
    Bound<'py, PyList>,
    Bound<'py, PyList>,
    Bound<'py, PyList>,
    Bound<'py, PyList>,
);

type TimeMap<'py> = (
    Option<Bound<'py, PyString>>,
    Option<List<'py>>,
    Option<Bound<'py, PyString>>,
    Vec<List<'py>>,
    Columns<'py>,
    usize,
    Vec<(&'static str, usize, usize)>,
);

fn date<'py>(py: Python<'py>, digits: &Digits) -> Bound<'py, PyString> {
    PyString::new(py, std::str::from_utf8(digits).unwrap_or_default())
}

pub fn list<'py>(py: Python<'py>, link: TimeMapLink<'_>) -> List<'py> {
    (
        PyString::new(py, &link.uri),
        link.media_type,
        link.from.map(|digits| date(py, &digits)),
        link.until.map(|digits| date(py, &digits)),
    )
}

/// The faults that occurred: kind, count, and offset of the first.
pub fn occurred(faults: [(usize, usize); Fault::ALL.len()]) -> Vec<(&'static str, usize, usize)> {
    Fault::ALL
        .iter()
        .zip(faults)
        .filter(|(_, (times, _))| *times > 0)
        .map(|(fault, (times, first))| (fault.kind(), times, first))
        .collect()
}

#[pyfunction]
fn read_timemap<'py>(py: Python<'py>, body: &[u8]) -> PyResult<TimeMap<'py>> {
    // Other threads run meanwhile; for a short list, releasing the GIL costs more than parsing.
    let timemap = if body.len() < SMALL_BYTES {
        link_format::read(body)
    } else {
        py.detach(|| link_format::read(body))
    };
    // Columns, not rows: Python makes its own tuples of them, and temporary tuples would cost as much again.
    let all = &timemap.mementos;
    let mementos = (
        PyList::new(py, all.iter().map(|each| PyString::new(py, &each.uri)))?,
        PyList::new(py, all.iter().map(|each| date(py, &each.datetime)))?,
        PyList::new(py, all.iter().map(|each| each.first))?,
        PyList::new(py, all.iter().map(|each| each.last))?,
        PyList::new(py, all.iter().map(|each| each.dated_by_uri))?,
    );
    Ok((
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
        mementos,
        timemap.other_links,
        occurred(timemap.faults),
    ))
}
