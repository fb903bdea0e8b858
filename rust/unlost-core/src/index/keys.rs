//! Reads the key column of an index at the speed of the disk.

use std::io;
use std::thread;

use crate::input::{BLOCK_BYTES, Block, Blocks, Damage, Input, process_in_order};

/// The result of a pass over the key column of an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyColumn {
    /// Rows: lines that are not blank, headers or skipped.
    pub rows: u64,
    /// Lines that cannot be read: too long, or cut by damage.
    pub skipped: u64,
    /// Distinct keys, counting each run of equal keys once. Exact if the index is sorted.
    pub keys: u64,
    /// The first line whose key is smaller than the previous one, if the index is not sorted.
    pub first_unsorted: Option<u64>,
    /// What truncated the file.
    pub damage: Option<Damage>,
}

/// Whether a line of an index is a header: ` CDX …`, `!meta …`, `@context …`, or a comment.
#[must_use]
pub fn is_header(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'!' | b'@' | b'#'))
        || line.get(1..4) == Some(b"CDX") && !line[0].is_ascii_alphanumeric()
}

/// The text without a byte-order mark.
#[must_use]
pub fn without_bom(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// More threads would only wait for the file.
const MAX_THREADS: usize = 4;

/// Reads the first column of a CDX or CDXJ file.
pub fn read_key_column<R: Input + Send + Sync>(file: R, limit: usize) -> io::Result<KeyColumn> {
    let blocks = Blocks::new(file, limit, BLOCK_BYTES)?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut whole = Part::default();
    process_in_order(
        &blocks,
        threads.min(MAX_THREADS),
        |block, part: &mut Part| {
            part.read(block, limit);
            Ok(())
        },
        |part| {
            whole.append(part);
            Ok::<(), io::Error>(())
        },
    )?;
    Ok(KeyColumn {
        skipped: whole.column.skipped + u64::from(blocks.is_cut()),
        damage: blocks.damage(),
        ..whole.column
    })
}

/// The result for consecutive lines.
#[derive(Debug, Default)]
struct Part {
    column: KeyColumn,
    lines: u64,
    /// The first key with its line, and the last, if there are any.
    first: Vec<u8>,
    first_line: u64,
    last: Vec<u8>,
}

impl Part {
    fn read(&mut self, block: &Block, limit: usize) {
        *self = Self {
            first: std::mem::take(&mut self.first),
            last: std::mem::take(&mut self.last),
            ..Self::default()
        };
        let text = block.text();
        let column = &mut self.column;
        let mut last: Option<&[u8]> = None;
        // A prefix that proves that a line has the key of the previous one. Empty if the prefix starts with white
        // space, which may be all of it.
        let mut repeated: &[u8] = b"";
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', text) {
            let line = &text[start..end];
            start = end + 1;
            self.lines += 1;
            // Most lines repeat the previous key: one comparison shows it, without a search for the end of the key.
            if !repeated.is_empty() && line.starts_with(repeated) && line.len() <= limit {
                column.rows += 1;
                continue;
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.len() > limit {
                column.skipped += 1;
                continue;
            }
            let line = if block.index == 0 && self.lines == 1 {
                without_bom(line)
            } else {
                line
            };
            if is_header(line) || line.trim_ascii().is_empty() {
                continue;
            }
            let key_end = memchr::memchr(b' ', line);
            let key = &line[..key_end.unwrap_or(line.len())];
            column.rows += 1;
            if last == Some(key) {
                continue;
            }
            if column.first_unsorted.is_none() && last.is_some_and(|last| key < last) {
                column.first_unsorted = Some(self.lines);
            }
            if last.is_none() {
                self.first.clear();
                self.first.extend_from_slice(key);
                self.first_line = self.lines;
            }
            column.keys += 1;
            last = Some(key);
            repeated = match (key_end, key.first()) {
                (Some(end), Some(first)) if !first.is_ascii_whitespace() => &line[..=end],
                _ => b"",
            };
        }
        self.last.clear();
        self.last.extend_from_slice(last.unwrap_or_default());
    }

    /// Appends the result for the lines that follow.
    fn append(&mut self, next: &mut Self) {
        let (column, more) = (&mut self.column, &next.column);
        let has_both = column.keys > 0 && more.keys > 0;
        let begins_lower = has_both && next.first < self.last;
        let unsorted = if begins_lower {
            Some(next.first_line)
        } else {
            more.first_unsorted
        };
        if column.first_unsorted.is_none() {
            column.first_unsorted = unsorted.map(|line| self.lines + line);
        }
        column.rows += more.rows;
        column.skipped += more.skipped;
        column.keys += more.keys - u64::from(has_both && next.first == self.last);
        self.lines += next.lines;
        if more.keys > 0 {
            std::mem::swap(&mut self.last, &mut next.last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn rows_and_distinct_keys_are_counted() {
        let text = b"\xef\xbb\xbf CDX N b a\n!meta {}\ncom,a)/ 2014 x\ncom,a)/ 2015 x\ncom,a)/b 2014 x\n\ncom,a)/ 2016 x\n";
        let column = read_key_column(Cursor::new(text), 1000).expect("memory");
        assert_eq!(
            column,
            KeyColumn {
                rows: 4,
                skipped: 0,
                keys: 3,
                first_unsorted: Some(7),
                damage: None
            }
        );
    }

    #[test]
    fn unreadable_lines_are_not_counted_as_rows() {
        let text = b"com,a)/ 2014\ncom,a)/ 2015 too long\n# a comment too long\ncom,b)/ 2014";
        let column = read_key_column(Cursor::new(text), 12).expect("memory");
        assert_eq!((column.rows, column.keys, column.skipped), (2, 2, 2));
        let cut = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\0\x05\0\xfa\xffa 1\nb";
        let column = read_key_column(Cursor::new(cut), 12).expect("memory");
        assert_eq!((column.rows, column.keys, column.skipped), (1, 1, 1));
    }

    #[test]
    fn runs_of_unusual_keys_count_once() {
        let text = b" 2014\n 2015\n \t \r\ncom,a)/\ncom,a)/\ncom,a)/ 2014\n";
        let column = read_key_column(Cursor::new(text), 1000).expect("memory");
        assert_eq!((column.rows, column.keys), (5, 2));
    }
}
