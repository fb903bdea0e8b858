//! The lines of a map's file.

use std::io::Read;

use super::{Entry, Frequency, HoldingsError, Tally};
use crate::formats::{Lines, Source};

/// Reads the entries of a map, plain, gzip or zstd. Headers are passed over: whoever opens a map has read them.
pub struct MapReader {
    lines: Lines,
    fields: usize,
    /// The entry that was read last: its line, and what is where in it.
    line: Vec<u8>,
    key_len: usize,
    tail_len: usize,
    frequency: Frequency,
    /// Whether keys may come in any order, and more than once; such lines are counted as problems then.
    pub any_order: bool,
    /// What became of the lines.
    pub tally: Tally,
}

impl MapReader {
    /// `fields` is how many of a line's fields are keys.
    pub fn new<R: Read + Send + 'static>(
        file: R,
        fields: usize,
        line_limit: usize,
    ) -> Result<Self, HoldingsError> {
        Ok(Self {
            lines: Lines::new(Source::new(file)?, line_limit),
            fields,
            line: Vec::new(),
            key_len: 0,
            tail_len: 0,
            frequency: Frequency::UNKNOWN,
            any_order: false,
            tally: Tally::default(),
        })
    }

    /// The next entry. Keys must come in the order of their bytes, each once, unless any order is allowed.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>, HoldingsError> {
        Ok(self.advance()?.then(|| self.entry()))
    }

    /// The entry that was read last.
    #[must_use]
    pub fn entry(&self) -> Entry<'_> {
        Entry {
            key: &self.line[..self.key_len],
            frequency: self.frequency,
            tail: &self.line[self.line.len() - self.tail_len..],
        }
    }

    /// Reads the next entry; says whether there is one.
    pub fn advance(&mut self) -> Result<bool, HoldingsError> {
        while let Some(line) = self.lines.next_line()? {
            self.tally.lines += 1;
            if line.too_long {
                self.tally.problem("too-long", line.offset, line.text);
                continue;
            }
            if line.text.is_empty() || line.text[0] == b'!' {
                continue;
            }
            let Some((entry, is_read)) = Entry::read(line.text, self.fields) else {
                self.tally.problem("bad-row", line.offset, line.text);
                continue;
            };
            if !is_read {
                self.tally.problem("bad-frequency", line.offset, line.text);
            }
            if entry.key <= &self.line[..self.key_len] {
                if self.any_order {
                    self.tally.problem("unsorted", line.offset, line.text);
                } else {
                    return Err(HoldingsError::Unsorted { line: line.number });
                }
            }
            self.key_len = entry.key.len();
            self.tail_len = entry.tail.len();
            self.frequency = entry.frequency;
            self.line.clear();
            self.line.extend_from_slice(line.text);
            self.tally.counted += 1;
            return Ok(true);
        }
        match self.lines.damage() {
            None => Ok(false),
            Some(damage) => Err(HoldingsError::Unreadable {
                line: self.tally.lines + 1,
                message: format!(
                    "the compressed file is {}: a part of a map is no map",
                    damage.kind()
                ),
            }),
        }
    }
}
