//! Bindings of `unlost_core::memento::list`.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PySlice, PyString, PyType};
use unlost_core::memento::httpdate::{self, Digits};
use unlost_core::memento::list::{
    self, LengthCounter, ListEnds, MementoListBuilder, MementoRef, SliceWriter, TextSink,
};

use super::link_format::SMALL_BYTES;
use crate::errors::{raise_date, raise_input, raise_usage};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Mementos>()
}

/// The number of mementos that are parsed, merged or written in some hundred microseconds.
const SMALL_LIST: usize = 1 << 11;

static MEMENTO: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn memento_to_py<'py>(py: Python<'py>, memento: &MementoRef<'_>) -> PyResult<Bound<'py, PyAny>> {
    MEMENTO
        .import(py, "unlost.memento.timemap", "MementoTuple")?
        .call1((
            std::str::from_utf8(&memento.datetime).unwrap_or_default(),
            memento.archive,
            &*memento.uri,
        ))
}

fn digits(py: Python<'_>, text: &str) -> PyResult<Digits> {
    httpdate::from_digits(text.as_bytes()).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        let message = format!("expected a date as YYYYMMDDhhmmss, found `{shown}`");
        raise_date(py, message)
    })
}

/// The bytes of a text that may contain surrogates for bytes that are not UTF-8, as in Python, or other lone
/// surrogates.
fn bytes_of(text: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
    if let Ok(plain) = text.to_cow() {
        return Ok(plain.as_bytes().to_vec());
    }
    let encoded = |errors| text.call_method1("encode", ("utf-8", errors));
    encoded("surrogateescape")
        .or_else(|_| encoded("surrogatepass"))?
        .extract()
}

/// The mementos of a page, sorted by date and URL; unique by date and URL without scheme.
#[pyclass(frozen, module = "unlost._core")]
pub struct Mementos {
    pub(crate) inner: list::Mementos,
}

/// An output format.
#[derive(Clone, Copy)]
enum Form {
    Packed,
    Link(ListEnds),
    Json,
    Cdxj(ListEnds),
    Lines,
}

impl Form {
    fn write(self, mementos: &list::Mementos, out: &mut impl TextSink) {
        match self {
            Self::Packed => mementos.pack(out),
            Self::Link(ends) => mementos.link_entries(out, ends),
            Self::Json => mementos.json_items(out),
            Self::Cdxj(ends) => mementos.cdxj_lines(out, ends),
            Self::Lines => mementos.text_lines(out),
        }
    }
}

impl Mementos {
    /// The output between two texts; releases the GIL for large lists.
    fn written<'py>(
        &self,
        py: Python<'py>,
        form: Form,
        around: (Option<&[u8]>, Option<&[u8]>),
    ) -> PyResult<Bound<'py, PyBytes>> {
        let inner = &self.inner;
        let (before, after) = (around.0.unwrap_or_default(), around.1.unwrap_or_default());
        let mut length = LengthCounter(before.len() + after.len());
        form.write(inner, &mut length);
        let write = |place: &mut [u8]| {
            let mut sink = SliceWriter(place);
            sink.add(before);
            form.write(inner, &mut sink);
            sink.add(after);
        };
        PyBytes::new_with(py, length.0, |place| {
            if inner.len() < SMALL_LIST {
                write(place);
            } else {
                py.detach(|| write(place));
            }
            Ok(())
        })
    }
}

#[pymethods]
impl Mementos {
    #[new]
    #[pyo3(signature = (rows=None))]
    fn new(py: Python<'_>, rows: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut builder = MementoListBuilder::default();
        for row in rows
            .map(|rows| rows.try_iter())
            .transpose()?
            .into_iter()
            .flatten()
        {
            let (datetime, archive, uri): (String, String, Bound<'_, PyString>) = row?.extract()?;
            let archive = builder.archive(&archive);
            builder
                .add(&digits(py, &datetime)?, archive, bytes_of(&uri)?.into())
                .map_err(|error| raise_input(py, error.to_string()))?;
        }
        Ok(Self {
            inner: builder.finish(),
        })
    }

    /// Return all mementos of several lists.
    #[staticmethod]
    fn merge(py: Python<'_>, parts: &Bound<'_, PyAny>) -> PyResult<Self> {
        let parts: Vec<Bound<'_, Self>> = parts
            .try_iter()?
            .map(|part| Ok(part?.cast_into::<Self>()?))
            .collect::<PyResult<_>>()?;
        let inner: Vec<&list::Mementos> = parts.iter().map(|part| &part.get().inner).collect();
        let total: usize = inner.iter().map(|part| part.len()).sum();
        let merge_all = || list::Mementos::merge(inner.iter().copied());
        let merged = if total < SMALL_LIST {
            merge_all()
        } else {
            py.detach(merge_all)
        };
        match merged {
            Ok(inner) => Ok(Self { inner }),
            Err(error) => Err(raise_input(py, error.to_string())),
        }
    }

    /// Return the mementos that `pack` serialized. Raises InputError for invalid bytes.
    #[staticmethod]
    fn unpack(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let unpack_all = || list::unpack(data);
        let unpacked = if data.len() < SMALL_BYTES {
            unpack_all()
        } else {
            py.detach(unpack_all)
        };
        match unpacked {
            Ok(inner) => Ok(Self { inner }),
            Err(error) => Err(raise_input(py, error.to_string())),
        }
    }

    /// Return the mementos as bytes, for storage.
    fn pack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.written(py, Form::Packed, (None, None))
    }

