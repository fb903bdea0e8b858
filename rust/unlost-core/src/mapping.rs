//! Files as memory: unsafe code, of which the core has nothing else but comparing bytes in `pages/window.rs`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// The bytes of a file, read by the system as they are asked for.
///
/// The file must not be changed in place while it is mapped: what is read would change with it, and a page that was cut
/// off ends the process (`SIGBUS`). Files that unlost makes are put in place by renaming, and a mapping of the old one
/// stays whole.
#[derive(Debug)]
pub struct Mapping(Mmap);

impl Mapping {
    /// Maps a file as it is now. An empty one is no error.
    pub fn of(file: &File) -> io::Result<Self> {
        // SAFETY: the bytes are only ever read, as bytes, and no invariant of memory safety depends on what they are:
        // offsets found in them are checked again when they are used. That nobody cuts the file off meanwhile cannot be
        // checked by anyone; the docs ask for it.
        unsafe { Mmap::map(file) }.map(Self)
    }
}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
