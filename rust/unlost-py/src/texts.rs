//! Texts that Python hands over, as bytes.

use std::borrow::Cow;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The bytes of a `str` or `bytes`, borrowed from Python where they are there as such.
pub fn text<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    borrowed_text(value.as_borrowed())
}

/// Goes through texts, some at a time: first all of them are touched, then each is read. Strings lie anywhere in memory,
/// and processors fetch several at once as long as nothing waits for the first.
pub fn for_each_text(values: &Bound<'_, PyAny>, mut take: impl FnMut(&[u8])) -> PyResult<()> {
    const AT_ONCE: usize = 64;
    let mut touched = Vec::with_capacity(AT_ONCE);
    let mut values = values.try_iter()?;
    loop {
        touched.clear();
        for value in values.by_ref().take(AT_ONCE) {
            touched.push(value?);
        }
        for value in &touched {
            take(&text(value)?);
        }
        if touched.len() < AT_ONCE {
            return Ok(());
        }
    }
}

/// Texts in one piece of memory: those of Python lie anywhere, and each is fetched from there only once.
#[derive(Default)]
pub struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    /// The texts of whatever can be gone through.
    pub fn of(values: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut texts = Self::default();
        for_each_text(values, |text| {
            texts.bytes.extend_from_slice(text);
            texts.ends.push(texts.bytes.len());
        })?;
        Ok(texts)
    }

    /// Each of them, in their order.
    pub fn each(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let pieces = starts.zip(&self.ends);
        pieces
            .map(|(start, &end)| &self.bytes[start..end])
            .collect()
    }
}

fn borrowed_text<'a>(value: Borrowed<'a, '_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(string) = value.cast::<PyString>() {
        if let Ok(text) = value.extract::<&'a str>() {
            return Ok(Cow::Borrowed(text.as_bytes()));
        }
        // Lone surrogates stand for bytes that were not UTF-8, as in arguments and file names, or for nothing at all.
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
