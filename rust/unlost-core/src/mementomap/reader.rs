//! Reads the lines of map files.

use std::io::Read;
use std::sync::Arc;

use super::progress::{CHECK_INTERVAL_LINES, Metered};
use super::{Entry, Frequency, HoldingsError, LineStats, Progress};
use crate::index::without_bom;
use crate::input::Lines;
use crate::input::Source;

/// Reads the entries of a map, plain, gzip or zstd. Headers are skipped: they are read when the map is opened.
pub struct MapReader {
    lines: Lines,
    fields: usize,
    /// The last entry: its line, and the positions in it.
    line: Vec<u8>,
    key_len: usize,
    tail_len: usize,
    frequency: Frequency,
    row_bytes: Option<RowBytes>,
    /// Whether keys may be unsorted and repeated; such lines are then counted as problems.
    pub any_order: bool,
    /// The line statistics.
    pub line_stats: LineStats,
    progress: Option<Arc<Progress>>,
}

impl MapReader {
    /// `fields` is the number of key fields per line.
    pub fn new<R: Read + Send + 'static>(
        file: R,
        fields: usize,
        line_limit: usize,
    ) -> Result<Self, HoldingsError> {
        let source = Source::new(file)?;
        // A plain file is checked by its size before it is read, and may be a part of a map.
        let row_bytes = source.is_compressed().then(RowBytes::default);
        Ok(Self {
            lines: Lines::new(source, line_limit),
            fields,
            line: Vec::new(),
            key_len: 0,
            tail_len: 0,
            frequency: Frequency::UNKNOWN,
            row_bytes,
            any_order: false,
            line_stats: LineStats::default(),
            progress: None,
        })
    }

    /// The same with progress reports and cancellation.
    pub fn with_progress<R: Read + Send + 'static>(
        file: R,
        fields: usize,
        line_limit: usize,
        progress: &Arc<Progress>,
    ) -> Result<Self, HoldingsError> {
        let file = Metered {
            file,
            progress: Arc::clone(progress),
        };
        Ok(Self {
            progress: Some(Arc::clone(progress)),
            ..Self::new(file, fields, line_limit)?
        })
    }

    /// The next entry. Keys must be sorted and unique, unless any order is allowed.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>, HoldingsError> {
        Ok(self.advance()?.then(|| self.entry()))
    }

    /// The last entry.
    #[must_use]
    pub fn entry(&self) -> Entry<'_> {
        Entry {
            key: &self.line[..self.key_len],
            frequency: self.frequency,
            tail: &self.line[self.line.len() - self.tail_len..],
        }
    }

    /// Reads the next entry; returns whether there is one.
    pub fn advance(&mut self) -> Result<bool, HoldingsError> {
        while let Some(line) = self.lines.next_line()? {
            self.line_stats.lines += 1;
            if self.line_stats.lines % CHECK_INTERVAL_LINES == 0 {
                if let Some(progress) = &self.progress {
                    progress.add_lines(CHECK_INTERVAL_LINES);
                    progress.check_cancelled()?;
                }
            }
            if line.too_long {
                self.line_stats
                    .add_problem("too-long", line.offset, line.text);
                continue;
            }
            let mut text = match line.number {
                1 => without_bom(line.text),
                _ => line.text,
            };
            let respaced;
            let mut read = if self.fields == 1 {
                Entry::read_plain(text)
            } else {
                None
            };
            if read.is_none() {
                read = Entry::read(text, self.fields);
                if !is_plain(read.as_ref(), self.fields) {
                    respaced = with_single_spaces(text);
                    text = &respaced;
                    read = Entry::read(text, self.fields);
                }
            }
            if text.is_empty() || text[0] == b'!' {
                if let (Some(row_bytes), 0) = (&mut self.row_bytes, self.line_stats.counted) {
                    row_bytes.read_header(text);
                    row_bytes.start = self.lines.offset();
                }
                continue;
            }
            let Some((entry, is_read)) = read else {
                self.line_stats
                    .add_problem("bad-row", line.offset, line.text);
                continue;
            };
            if !is_read {
                self.line_stats
                    .add_problem("bad-frequency", line.offset, line.text);
            }
            if entry.key <= &self.line[..self.key_len] {
                if self.any_order {
                    self.line_stats
                        .add_problem("unsorted", line.offset, line.text);
                } else {
                    return Err(HoldingsError::Unreadable {
                        line: line.number,
                        message: "its key belongs before the one above it, or is the same: `unlost map build` puts rows in order"
                            .to_owned(),
                    });
                }
            }
            self.key_len = entry.key.len();
            self.tail_len = entry.tail.len();
            self.frequency = entry.frequency;
            self.line.clear();
            self.line.extend_from_slice(text);
            self.line_stats.counted += 1;
            return Ok(true);
        }
        if let Some(progress) = &self.progress {
            progress.add_lines(self.line_stats.lines % CHECK_INTERVAL_LINES);
        }
        match self.lines.damage() {
            None => {
                if let Some(row_bytes) = &self.row_bytes {
                    row_bytes.check(self.lines.offset(), self.line_stats.lines)?;
                }
                Ok(false)
            }
            Some(damage) => Err(HoldingsError::Unreadable {
                line: self.line_stats.lines + 1,
                message: format!(
                    "the compressed file is {}: a part of a map is no map",
                    damage.kind()
                ),
            }),
        }
    }
}

