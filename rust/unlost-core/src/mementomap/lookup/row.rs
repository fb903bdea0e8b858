//! The lines of a map: `KEY[ EXTRA…] FREQUENCY[ more]`, after headers that begin with `!`.

use std::fmt;

use super::super::{Count, Frequency};
use crate::index::without_bom;

/// The frequency of a row without a valid one: held, in an unknown number.
pub(super) const UNKNOWN: Frequency = Frequency {
    mementos: Count::UNKNOWN,
    resources: Count::UNKNOWN,
};

/// The layout of a map's rows, from its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The field number of the frequency, the key being 0; `None` if rows have none.
    pub frequency: Option<usize>,
    /// Whether everything was rolled up into the `*` row, which is otherwise only the total.
    pub is_rolled_up: bool,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            frequency: Some(1),
            is_rolled_up: false,
        }
    }
}

/// Whether a byte ends a key or another field: white space, and everything else that no key contains.
pub(super) fn ends_field(byte: u8) -> bool {
    byte <= b' '
}

/// The start of the key in a line; `None` if the line is blank or a header.
pub(super) fn key_start(line: &[u8]) -> Option<usize> {
    let start = line.iter().position(|&byte| !ends_field(byte))?;
    (line[start] != b'!').then_some(start)
}

/// The key of a row that begins with it.
pub(super) fn key(row: &[u8]) -> &[u8] {
    let end = row.iter().position(|&byte| ends_field(byte));
    &row[..end.unwrap_or(row.len())]
}

/// The frequency of a row; `rest` is the text after its key. An invalid one is held, in an unknown number: a map must
/// not lose keys.
pub(super) fn frequency(rest: &[u8], layout: Layout) -> Frequency {
    let field = layout.frequency.and_then(|field| {
        rest.split(|&byte| ends_field(byte))
            .filter(|field| !field.is_empty())
            .take_while(|field| field[0] != b'{')
            .nth(field.checked_sub(1)?)
    });
    field.and_then(Frequency::parse).unwrap_or(UNKNOWN)
}

/// The line at an offset, without its end, and the offset of the next one.
pub(super) fn line_at(text: &[u8], start: usize) -> (&[u8], usize) {
    match memchr::memchr(b'\n', &text[start..]) {
        Some(length) => (&text[start..start + length], start + length + 1),
        None => (&text[start..], text.len()),
    }
}

/// The start of the line that contains a byte.
pub(super) fn line_start(text: &[u8], from: usize, within: usize) -> usize {
    memchr::memrchr(b'\n', &text[from..within]).map_or(from, |end| from + end + 1)
}

/// The length of the headers, including blank lines and a byte-order mark.
#[must_use]
pub fn header_end(text: &[u8]) -> usize {
    let mut start = text.len() - without_bom(text).len();
    while start < text.len() {
        let (line, next) = line_at(text, start);
        if key_start(line).is_some() {
            break;
        }
        start = next;
    }
    start
}

/// The reasons why a file is not a map, detected from its first lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAMap {
    /// Neither headers nor rows.
    Empty,
    /// Its first row is an index row.
    Index,
    /// It has the headers of a profile.
    Profile,
    /// It has the magic text of a filter.
    Filter,
    /// Its first row is of another kind.
    Else,
}

impl fmt::Display for NotAMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "empty: expected a map, with at least a header such as `!fields`",
            Self::Index => "an index, not a map: `unlost map build` makes one of it",
            Self::Profile => "a profile, not a map: `unlost profile lookup` reads it",
            Self::Filter => "a filter, not a map: `unlost filter lookup` reads it",
            Self::Else => "not a map: expected rows such as `com,example)/* 10`",
        })
    }
}

impl std::error::Error for NotAMap {}

/// Checks the first row of a map, if there is one, after its headers.
pub fn check_first_row(headers: &[u8], row: Option<&[u8]>) -> Result<(), NotAMap> {
    let Some(row) = row else {
        return if headers.contains(&b'!') {
            Ok(())
        } else {
            Err(NotAMap::Empty)
        };
    };
    let row = &row[key_start(row).unwrap_or(0)..];
    let key = key(row);
    if key.first() == Some(&b'@') {
        return Err(NotAMap::Profile);
    }
    if key == b"unlost-filter" {
        return Err(NotAMap::Filter);
    }
    let mut fields = row.split(|&byte| ends_field(byte)).skip(1);
    let is_date = |field: &[u8]| field.len() == 14 && field.iter().all(u8::is_ascii_digit);
    // Fourteen digits may also be a count, if the headers name the fields.
    let names_fields = memchr::memmem::find(headers, b"!fields").is_some();
    let is_row = fields.next().is_some_and(is_date) && fields.next().is_some();
    if key == b"CDX" || is_row && !names_fields {
        return Err(NotAMap::Index);
    }
    if key.ends_with(b"*") || key.contains(&b')') {
        Ok(())
    } else {
        Err(NotAMap::Else)
    }
}
