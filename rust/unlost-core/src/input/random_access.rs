//! Sources of text.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::FileExt;

/// A sequential source that may also allow random access by several threads.
pub trait Input: Read {
    /// The length in bytes if random access is possible and nothing was read yet.
    fn length(&self) -> Option<u64> {
        None
    }

    /// Reads bytes at an offset. Called only if there is a length.
    fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Input for File {
    /// Pipes, devices and files that the system generates on reading have no length.
    fn length(&self) -> Option<u64> {
        let about = self.metadata().ok()?;
        Some(about.len()).filter(|&length| about.is_file() && length > 0)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }
}

impl<T: AsRef<[u8]>> Input for Cursor<T> {
    fn length(&self) -> Option<u64> {
        Some(self.get_ref().as_ref().len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.get_ref().as_ref();
        let start = usize::try_from(offset).map_or(bytes.len(), |start| start.min(bytes.len()));
        let mut rest = &bytes[start..];
        rest.read(buffer)
    }
}

/// Sequential only.
impl Input for &[u8] {}
