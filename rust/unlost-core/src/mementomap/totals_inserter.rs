//! Inserts totals into lines where they sort.

use std::io::{self, Write};

/// Writes the `*` lines before the first line that sorts after them: nearly always the first of all.
pub(super) struct TotalsInserter<'a, W> {
    out: &'a mut W,
    /// The `*` lines; empty after they were written.
    totals: Vec<u8>,
    /// The beginning of a line that may sort before them.
    partial: Vec<u8>,
}

impl<'a, W: Write> TotalsInserter<'a, W> {
    pub(super) fn new(out: &'a mut W, totals: Vec<u8>) -> Self {
        Self {
            out,
            totals,
            partial: Vec::new(),
        }
    }

    /// Writes the totals if no line sorted after them.
    pub(super) fn finish(self) -> io::Result<()> {
        self.out.write_all(&self.partial)?;
        self.out.write_all(&self.totals)
    }

    fn write_totals(&mut self) -> io::Result<()> {
        self.out.write_all(&self.totals)?;
        self.totals.clear();
        self.out.write_all(&self.partial)?;
        self.partial.clear();
        Ok(())
    }
}

impl<W: Write> Write for TotalsInserter<'_, W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.totals.is_empty() {
            return self.out.write(buffer);
        }
        self.partial.extend_from_slice(buffer);
        while let Some(end) = memchr::memchr(b'\n', &self.partial) {
            if self.partial.as_slice() > b"*" {
                self.write_totals()?;
                break;
            }
            self.out.write_all(&self.partial[..=end])?;
            self.partial.drain(..=end);
        }
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_written_where_they_sort() {
        for (body, expected) in [
            ("com,a)/ 1\n", "* 9\ncom,a)/ 1\n"),
            (
                "%2bx)/ 1\n%2by)/ 2\ncom,a)/ 1\n",
                "%2bx)/ 1\n%2by)/ 2\n* 9\ncom,a)/ 1\n",
            ),
            ("%2bx)/ 1\n", "%2bx)/ 1\n* 9\n"),
            ("", "* 9\n"),
        ] {
            for size in [1, 3, 100] {
                let mut out = Vec::new();
                let mut writer = TotalsInserter::new(&mut out, b"* 9\n".to_vec());
                for piece in body.as_bytes().chunks(size) {
                    writer.write_all(piece).expect("memory");
                }
                writer.finish().expect("memory");
                assert_eq!(String::from_utf8_lossy(&out), expected);
            }
        }
    }
}
