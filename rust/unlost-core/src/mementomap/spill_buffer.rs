//! A write-once, read-once text buffer: in memory while small, then in an unnamed file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, Write};

/// Bytes per write to the file.
const WRITE_BYTES: usize = 1 << 20;

/// Text that grows and shrinks only at its end. The system removes its file in any case.
#[derive(Debug)]
pub(crate) struct SpillBuffer {
    /// The beginning, if it did not fit in memory, and its length.
    file: Option<(File, u64)>,
    /// The offset of the text in the file.
    base: u64,
    tail: Vec<u8>,
    limit: usize,
}

impl SpillBuffer {
    /// Buffers up to `limit` bytes in memory.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            file: None,
            base: 0,
            tail: Vec::new(),
            limit,
        }
    }

    /// Stores the text in a file, after its existing content, from the current write position on.
    pub(crate) fn appending_to(mut file: File) -> io::Result<Self> {
        Ok(Self {
            base: file.stream_position()?,
            file: Some((file, 0)),
            tail: Vec::new(),
            limit: 0,
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.file.as_ref().map_or(0, |(_, length)| *length) + self.tail.len() as u64
    }

    /// Lets `write` append to the text.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        write(&mut self.tail);
        let limit = if self.file.is_some() {
            WRITE_BYTES
        } else {
            self.limit
        };
        if self.tail.len() > limit {
            self.spill_to_file()?;
        }
        Ok(())
    }

    /// Moves everything to the file.
    pub(crate) fn spill_to_file(&mut self) -> io::Result<()> {
        let (file, length) = match &mut self.file {
            Some(file) => file,
            None => self.file.insert((tempfile::tempfile()?, 0)),
        };
        file.write_all(&self.tail)?;
        *length += self.tail.len() as u64;
        if self.tail.capacity() > 2 * WRITE_BYTES {
            self.tail = Vec::new();
        }
        self.tail.clear();
        Ok(())
    }

    /// Releases the memory, unless the whole text fits there.
    pub(crate) fn release_memory(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            self.spill_to_file()?;
            self.tail = Vec::new();
        }
        Ok(())
    }

    /// Drops everything after the first `length` bytes.
    pub(crate) fn truncate(&mut self, length: u64) -> io::Result<()> {
        match &mut self.file {
            Some((file, in_file)) if length < *in_file => {
                file.set_len(self.base + length)?;
                file.seek(io::SeekFrom::Start(self.base + length))?;
                *in_file = length;
                self.tail.clear();
            }
            file => {
                let in_file = file.as_ref().map_or(0, |(_, length)| *length);
                // It fits: the length is that of a text in memory.
                self.tail
                    .truncate(usize::try_from(length - in_file).unwrap_or(usize::MAX));
            }
        }
        Ok(())
    }

    /// The whole text, if it is in memory.
    pub(crate) fn memory(&self) -> Option<&[u8]> {
        self.file.is_none().then_some(&self.tail)
    }

    /// The same, moved out.
    pub(crate) fn take_memory(&mut self) -> Option<Vec<u8>> {
        self.file.is_none().then(|| std::mem::take(&mut self.tail))
    }

    /// Reads the text from its beginning.
    pub(crate) fn into_reader(self) -> io::Result<Box<dyn BufRead + Send>> {
        let tail = Cursor::new(self.tail);
        match self.file {
            None => Ok(Box::new(tail)),
            Some((mut file, _)) => {
                file.seek(io::SeekFrom::Start(self.base))?;
                Ok(Box::new(BufReader::with_capacity(
                    256 << 10,
                    file.chain(tail),
                )))
            }
        }
    }

    /// Copies the text to `out`.
    pub(crate) fn copy_to(mut self, out: &mut impl Write) -> io::Result<()> {
        self.drain_to(out)
    }

    /// Moves the text to `out`, and is empty then.
    pub(crate) fn drain_to(&mut self, out: &mut impl Write) -> io::Result<()> {
        if let Some((mut file, _)) = self.file.take() {
            file.seek(io::SeekFrom::Start(self.base))?;
            io::copy(&mut file, out)?;
        }
        out.write_all(&self.tail)?;
        self.tail.clear();
        Ok(())
    }
}

impl Write for SpillBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(|text| text.extend_from_slice(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_text_starts_after_existing_content() {
        let mut file = tempfile::tempfile().expect("disk");
        file.write_all(b"head\n").expect("disk");
        let mut spool = SpillBuffer::appending_to(file).expect("disk");
        spool
            .append(|text| text.extend_from_slice(b"one\ntwo\n"))
            .expect("disk");
        spool.spill_to_file().expect("disk");
        spool.truncate(4).expect("disk");
        spool
            .append(|text| text.extend_from_slice(b"three\n"))
            .expect("disk");
        let mut text = String::new();
        let mut reader = spool.into_reader().expect("disk");
        reader.read_to_string(&mut text).expect("text");
        assert_eq!(text, "one\nthree\n");
    }

    #[test]
    fn text_is_complete_in_memory_and_in_a_file() {
        for limit in [0, 10, 1 << 30] {
            let mut spool = SpillBuffer::new(limit);
            for i in 0..1000 {
                spool
                    .append(|text| text.extend_from_slice(format!("line {i}\n").as_bytes()))
                    .expect("disk");
                if i == 500 {
                    spool.spill_to_file().expect("disk");
                }
            }
            let length = spool.len();
            spool.truncate(length - 9).expect("disk");
            spool.truncate(7 * 10).expect("disk");
            spool
                .append(|text| text.extend_from_slice(b"end\n"))
                .expect("disk");
            let mut text = String::new();
            spool
                .into_reader()
                .expect("disk")
                .read_to_string(&mut text)
                .expect("text");
            assert_eq!(text.lines().count(), 11, "{limit}");
            assert!(text.ends_with("line 9\nend\n"), "{limit}");
        }
    }
}
