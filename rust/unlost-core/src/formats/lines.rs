//! Lines of a text, with their numbers and offsets, in bounded memory.

use std::io::{self, Read};

/// One line without its line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// From 1.
    pub number: u64,
    /// Where it begins in the text, in bytes.
    pub offset: u64,
    /// What it holds; if it is too long, its beginning.
    pub text: &'a [u8],
    /// Whether it is longer than the limit, so that its rest was passed over.
    pub too_long: bool,
}

/// Cuts a text into lines at `\n`, dropping a `\r` before it. Never holds more than a buffer and one line of the limit.
pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// The unread part of the buffer.
    start: usize,
    end: usize,
    number: u64,
    offset: u64,
    limit: usize,
    at_end: bool,
}

const BUFFER_BYTES: usize = 1 << 18;

impl<R: Read> Lines<R> {
    /// Lines longer than `limit` bytes come cut and marked.
    pub fn new(source: R, limit: usize) -> Self {
        Self {
            source,
            buffer: vec![0; BUFFER_BYTES.max(limit.min(BUFFER_BYTES) + 1)],
            start: 0,
            end: 0,
            number: 0,
            offset: 0,
            limit,
            at_end: false,
        }
    }

    /// What the lines are read from.
    pub fn source(&self) -> &R {
        &self.source
    }

    /// The next line; `None` at the end. Errors of the file are passed on.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.start + searched..self.end]) {
                let length = searched + at;
                return Ok(Some(self.take(length, 1)));
            }
            searched = self.end - self.start;
            if searched > self.limit {
                return self.skip_rest(searched);
            }
            if self.at_end {
                return Ok((searched > 0).then(|| self.take(searched, 0)));
            }
            self.fill()?;
        }
    }

    /// Hands out `length` bytes and passes over them and the line end.
    fn take(&mut self, length: usize, line_end: usize) -> Line<'_> {
        let (start, offset) = (self.start, self.offset);
        self.start += length + line_end;
        self.offset += (length + line_end) as u64;
        self.number += 1;
        let text = &self.buffer[start..start + length];
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        Line {
            number: self.number,
            offset,
            text: &text[..text.len().min(self.limit)],
            too_long: text.len() > self.limit,
        }
    }

    /// Passes over the rest of a line that is too long, of which `held` bytes are in the buffer.
    fn skip_rest(&mut self, held: usize) -> io::Result<Option<Line<'_>>> {
        let kept = self.buffer[self.start..self.start + self.limit].to_vec();
        let offset = self.offset;
        let mut skipped = held;
        self.start = self.end;
        let rest = loop {
            if self.at_end {
                break 0;
            }
            self.fill()?;
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                break at + 1;
            }
            skipped += self.end - self.start;
            self.start = self.end;
        };
        // Put the beginning before what is unread, so that the line can be lent from the buffer.
        self.start += rest;
        self.offset = offset + (skipped + rest) as u64;
        self.number += 1;
        let unread = self.buffer[self.start..self.end].to_vec();
        let needed = kept.len() + unread.len();
        if self.buffer.len() < needed {
            self.buffer.resize(needed, 0);
        }
        self.buffer[..kept.len()].copy_from_slice(&kept);
        self.buffer[kept.len()..needed].copy_from_slice(&unread);
        self.start = kept.len();
        self.end = needed;
        Ok(Some(Line {
            number: self.number,
            offset,
            text: &self.buffer[..kept.len()],
            too_long: true,
        }))
    }

    /// Reads more behind what is unread, making room for it.
    fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.at_end = true;
                    return Ok(());
                }
                Ok(read) => {
                    self.end += read;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], limit: usize) -> Vec<(u64, u64, Vec<u8>, bool)> {
        let mut lines = Lines::new(text, limit);
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().expect("memory") {
            found.push((line.number, line.offset, line.text.to_vec(), line.too_long));
        }
        found
    }

    #[test]
    fn lines_have_numbers_and_offsets() {
        assert_eq!(
            lines(b"a\r\n\nbc\nd", 10),
            [
                (1, 0, b"a".to_vec(), false),
                (2, 3, Vec::new(), false),
                (3, 4, b"bc".to_vec(), false),
                (4, 7, b"d".to_vec(), false),
            ]
        );
        assert_eq!(lines(b"", 10), []);
    }

    #[test]
    fn long_lines_come_cut_and_the_next_is_whole() {
        let text = [b"ab\n".to_vec(), vec![b'x'; 5 << 20], b"\ncd\n".to_vec()].concat();
        for limit in [3, 100, 2 << 20] {
            let found = lines(&text, limit);
            assert_eq!(found.len(), 3);
            assert_eq!(found[1], (2, 3, vec![b'x'; limit], true));
            assert_eq!(found[2], (3, 4 + (5 << 20), b"cd".to_vec(), false));
        }
        assert_eq!(
            lines(&vec![b'x'; 3 << 20], 5),
            [(1, 0, b"xxxxx".to_vec(), true)]
        );
    }
}