    /// The first memento; None if there is none.
    #[getter]
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.inner
            .get(0)
            .map(|memento| memento_to_py(py, &memento))
            .transpose()
    }

    /// The last memento; None if there is none.
    #[getter]
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let place = self.inner.len().wrapping_sub(1);
        self.inner
            .get(place)
            .map(|memento| memento_to_py(py, &memento))
            .transpose()
    }

    /// Memory use in bytes.
    #[getter]
    fn memory_size(&self) -> usize {
        self.inner.size()
    }

    fn __sizeof__(&self) -> usize {
        self.inner.size()
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let length = isize::try_from(self.inner.len()).unwrap_or(isize::MAX);
        if let Ok(slice) = index.cast::<PySlice>() {
            let indices = slice.indices(length)?;
            if indices.step != 1 {
                let message = "expected a slice without steps";
                return Err(raise_usage(py, message.to_owned()));
            }
            let begin = usize::try_from(indices.start).unwrap_or(0);
            let inner = self.inner.slice(begin..begin + indices.slicelength);
            return Ok(Bound::new(py, Self { inner })?.into_any());
        }
        let index: isize = index.extract()?;
        let index = if index < 0 { index + length } else { index };
        let memento = usize::try_from(index)
            .ok()
            .and_then(|index| self.inner.get(index));
        match memento {
            Some(memento) => memento_to_py(py, &memento),
            None => Err(PyIndexError::new_err("no memento at that index")),
        }
    }

    fn __iter__(slf: Py<Self>) -> MementosIterator {
        MementosIterator {
            mementos: slf,
            place: 0,
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<Self>()
            .is_ok_and(|other| other.get().inner == self.inner)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.inner.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("<Mementos: {}>", self.inner.len())
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let unpack = slf.get_type().getattr("unpack")?;
        Ok((unpack, (slf.get().pack(slf.py())?,)))
    }

    /// Return the index of the memento closest to a date of 14 digits, the earlier of two; None if there are none.
    fn closest(&self, py: Python<'_>, datetime: &str) -> PyResult<Option<usize>> {
        Ok(self.inner.closest(&digits(py, datetime)?))
    }

    /// Return the number of mementos not later than a date of 14 digits.
    fn until(&self, py: Python<'_>, datetime: &str) -> PyResult<usize> {
        Ok(self.inner.until(&digits(py, datetime)?))
    }

    /// Return the mementos between two dates of 14 digits, inclusive; None for no bound.
    fn between(&self, py: Python<'_>, first: Option<&str>, last: Option<&str>) -> PyResult<Self> {
        let first = first.map(|date| digits(py, date)).transpose()?;
        let last = last.map(|date| digits(py, date)).transpose()?;
        let range = self.inner.span(first.as_ref(), last.as_ref());
        Ok(Self {
            inner: self.inner.slice(range),
        })
    }

    /// Return the number of mementos per archive and year.
    fn by_archive_and_year<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        for (archive, years) in self.inner.by_archive_and_year() {
            let of_archive = PyDict::new(py);
            for (year, count) in years {
                of_archive.set_item(format!("{year:04}"), count)?;
            }
            counts.set_item(archive, of_archive)?;
        }
        Ok(counts)
    }

    /// Return link-format entries, each followed by a comma and a newline, between two texts.
    #[pyo3(signature = (first, last, before=None, after=None))]
    fn link_entries<'py>(
        &self,
        py: Python<'py>,
        first: bool,
        last: bool,
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.written(py, Form::Link(ListEnds { first, last }), (before, after))
    }

    /// Return the items of a JSON list, indented by six, separated by a comma and a newline, between two texts.
    #[pyo3(signature = (before=None, after=None))]
    fn json_items<'py>(
        &self,
        py: Python<'py>,
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.written(py, Form::Json, (before, after))
    }

    /// Return lines of a `TimeMap` in CDXJ, after a text.
    #[pyo3(signature = (first, last, before=None))]
    fn cdxj_lines<'py>(
        &self,
        py: Python<'py>,
        first: bool,
        last: bool,
        before: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.written(py, Form::Cdxj(ListEnds { first, last }), (before, None))
    }

    /// Return lines of date, archive and URL, separated by spaces.
    fn text_lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.written(py, Form::Lines, (None, None))
    }
}

#[pyclass]
struct MementosIterator {
    mementos: Py<Mementos>,
    place: usize,
}

#[pymethods]
impl MementosIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let memento = self.mementos.get().inner.get(self.place);
        self.place += 1;
        memento
            .map(|memento| memento_to_py(py, &memento))
            .transpose()
    }
}
