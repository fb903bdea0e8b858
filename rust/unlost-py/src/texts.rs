//! Texts from Python as bytes.

use std::borrow::Cow;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString};
use unlost_core::string_arena::StringArena;

/// The number of texts that are prefetched before the first of them is read.
const PREFETCH_COUNT: usize = 64;

/// The approximate length of a URL.
const TEXT_BYTES: usize = 80;

/// The bytes of a `str` or `bytes`, borrowed if possible.
pub fn text<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    borrowed_text(value.as_borrowed())
}

/// Iterates over texts in groups: first all of a group are touched, then each is read. Strings are scattered over
/// memory, and processors fetch several at once as long as nothing waits for the first.
pub fn for_each_text(values: &Bound<'_, PyAny>, mut take: impl FnMut(&[u8])) -> PyResult<()> {
    let mut values = values.try_iter()?;
    while take_some(&mut values, PREFETCH_COUNT, &mut take)? == PREFETCH_COUNT {}
    Ok(())
}

/// The next texts, at most `max_count`; fewer, or none, at the end.
pub fn next_texts(values: &mut Bound<'_, PyIterator>, max_count: usize) -> PyResult<StringArena> {
    let mut texts = StringArena::with_room(max_count, TEXT_BYTES);
    while texts.len() < max_count {
        let group_size = PREFETCH_COUNT.min(max_count - texts.len());
        if take_some(values, group_size, &mut |text| texts.push(text))? < group_size {
            break;
        }
    }
    Ok(texts)
}

fn take_some(
    values: &mut Bound<'_, PyIterator>,
    max_count: usize,
    take: &mut impl FnMut(&[u8]),
) -> PyResult<usize> {
    let mut touched = Vec::with_capacity(max_count);
    for value in values.take(max_count) {
        touched.push(value?);
    }
    for value in &touched {
        take(&text(value)?);
    }
    Ok(touched.len())
}

fn borrowed_text<'a>(value: Borrowed<'a, '_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(string) = value.cast::<PyString>() {
        if let Ok(text) = value.extract::<&'a str>() {
            return Ok(Cow::Borrowed(text.as_bytes()));
        }
        // Lone surrogates represent bytes that were not UTF-8, as in arguments and file names, or nothing at all.
        let encoded = string
            .call_method1("encode", ("utf-8", "surrogateescape"))
            .or_else(|_| string.call_method1("encode", ("utf-8", "surrogatepass")))?;
        return Ok(Cow::Owned(encoded.extract::<Vec<u8>>()?));
    }
    if let Ok(bytes) = value.extract::<&'a [u8]>() {
        return Ok(Cow::Borrowed(bytes));
    }
    Err(PyTypeError::new_err(format!(
        "expected str or bytes, not {}",
        value.get_type().name()?
    )))
}
