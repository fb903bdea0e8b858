//! Accumulators that Python feeds, and whose result is taken once.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use unlost_core::index::Layout;
use unlost_core::input::Damage;
use unlost_core::mementomap::{HoldingsError, LineStats};

use super::convert::{self, PyLineStats, raise};

/// The line statistics of a file, and its damage.
pub type FileResult = (PyLineStats, Option<&'static str>);

/// An accumulator that several threads may add to, until one takes it.
pub struct TakeOnce<T> {
    work: Mutex<Option<T>>,
    /// The error message after it was taken.
    already_taken: &'static str,
}

impl<T: Send> TakeOnce<T> {
    pub fn new(work: T, already_taken: &'static str) -> Self {
        Self {
            work: Mutex::new(Some(work)),
            already_taken,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `add` with the accumulator, with the GIL released.
    pub fn with<O: Send>(
        &self,
        py: Python<'_>,
        add: impl FnOnce(&mut T) -> Result<O, HoldingsError> + Send,
    ) -> PyResult<O> {
        let result = py.detach(|| self.lock().as_mut().map(add));
        match result {
            Some(result) => result.map_err(|error| raise(py, error)),
            None => Err(PyValueError::new_err(self.already_taken)),
        }
    }

    /// Adds a file: an index, or with `urls` a list of URLs, optionally in a column of a TSV table, from 0.
    pub fn feed(
        &self,
        py: Python<'_>,
        path: PathBuf,
        (urls, column): (bool, Option<usize>),
        add: impl FnOnce(
            &mut T,
            File,
            Option<Layout>,
        ) -> Result<(LineStats, Option<Damage>), HoldingsError>
        + Send,
    ) -> PyResult<FileResult> {
        let layout = urls.then_some(Layout::Urls { column });
        let (stats, damage) = self.with(py, |work| add(work, File::open(path)?, layout))?;
        Ok((convert::line_stats(stats), damage.map(Damage::kind)))
    }

    /// Takes the accumulator; later calls fail.
    pub fn take(&self) -> PyResult<T> {
        let work = self.lock().take();
        work.ok_or_else(|| PyValueError::new_err(self.already_taken))
    }
}
