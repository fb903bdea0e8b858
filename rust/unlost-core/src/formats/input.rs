//! What a text is read from.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::FileExt;

/// Something to read from its beginning to its end and, where that can be, at any place and by several threads at once.
pub trait Input: Read {
    /// How many bytes there are, if they can be read at any place. Nobody has begun to read it otherwise.
    fn length(&self) -> Option<u64> {
        None
    }

    /// Reads some bytes at a place. Only what has a length is asked for them.
    fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Input for File {
    /// Pipes and devices have none, nor has what the system makes up while it is read.
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

/// Only in order.
impl Input for &[u8] {}
