//! One line of a map: key, frequency, and further fields.

use super::Frequency;
use super::line_format::number;
use crate::uri::{RuleSet, normal_key};

/// A borrowed line of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key, with further key fields if the map has any, separated by single spaces: `com,a)/b 2014`.
    pub key: &'a [u8],
    /// The frequency of the key.
    pub frequency: Frequency,
    /// The text after the frequency: further values, or an object.
    pub tail: &'a [u8],
}

impl<'a> Entry<'a> {
    /// An entry without a tail.
    #[must_use]
    pub fn new(key: &'a [u8], frequency: Frequency) -> Self {
        Self {
            key,
            frequency,
            tail: b"",
        }
    }

    /// Parses a line that [`Entry::write`] wrote, or another one with single spaces between its fields. `fields` is the
    /// number of key fields. An invalid frequency becomes unknown, and the second result is false: a map must not lose
    /// keys. `None` if there are fewer fields than keys.
    #[must_use]
    pub fn read(line: &'a [u8], fields: usize) -> Option<(Self, bool)> {
        let mut spaces = memchr::memchr_iter(b' ', line);
        let key_end = spaces.nth(fields - 1);
        let (key, rest) = match key_end {
            Some(end) => (&line[..end], &line[end + 1..]),
            None if memchr::memchr_iter(b' ', line).count() + 1 == fields => (line, &b""[..]),
            None => return None,
        };
        if key.is_empty() {
            return None;
        }
        let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
        let tail = rest.get(end + 1..).unwrap_or_default();
        let frequency = Frequency::parse(&rest[..end]);
        let entry = Self {
            key,
            frequency: frequency.unwrap_or(Frequency::UNKNOWN),
            tail,
        };
        Some((entry, frequency.is_some()))
    }

    /// Fast path for a row of one key and a count in canonical form, which nearly all rows are.
    #[must_use]
    pub(super) fn read_plain(line: &'a [u8]) -> Option<(Self, bool)> {
        let digits = line.iter().rev().take_while(|byte| byte.is_ascii_digit());
        let (key, count) = line.split_at(line.len() - digits.count());
        let key = key.strip_suffix(b" ")?;
        // All bytes are inspected without an exit, so that the compiler vectorises the loop. Only the smallest one
        // matters.
        let smallest = key
            .iter()
            .fold(u8::MAX, |smallest, &byte| smallest.min(byte));
        if key.is_empty() || key[0] == b'!' || smallest <= b' ' {
            return None;
        }
        let (count, rest) = number(count)?;
        let frequency = Frequency::checked(count)?;
        rest.is_empty().then_some((Self::new(key, frequency), true))
    }

    /// Appends the line, with its end.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.key);
        out.push(b' ');
        self.frequency.write(out);
        if !self.tail.is_empty() {
            out.push(b' ');
            out.extend_from_slice(self.tail);
        }
        out.push(b'\n');
    }

    /// The first key field and the others: `com,a)/b` and `2014`.
    #[must_use]
    pub fn surt_and_extra(&self) -> (&'a [u8], &'a [u8]) {
        match memchr::memchr(b' ', self.key) {
            Some(space) => (&self.key[..space], &self.key[space + 1..]),
            None => (self.key, b""),
        }
    }

    /// Appends the normalized key of another map's line, with its further key fields and wildcard. Returns false, and
    /// appends nothing, if there is none.
    #[must_use]
    pub(super) fn write_normal_key(&self, rules: RuleSet, out: &mut Vec<u8>) -> bool {
        let (surt, extra) = self.surt_and_extra();
        let (node, wildcard) = match surt.strip_suffix(b"*") {
            Some(node) => (&node[..node.len() - 1], &surt[node.len() - 1..]),
            None => (surt, &b""[..]),
        };
        // Old indexes store URLs without a scheme: a key with a path is not a host, even without a terminator.
        let is_host = !node
            .iter()
            .any(|byte| matches!(byte, b')' | b'/' | b'\\' | b'?' | b'#'));
        let with_end = [node, if is_host { b")/" } else { b"" }].concat();
        let start = out.len();
        if normal_key(&with_end, rules, out).is_err() {
            return false;
        }
        if let Some(query) = memchr::memchr(b'?', &out[start..]) {
            out.truncate(start + query);
        }
        if is_host {
            if !out.ends_with(b")/") {
                out.truncate(start);
                return false;
            }
            out.truncate(out.len() - b")/".len());
        } else if !wildcard.is_empty() && out.ends_with(b")/") {
            out.pop();
        }
        out.extend_from_slice(wildcard);
        if !extra.is_empty() {
            out.push(b' ');
            out.extend_from_slice(extra);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(key: &str) -> Option<String> {
        let entry = Entry::new(key.as_bytes(), Frequency::UNKNOWN);
        let mut out = b"before".to_vec();
        let is_written = entry.write_normal_key(RuleSet::Wayback, &mut out);
        let out = String::from_utf8(out).expect("ascii");
        let written = out.strip_prefix("before").expect("it is there").to_owned();
        assert!(is_written || written.is_empty(), "{key}: {written}");
        is_written.then_some(written)
    }

    #[test]
    fn keys_of_other_maps_are_normalized_for_lookup() {
        for (key, expected) in [
            ("com,a)/B?c=1", "com,a)/b"),
            ("com,*", "com,*"),
            ("com,a)/*", "com,a)/*"),
            // A URL without its scheme, with any terminator after its host.
            ("a.com/b", "com,a)/b"),
            ("a.com\\b", "com,a)/b"),
            ("a.com#b", "com,a)/"),
        ] {
            assert_eq!(normal(key).as_deref(), Some(expected), "{key}");
        }
        assert_eq!(normal(")/a"), None);
    }
}
