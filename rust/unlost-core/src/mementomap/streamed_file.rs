//! A map file to which ordered lines are written before the total, which precedes them, is known.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use super::sorter::Sorter;
use super::spill_buffer::SpillBuffer;
use super::totals_inserter::TotalsInserter;
use super::{HoldingsError, Progress};

/// Memory for a map that has to be written twice.
const MEMORY_BYTES: usize = 1 << 20;

/// A file with reserved space for the `*` line; only the number of its digits is a prediction.
pub(super) struct StreamedMapFile {
    file: File,
    /// The start and the size of the reserved space, after the header.
    start: u64,
    reserved: u64,
}

impl StreamedMapFile {
    /// Reserves space for a total of about `expected` after the existing content. Lines follow it.
    pub(super) fn new(mut file: File, expected: u64) -> io::Result<(Self, SpillBuffer)> {
        let start = file.stream_position()?;
        let reserved = format!("* {expected}\n").len() as u64;
        file.seek(SeekFrom::Start(start + reserved))?;
        let lines = SpillBuffer::appending_to(file.try_clone()?)?;
        Ok((
            Self {
                file,
                start,
                reserved,
            },
            lines,
        ))
    }

    /// Writes the final header and the total to their places. If they do not fit, or lines precede the total, the map
    /// is rewritten.
    pub(super) fn finish(
        mut self,
        mut sorter: Sorter,
        header: &[u8],
        totals: Vec<u8>,
        progress: &Progress,
    ) -> Result<(), HoldingsError> {
        let fits = header.len() as u64 == self.start && totals.len() as u64 == self.reserved;
        if fits && sorter.is_output_complete()? && self.is_total_first()? {
            self.file.rewind()?;
            self.file.write_all(header)?;
            self.file.write_all(&totals)?;
            return Ok(());
        }
        let mut text = SpillBuffer::new(MEMORY_BYTES);
        let mut out = TotalsInserter::new(&mut text, totals);
        sorter.write_to(&mut out, progress)?;
        out.finish()?;
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(header)?;
        Ok(text.copy_to(&mut self.file)?)
    }

    /// Whether no line sorts before the total. True without any lines.
    fn is_total_first(&mut self) -> io::Result<bool> {
        let mut first = [0];
        self.file
            .seek(SeekFrom::Start(self.start + self.reserved))?;
        Ok(self.file.read(&mut first)? == 0 || first[0] > b'*')
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Entry, Frequency};
    use super::*;

    /// The file of a map with these keys, possibly with a wrong prediction of the total.
    fn write_map(keys: &[&str], expected: u64) -> String {
        let text = write_map_with_header(b"!????\n", keys, expected);
        for placeholder in [&b""[..], b"!a\n", b"!a longer one\n"] {
            assert_eq!(write_map_with_header(placeholder, keys, expected), text);
        }
        text
    }

    /// The same, with `placeholder` as the header until the end.
    fn write_map_with_header(placeholder: &[u8], keys: &[&str], expected: u64) -> String {
        let mut file = tempfile::tempfile().expect("disk");
        file.write_all(placeholder).expect("disk");
        let (streamed, lines) =
            StreamedMapFile::new(file.try_clone().expect("disk"), expected).expect("disk");
        let mut sorter = Sorter::new(1, 40);
        sorter.set_output(lines);
        for key in keys {
            let entry = Entry::new(key.as_bytes(), Frequency::of(4));
            sorter.push(&entry).expect("disk");
        }
        let totals = format!("* {}\n", 4 * keys.len()).into_bytes();
        streamed
            .finish(sorter, b"!head\n", totals, &Progress::default())
            .expect("disk");
        let mut text = String::new();
        file.rewind().expect("disk");
        file.read_to_string(&mut text).expect("disk");
        text
    }

    #[test]
    fn map_is_the_same_for_any_expected_total() {
        let expected = "!head\n* 12\ncom,a)/ 4\ncom,b)/ 4\ncom,c)/ 4\n";
        for total in [0, 9, 12, 99, 100, u64::MAX] {
            assert_eq!(
                write_map(&["com,a)/", "com,b)/", "com,c)/"], total),
                expected
            );
            assert_eq!(
                write_map(&["com,b)/", "com,a)/", "com,c)/"], total),
                expected
            );
        }
    }

    #[test]
    fn lines_that_sort_before_the_total_stay_first() {
        let expected = "!head\n%2bx)/ 4\n* 12\ncom,a)/ 4\ncom,b)/ 4\n";
        for total in [0, 12, 100] {
            assert_eq!(
                write_map(&["%2bx)/", "com,a)/", "com,b)/"], total),
                expected
            );
        }
    }

    #[test]
    fn empty_map_has_its_total() {
        for total in [0, 12] {
            assert_eq!(write_map(&[], total), "!head\n* 0\n");
        }
    }
}
