//! The lines of a text, with numbers and offsets, in bounded memory.

use std::io::{self, Read};

use super::read_ahead::ReadAhead;
use super::{Damage, Source};

/// One line without its line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// From 1.
    pub number: u64,
    /// Its offset in the text, in bytes.
    pub offset: u64,
    /// The content; only the beginning if the line is too long.
    pub text: &'a [u8],
    /// Whether it is longer than the limit, so that its rest was skipped.
    pub too_long: bool,
    /// Whether damage cut the line before its end.
    pub is_cut: bool,
}

/// Splits a text at `\n`, and drops a `\r` before it. Lines are borrowed from the read buffer; only lines across two
/// chunks are copied. Memory is bounded by a few chunks and one line of the limit.
pub struct Lines {
    ahead: ReadAhead,
    chunk: Vec<u8>,
    /// The start of the unread part of the chunk.
    start: usize,
    /// The beginning of a line that continues in a later chunk, up to the limit.
    carry: Vec<u8>,
    /// The full length of that line so far.
    carried: usize,
    number: u64,
    offset: u64,
    limit: usize,
}

impl Lines {
    /// Reads in a background thread. Lines longer than `limit` bytes are cut and marked.
    pub fn new<R: Read + Send + 'static>(source: Source<R>, limit: usize) -> Self {
        Self {
            ahead: ReadAhead::new(source),
            chunk: Vec::new(),
            start: 0,
            carry: Vec::new(),
            carried: 0,
            number: 0,
            offset: 0,
            limit,
        }
    }

    /// What truncated the text. Valid once the last line was read.
    #[must_use]
    pub fn damage(&self) -> Option<Damage> {
        self.ahead.damage()
    }

    /// The offset of the next line in the text, in bytes; the size of the text once the last line was read.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next line; `None` at the end. I/O errors are passed on.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.carry.clear();
        self.carried = 0;
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.chunk[self.start..]) {
                let from = self.start;
                self.start += length + 1;
                if self.carried == 0 {
                    let offset = self.advance(length, 1);
                    let text = &self.chunk[from..from + length];
                    return Ok(Some(line(text, length, self.limit, self.number, offset)));
                }
                self.carry_over(from, length);
                return Ok(Some(self.carried_line(1)));
            }
            let (from, length) = (self.start, self.chunk.len() - self.start);
            self.carry_over(from, length);
            self.start = 0;
            let Some(chunk) = self.ahead.next(std::mem::take(&mut self.chunk))? else {
                return Ok((self.carried > 0).then(|| self.carried_line(0)));
            };
            self.chunk = chunk;
        }
    }

    /// Retains a part of the chunk, up to the limit. One byte more marks a line that is too long, and another shows
    /// that its last byte is only a `\r`.
    fn carry_over(&mut self, from: usize, length: usize) {
        let room = self
            .limit
            .saturating_add(2)
            .saturating_sub(self.carry.len());
        self.carry
            .extend_from_slice(&self.chunk[from..from + length.min(room)]);
        self.carried += length;
    }

    fn carried_line(&mut self, line_end: usize) -> Line<'_> {
        let offset = self.advance(self.carried, line_end);
        let is_cut = line_end == 0 && self.damage().is_some_and(Damage::cuts_text);
        Line {
            is_cut,
            ..line(&self.carry, self.carried, self.limit, self.number, offset)
        }
    }

    /// Counts a line and returns its offset.
    fn advance(&mut self, length: usize, line_end: usize) -> u64 {
        let offset = self.offset;
        self.offset += (length + line_end) as u64;
        self.number += 1;
        offset
    }
}

/// A line of `length` bytes; `text` is its beginning or all of it.
fn line(text: &[u8], length: usize, limit: usize, number: u64, offset: u64) -> Line<'_> {
    let is_whole = text.len() == length;
    let text = match text.strip_suffix(b"\r") {
        Some(stripped) if is_whole => stripped,
        _ => text,
    };
    Line {
        number,
        offset,
        text: &text[..text.len().min(limit)],
        too_long: text.len() > limit,
        is_cut: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn lines(text: &[u8], limit: usize) -> Vec<(u64, u64, Vec<u8>, bool)> {
        let source = Source::new(Cursor::new(text.to_vec())).expect("memory");
        let mut lines = Lines::new(source, limit);
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
        assert_eq!(lines(b"abc\r\n", 3), [(1, 0, b"abc".to_vec(), false)]);
        assert_eq!(lines(b"abcd\n", 3), [(1, 0, b"abc".to_vec(), true)]);
        let long = [vec![b'x'; 3 << 20], b"\nd".to_vec()].concat();
        assert_eq!(
            lines(&long, usize::MAX),
            [
                (1, 0, vec![b'x'; 3 << 20], false),
                (2, (3 << 20) + 1, b"d".to_vec(), false),
            ]
        );
    }

    #[test]
    fn line_cut_by_damage_is_marked() {
        // A stored block followed by nothing, by the end of the member, or by garbage.
        let cut = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\0\x03\0\xfc\xffa\nb";
        let whole = [&cut[..], b"\x01\0\0\xff\xff\xfb\x90\x07\xef\x03\0\0\0"].concat();
        let garbage = [&whole[..], b"x"].concat();
        for (file, is_cut) in [(&cut[..], true), (&whole, false), (&garbage, false)] {
            let source = Source::new(Cursor::new(file.to_vec())).expect("memory");
            let mut lines = Lines::new(source, 9);
            let mut found = Vec::new();
            while let Some(line) = lines.next_line().expect("memory") {
                found.push((line.text.to_vec(), line.is_cut));
            }
            assert_eq!(found, [(b"a".to_vec(), false), (b"b".to_vec(), is_cut)]);
        }
    }

    #[test]
    fn lines_across_chunks_are_complete() {
        for length in [1, 255, 256, 1000, 300_000] {
            let text = [vec![b'x'; length], b"\r\n".to_vec()]
                .concat()
                .repeat(3_000_000 / (length + 2));
            let found = lines(&text, 1 << 20);
            assert_eq!(found.len(), 3_000_000 / (length + 2));
            for (i, line) in found.into_iter().enumerate() {
                let i = i as u64;
                let offset = i * (length as u64 + 2);
                assert_eq!(line, (i + 1, offset, vec![b'x'; length], false));
            }
        }
    }

    #[test]
    fn long_line_is_cut_and_the_next_is_complete() {
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
