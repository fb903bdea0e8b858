//! Bindings of sketches for unbounded streams of texts.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use unlost_core::mementomap::stats::{DistinctCounter, FrequentItems};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<FrequentTexts>()?;
    module.add_class::<DistinctTexts>()
}

/// Finds the most frequent texts in bounded memory.
#[pyclass(frozen, module = "unlost._core")]
struct FrequentTexts(Mutex<FrequentItems>);

#[pymethods]
impl FrequentTexts {
    #[new]
    fn new(size: usize) -> Self {
        Self(Mutex::new(FrequentItems::new(size)))
    }

    #[pyo3(signature = (text, times=1))]
    fn add(&self, text: String, times: u64) {
        self.lock().add(text, times);
    }

    /// Texts, with lower and upper bounds of their counts.
    fn first(&self, count: usize) -> Vec<(String, u64, u64)> {
        self.lock().first(count)
    }

    #[getter]
    fn error(&self) -> u64 {
        self.lock().error()
    }
}

impl FrequentTexts {
    fn lock(&self) -> MutexGuard<'_, FrequentItems> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Estimates the number of distinct texts.
#[pyclass(frozen, module = "unlost._core")]
#[derive(Default)]
struct DistinctTexts(Mutex<DistinctCounter>);

#[pymethods]
impl DistinctTexts {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn add(&self, text: &str) {
        self.lock().add_text(text.as_bytes());
    }

    /// The estimate, with its 95 % confidence interval.
    fn estimate(&self) -> (u64, u64, u64) {
        self.lock().estimate()
    }
}

impl DistinctTexts {
    fn lock(&self) -> MutexGuard<'_, DistinctCounter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
