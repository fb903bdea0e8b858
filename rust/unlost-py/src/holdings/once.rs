//! Work that is fed from Python, and whose outcome is given once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use unlost_core::holdings::HoldingsError;

use super::convert::raise;

/// Something that many may add to, until one takes it.
pub struct Once<T> {
    work: Mutex<Option<T>>,
    /// What whoever comes later is told.
    gone: &'static str,
}

impl<T: Send> Once<T> {
    pub fn new(work: T, gone: &'static str) -> Self {
        Self {
            work: Mutex::new(Some(work)),
            gone,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to it while others run.
    pub fn with<O: Send>(
        &self,
        py: Python<'_>,
        add: impl FnOnce(&mut T) -> Result<O, HoldingsError> + Send,
    ) -> PyResult<O> {
        let result = py.detach(|| self.lock().as_mut().map(add));
        match result {
            Some(result) => result.map_err(|error| raise(py, error)),
            None => Err(PyValueError::new_err(self.gone)),
        }
    }

    /// Takes it.
    pub fn take(&self) -> PyResult<T> {
        let work = self.lock().take();
        work.ok_or_else(|| PyValueError::new_err(self.gone))
    }
}
