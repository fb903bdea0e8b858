//! The blocks of a file with random access: each thread reads its own, without waiting for the others.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::blocks::Block;
use super::random_access::Input;

/// How much is read at once of a line that continues after its block.
const REST_BYTES: usize = 4096;

/// Cuts a file into ranges of equal size. The lines that begin in a range are its block.
pub(super) struct Ranges<R> {
    file: R,
    length: u64,
    next: AtomicU64,
}

impl<R: Input> Ranges<R> {
    pub(super) fn new(file: R, length: u64) -> Self {
        Self {
            file,
            length,
            next: AtomicU64::new(0),
        }
    }

    pub(super) fn next_index(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Fills a block, possibly with nothing if a line is longer than a range. Returns false if no range is left.
    pub(super) fn next(&self, block: &mut Block, size: usize, limit: usize) -> io::Result<bool> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let start = index.saturating_mul(size as u64);
        if start >= self.length {
            return Ok(false);
        }
        let end = self.length.min(start + size as u64);
        block.clear_page_aligned(size + REST_BYTES);
        let is_whole = self.fill(block, start, end)?;
        let before = if self.begins_line(start)? {
            0
        } else {
            let first = memchr::memchr(b'\n', block.text());
            first.map_or(block.text().len(), |end| end + 1)
        };
        block.skip(before);
        block.index = index;
        block.offset = start + before as u64;
        if block.text().last().is_some_and(|&byte| byte != b'\n') {
            self.end_line(block, if is_whole { end } else { self.length }, limit)?;
        }
        Ok(true)
    }

    /// Whether a line begins at an offset. The byte before it is read separately, so that ranges begin at page
    /// boundaries.
    fn begins_line(&self, offset: u64) -> io::Result<bool> {
        let Some(before) = offset.checked_sub(1) else {
            return Ok(true);
        };
        let mut byte = [0];
        loop {
            match self.file.read_at(&mut byte, before) {
                Ok(_) => return Ok(byte == *b"\n"),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads a range. Returns false if the file has become shorter.
    fn fill(&self, block: &mut Block, mut from: u64, to: u64) -> io::Result<bool> {
        while from < to {
            let count = usize::try_from(to - from).unwrap_or(usize::MAX);
            match self.file.read_at(block.spare_capacity(count), from) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    block.extend(read);
                    from += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Reads on to the end of a block's last line. The beginning of a line that is too long is retained, which marks
    /// it.
    fn end_line(&self, block: &mut Block, mut at: u64, limit: usize) -> io::Result<()> {
        let start = memchr::memrchr(b'\n', block.text()).map_or(0, |end| end + 1);
        while at < self.length {
            let known = block.text().len();
            let to = self.length.min(at + REST_BYTES as u64);
            let is_whole = self.fill(block, at, to)?;
            if let Some(end) = memchr::memchr(b'\n', &block.text()[known..]) {
                block.truncate(known + end + 1);
                return Ok(());
            }
            if block.text().len() > limit.saturating_add(start + REST_BYTES) {
                block.truncate(start + limit + 1);
            }
            at = if is_whole { to } else { self.length };
        }
        block.push(b"\n");
        Ok(())
    }
}