/// The size of the rows of a map, as declared in its header.
#[derive(Debug, Default)]
struct RowBytes {
    /// The declared size; `None` if there is none.
    declared: Option<u64>,
    /// The offset of the first row.
    start: u64,
}

impl RowBytes {
    /// Parses a line of the header.
    fn read_header(&mut self, line: &[u8]) {
        const NAME: &[u8] = b"\"row_bytes\":";
        if !line.starts_with(b"!meta") {
            return;
        }
        if let Some(at) = memchr::memmem::rfind(line, NAME) {
            let value = line[at + NAME.len()..].trim_ascii_start();
            let digits = value.iter().take_while(|byte| byte.is_ascii_digit());
            let digits = &value[..digits.count()];
            self.declared = std::str::from_utf8(digits)
                .ok()
                .and_then(|text| text.parse().ok());
        }
    }

    /// Compares the declared size with the end of the rows.
    fn check(&self, end: u64, lines: u64) -> Result<(), HoldingsError> {
        let actual = end - self.start;
        match self.declared {
            Some(declared) if declared != actual => Err(HoldingsError::Unreadable {
                line: lines,
                message: wrong_row_bytes(declared, actual),
            }),
            _ => Ok(()),
        }
    }
}

/// The message about a map with more or fewer bytes of rows than its header declares.
#[must_use]
pub fn wrong_row_bytes(declared: u64, actual: u64) -> String {
    let what = if actual < declared {
        "truncated"
    } else {
        "changed after it was written"
    };
    format!(
        "{what}: the header declares {declared} bytes of rows (`row_bytes`), the file has {actual}: copy or build the map \
         again, or remove `row_bytes` from the header if the rows were edited on purpose"
    )
}

/// Whether a row is in canonical form. Look-up ends a field at any white space, so reading must, too.
fn is_plain(read: Option<&(Entry<'_>, bool)>, fields: usize) -> bool {
    read.is_some_and(|(entry, is_read)| {
        let key = entry.key;
        let is_single = fields == 1 || memchr::memmem::find(key, b"  ").is_none();
        *is_read && is_single && !key.ends_with(b" ") && key.iter().all(|&byte| byte >= b' ')
    })
}

/// A line with one space between its fields, up to the object at its end.
fn with_single_spaces(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.iter().position(|&byte| byte > b' ') {
        rest = &rest[start..];
        if !out.is_empty() {
            out.push(b' ');
        }
        let is_object = rest[0] == b'{' && !out.is_empty();
        let end = rest.iter().position(|&byte| byte <= b' ' && !is_object);
        let (field, others) = rest.split_at(end.unwrap_or(rest.len()));
        out.extend_from_slice(field);
        rest = others;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str, fields: usize) -> Vec<String> {
        let mut reader = MapReader::new(text.as_bytes(), fields, 1000).expect("memory");
        let mut lines = Vec::new();
        while let Some(entry) = reader.next_entry().expect("sorted") {
            let mut line = Vec::new();
            entry.write(&mut line);
            lines.push(String::from_utf8(line).expect("text"));
        }
        lines
    }

    #[test]
    fn fields_end_where_lookup_ends_them() {
        let text = "\u{feff}!meta {}\n  \n !id {}\n com,a)/ 1\ncom,b)/  2 {\"a\":  1}\ncom,c)/\t3\ncom,d)/\x01x 4\n";
        let expected = [
            "com,a)/ 1\n",
            "com,b)/ 2 {\"a\":  1}\n",
            "com,c)/ 3\n",
            "com,d)/ / 4\n",
        ];
        assert_eq!(read(text, 1), expected);
        assert_eq!(
            read("a)/  2014 5\nb)/ 2014 x y\n", 2),
            ["a)/ 2014 5\n", "b)/ 2014 / y\n"]
        );
        assert_eq!(read("\u{feff}com,a)/ 1\n", 1), ["com,a)/ 1\n"]);
    }

    #[test]
    fn lines_of_any_length_are_read() {
        // Some of them cross a read boundary.
        let lines: Vec<String> = (0..200_000).map(|n| format!("com,a)/{n:06} 1\n")).collect();
        let text = std::io::Cursor::new(lines.concat());
        let mut reader = MapReader::new(text, 1, usize::MAX).expect("memory");
        let mut read = 0;
        while reader.next_entry().expect("sorted").is_some() {
            read += 1;
        }
        assert_eq!((read, reader.line_stats.problems.len()), (200_000, 0));
    }
}
