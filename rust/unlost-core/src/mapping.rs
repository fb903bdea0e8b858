//! Memory-mapped files. Together with the byte comparison in `html/simd_scanner.rs`, the only unsafe code of the core.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// The bytes of a file, loaded by the system on access.
///
/// The file must not be changed in place while it is mapped: the content would change, and access to a truncated page
/// ends the process (`SIGBUS`). unlost replaces its files by renaming, and a mapping of the old file stays valid.
#[derive(Debug)]
pub struct Mapping(Mmap);

impl Mapping {
    /// Maps a file in its current state. An empty one is not an error.
    pub fn of(file: &File) -> io::Result<Self> {
        // SAFETY: the bytes are only read, as bytes, and no invariant of memory safety depends on their values: offsets
        // found in them are checked again when they are used. That no other process truncates the file cannot be
        // checked; the documentation requires it.
        unsafe { Mmap::map(file) }.map(Self)
    }
}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
