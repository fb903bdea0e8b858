//! The key column of an index, at the speed of the disk.

use std::io::{self, Read};

use super::{Damage, Lines, Source};

/// What a pass over an index's key column found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyColumn {
    /// Lines that are rows: neither blank nor headers, nor left out.
    pub rows: u64,
    /// Lines that cannot be read: too long, or cut by damage.
    pub left_out: u64,
    /// Keys, counting each run of equal ones once: all different ones if the index is sorted.
    pub keys: u64,
    /// The first line whose key is smaller than that before it, if the index is not sorted.
    pub first_unsorted: Option<u64>,
    /// What ended the file early.
    pub damage: Option<Damage>,
}

/// Whether a line of an index is a header: ` CDX …`, `!meta …`, `@context …`, or a comment.
#[must_use]
pub fn is_header(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'!' | b'@' | b'#'))
        || line.get(1..4) == Some(b"CDX") && !line[0].is_ascii_alphanumeric()
}

/// Reads the first column of a CDX or CDXJ file.
pub fn read_key_column<R: Read + Send + 'static>(file: R, limit: usize) -> io::Result<KeyColumn> {
    let mut lines = Lines::new(Source::new(file)?, limit);
    let mut column = KeyColumn::default();
    let mut last: Vec<u8> = Vec::new();
    while let Some(line) = lines.next_line()? {
        if line.too_long || line.is_cut {
            column.left_out += 1;
            continue;
        }
        // Some editors put a byte-order mark before the first line.
        let text = match line.text.strip_prefix(b"\xef\xbb\xbf") {
            Some(text) if line.number == 1 => text,
            _ => line.text,
        };
        // Most lines repeat the key of the line before: one comparison tells, without looking for its end. Not those that
        // begin with white space, which may be blank.
        let repeats = last
            .first()
            .is_some_and(|first| !first.is_ascii_whitespace())
            && text.starts_with(&last)
            && text.get(last.len()) == Some(&b' ');
        if repeats {
            column.rows += 1;
            continue;
        }
        if is_header(text) || text.trim_ascii().is_empty() {
            continue;
        }
        let key = &text[..memchr::memchr(b' ', text).unwrap_or(text.len())];
        // An empty key, or one that fills its line.
        if column.rows > 0 && key == last {
            column.rows += 1;
            continue;
        }
        if column.first_unsorted.is_none() && key < last.as_slice() {
            column.first_unsorted = Some(line.number);
        }
        column.rows += 1;
        column.keys += 1;
        last.clear();
        last.extend_from_slice(key);
    }
    column.damage = lines.damage();
    Ok(column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn rows_and_keys_are_counted() {
        let text = b"\xef\xbb\xbf CDX N b a\n!meta {}\ncom,a)/ 2014 x\ncom,a)/ 2015 x\ncom,a)/b 2014 x\n\ncom,a)/ 2016 x\n";
        let column = read_key_column(Cursor::new(text), 1000).expect("memory");
        assert_eq!(
            column,
            KeyColumn {
                rows: 4,
                left_out: 0,
                keys: 3,
                first_unsorted: Some(7),
                damage: None
            }
        );
    }

    #[test]
    fn lines_that_cannot_be_read_are_no_rows() {
        let text = b"com,a)/ 2014\ncom,a)/ 2015 too long\n# a comment too long\ncom,b)/ 2014";
        let column = read_key_column(Cursor::new(text), 12).expect("memory");
        assert_eq!((column.rows, column.keys, column.left_out), (2, 2, 2));
        let cut = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\0\x05\0\xfa\xffa 1\nb";
        let column = read_key_column(Cursor::new(cut), 12).expect("memory");
        assert_eq!((column.rows, column.keys, column.left_out), (1, 1, 1));
    }

    #[test]
    fn runs_of_odd_keys_count_once() {
        let text = b" 2014\n 2015\n \t \r\ncom,a)/\ncom,a)/\ncom,a)/ 2014\n";
        let column = read_key_column(Cursor::new(text), 1000).expect("memory");
        assert_eq!((column.rows, column.keys), (5, 2));
    }
}
