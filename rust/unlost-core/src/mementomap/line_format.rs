//! The line format in which sorted entries are stored. It is that of the final file, so that ordered entries are copied
//! there verbatim.

use super::frequency::write_number;
use super::{Entry, Frequency};

const FREQUENCY: &[u8] = b" {\"frequency\": ";
const SPREAD: &[u8] = b", \"spread\": ";

/// The format of an entry as a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineFormat {
    /// As in a map.
    Map {
        /// The number of key fields per line.
        fields: usize,
    },
    /// As in a profile of one archive.
    Profile,
}

impl LineFormat {
    pub(super) fn write(self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Map { .. } => entry.write(out),
            Self::Profile => {
                let frequency = entry.frequency.mementos.value().unwrap_or(0);
                write_profile_line(entry.key, frequency, 1, out);
                out.extend_from_slice(b"}\n");
            }
        }
    }

    /// Parses the output of [`LineFormat::write`], without the line end.
    pub(super) fn read(self, line: &[u8]) -> Option<Entry<'_>> {
        match self {
            Self::Map { fields: 1 } => Entry::read_plain(line)
                .or_else(|| Entry::read(line, 1))
                .map(|(entry, _)| entry),
            Self::Map { fields } => Entry::read(line, fields).map(|(entry, _)| entry),
            Self::Profile => {
                // Keys may contain braces, but not followed by a space.
                let at = memchr::memmem::find(line, FREQUENCY)?;
                let (frequency, _) = plain_numbers(&line[at..])?;
                Some(Entry::new(&line[..at], Frequency::of(frequency)))
            }
        }
    }
}

/// Appends the line of a profile up to its closing brace.
pub(super) fn write_profile_line(key: &[u8], frequency: u64, spread: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(key);
    out.extend_from_slice(FREQUENCY);
    write_number(frequency, out);
    out.extend_from_slice(SPREAD);
    write_number(spread, out);
}

/// Frequency and spread after a key, if they are in canonical form and followed by nothing.
pub(super) fn plain_numbers(rest: &[u8]) -> Option<(u64, u64)> {
    let (frequency, rest) = number(rest.strip_prefix(FREQUENCY)?)?;
    let (spread, rest) = number(rest.strip_prefix(SPREAD)?)?;
    (rest == b"}").then_some((frequency, spread))
}

/// A JSON number of at most 18 digits, and the text after it.
pub(super) fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > 18 || digits > 1 && text[0] == b'0' {
        return None;
    }
    let value = text[..digits]
        .iter()
        .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    Some((value, &text[digits..]))
}
