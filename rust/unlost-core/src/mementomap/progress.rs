//! Progress of an operation, for other threads, and its cancellation.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::HoldingsError;

/// Lines between two checks for cancellation: a check costs as much as some lines.
pub(super) const CHECK_INTERVAL_LINES: u64 = 1024;

/// Shared between the working threads and the observer.
#[derive(Debug, Default)]
pub struct Progress {
    bytes: AtomicU64,
    lines: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Stored bytes of the input that were read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Lines that were read.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines.load(Relaxed)
    }

    /// Requests that the operation ends soon, with [`HoldingsError::Cancelled`].
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    pub(crate) fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn add_lines(&self, lines: u64) {
        self.lines.fetch_add(lines, Relaxed);
    }

    pub(crate) fn check_cancelled(&self) -> Result<(), HoldingsError> {
        if self.cancelled.load(Relaxed) {
            Err(HoldingsError::Cancelled)
        } else {
            Ok(())
        }
    }
}

/// A file whose bytes are counted as they are read.
pub(super) struct Metered<R> {
    pub(super) file: R,
    pub(super) progress: Arc<Progress>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.progress.add_bytes(read);
        Ok(read)
    }
}
