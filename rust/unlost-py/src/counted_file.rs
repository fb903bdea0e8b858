//! Files that report how far they were read, and parts of files.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far a file was read, for progress reports.
#[derive(Clone)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A file that reports how far it was read.
pub struct Counted<R> {
    file: R,
    count: Counter,
}

impl<R> Counted<R> {
    /// `start` is the initial offset.
    pub fn new(file: R, start: u64) -> Self {
        Self {
            file,
            count: Counter(Arc::new(AtomicU64::new(start))),
        }
    }

    pub fn counter(&self) -> Counter {
        self.count.clone()
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(out)?;
        self.count.0.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A part of a file as a file of its own: a member of a ZIP.
pub struct Part<R> {
    file: R,
    start: u64,
    length: u64,
    position: u64,
}

impl<R: Read + Seek> Part<R> {
    pub fn new(mut file: R, start: u64, length: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(start))?;
        Ok(Self {
            file,
            start,
            length,
            position: 0,
        })
    }
}

impl<R: Read> Read for Part<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.length.saturating_sub(self.position);
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        let read = self.file.read(&mut out[..most])?;
        self.position += read as u64;
        Ok(read)
    }
}

impl<R: Seek> Seek for Part<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
        };
        let target = target.and_then(|target| Some((target, self.start.checked_add(target)?)));
        let (target, place) = target.ok_or(io::ErrorKind::InvalidInput)?;
        self.file.seek(SeekFrom::Start(place))?;
        self.position = target;
        Ok(target)
    }
}
