//! Visits in the forms of Python and Arrow: tuples of values, or columns.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use unlost_core::refresh::Visit;

use crate::texts::text;

/// A text column: validity bits, end offsets, concatenated texts; for dictionary encoding, the index of each row.
pub type TextColumn<'py> = (
    Option<Bound<'py, PyBytes>>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Option<Bound<'py, PyBytes>>,
);
/// A column of 64-bit integers: validity bits, and values.
pub type NumberColumn<'py> = (Option<Bound<'py, PyBytes>>, Bound<'py, PyBytes>);

pub const TEXTS: usize = 10;
pub const NUMBERS: usize = 5;

/// A visit whose texts were copied from Python.
pub struct Taken {
    texts: [Option<Vec<u8>>; TEXTS],
    numbers: [Option<i64>; NUMBERS],
}

impl Taken {
    pub fn of(row: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let mut visit_row = Self {
            texts: Default::default(),
            numbers: [None; NUMBERS],
        };
        if row.len() != TEXTS + NUMBERS {
            return Err(PyValueError::new_err("expected a value for each field"));
        }
        for (index, value) in row.iter().enumerate() {
            if value.is_none() {
                continue;
            }
            match visit_row.numbers.get_mut(index.wrapping_sub(TEXTS)) {
                Some(number) => *number = Some(value.extract()?),
                None => visit_row.texts[index] = Some(text(&value)?.into_owned()),
            }
        }
        Ok(visit_row)
    }

    pub fn visit(&self) -> Visit<'_> {
        visit_of(
            |index| self.texts[index].as_deref(),
            |index| self.numbers[index],
        )
    }
}

/// A visit from its columns, in the order of `unlost.refresh.visit.FIELDS`.
pub fn visit_of<'a>(
    text: impl Fn(usize) -> Option<&'a [u8]>,
    number: impl Fn(usize) -> Option<i64>,
) -> Visit<'a> {
    Visit {
        uri: text(0).unwrap_or_default(),
        digest: text(1),
        text_digest: text(2),
        etag: text(3),
        last_modified: text(4),
        date: text(5),
        repr_digest: text(6),
        cache_control: text(7),
        expires: text(8),
        server: text(9),
        time: number(0).unwrap_or_default(),
        status: number(1).unwrap_or_default(),
        content_length: number(2),
        age: number(3),
        weight: number(4),
    }
}

pub struct Texts<'a> {
    valid: Option<&'a [u8]>,
    ends: &'a [u8],
    bytes: &'a [u8],
    places: Option<&'a [u8]>,
}

impl<'a> Texts<'a> {
    pub fn of(column: &'a TextColumn<'_>) -> Self {
        let (valid, ends, bytes, places) = column;
        Self {
            valid: valid.as_ref().map(|bits| bits.as_bytes()),
            ends: ends.as_bytes(),
            bytes: bytes.as_bytes(),
            places: places.as_ref().map(|places| places.as_bytes()),
        }
    }

    pub fn get(&self, row: usize) -> Option<&'a [u8]> {
        if !is_valid(self.valid, row) {
            return None;
        }
        let index = match self.places {
            Some(places) => number(places, row)?,
            None => row,
        };
        self.bytes
            .get(number(self.ends, index)?..number(self.ends, index.checked_add(1)?)?)
    }
}

pub struct Numbers<'a> {
    valid: Option<&'a [u8]>,
    bytes: &'a [u8],
}

impl<'a> Numbers<'a> {
    pub fn of(column: &'a NumberColumn<'_>) -> Self {
        let (valid, bytes) = column;
        Self {
            valid: valid.as_ref().map(|bits| bits.as_bytes()),
            bytes: bytes.as_bytes(),
        }
    }

    pub fn get(&self, row: usize) -> Option<i64> {
        if !is_valid(self.valid, row) {
            return None;
        }
        let bytes = self.bytes.get(row * 8..row * 8 + 8)?;
        Some(i64::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// A non-negative 32-bit number.
fn number(numbers: &[u8], index: usize) -> Option<usize> {
    let first = index.checked_mul(4)?;
    let bytes = numbers.get(first..first.checked_add(4)?)?;
    usize::try_from(i32::from_le_bytes(bytes.try_into().ok()?)).ok()
}

fn is_valid(bits: Option<&[u8]>, row: usize) -> bool {
    bits.is_none_or(|bits| {
        bits.get(row / 8)
            .is_some_and(|byte| byte & (1 << (row % 8)) != 0)
    })
}
