//! The lines of a profile's file: `key {"frequency": 14, "spread": 2}`.

use std::cmp::Ordering;
use std::io::Read;
use std::sync::Arc;

use crate::index::is_header;
use crate::index::member;
use crate::input::Lines;
use crate::input::Source;
use crate::mementomap::frequency::write_number;
use crate::mementomap::line_format::{number, plain_numbers, write_profile_line};
use crate::mementomap::progress::{CHECK_INTERVAL_LINES, Metered};
use crate::mementomap::{HoldingsError, Progress};

/// The maximum count: 18 digits, as in maps.
const MAX_COUNT: u64 = 999_999_999_999_999_999;

/// The holdings under a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holding {
    /// URI-Ms.
    pub frequency: u64,
    /// The number of merged profiles with this key.
    pub spread: u64,
    /// For a key that represents a host without its port: the number of URI-Ms per port, in order.
    pub ports: Vec<(u16, u64)>,
}

impl Holding {
    /// Adds the holdings of another profile under the key. Returns false if a number exceeds 18 digits.
    #[must_use]
    pub fn add(&mut self, other: &Self) -> bool {
        self.frequency += other.frequency;
        self.spread += other.spread;
        for &(port, count) in &other.ports {
            self.add_port(port, count);
        }
        self.frequency <= MAX_COUNT && self.spread <= MAX_COUNT
    }

    /// Assigns `count` of the URI-Ms to a port.
    pub(super) fn add_port(&mut self, port: u16, count: u64) {
        match self.ports.binary_search_by_key(&port, |known| known.0) {
            Ok(at) => self.ports[at].1 += count,
            Err(at) => self.ports.insert(at, (port, count)),
        }
    }

    /// Appends the line for a key, with its end.
    pub fn write(&self, key: &[u8], out: &mut Vec<u8>) {
        write_profile_line(key, self.frequency, self.spread, out);
        if !self.ports.is_empty() {
            out.extend_from_slice(b", \"ports\": {");
            for (i, (port, count)) in self.ports.iter().enumerate() {
                out.extend_from_slice(if i > 0 { b", \"" } else { b"\"" });
                write_number(u64::from(*port), out);
                out.extend_from_slice(b"\": ");
                write_number(*count, out);
            }
            out.push(b'}');
        }
        out.extend_from_slice(b"}\n");
    }

    /// Parses the object after a key, or returns the error in it.
    fn read(&mut self, rest: &[u8]) -> Result<(), Fault> {
        self.ports.clear();
        if let Some((frequency, spread)) = plain_numbers(rest) {
            (self.frequency, self.spread) = (frequency, spread);
            return Ok(());
        }
        if !rest.trim_ascii().ends_with(b"}") {
            return Err(Fault::Row);
        }
        let count = |name: &[u8]| {
            let value = member(rest, &[name])?;
            number(&value).and_then(|(value, rest)| rest.is_empty().then_some(value))
        };
        self.frequency = count(b"frequency").ok_or(Fault::Frequency)?;
        // Optional in a profile of one archive.
        self.spread = match member(rest, &[b"spread"]) {
            None => 1,
            Some(_) => count(b"spread").ok_or(Fault::Spread)?,
        };
        if let Some(ports) = member(rest, &[b"ports"]) {
            self.read_ports(&ports).ok_or(Fault::Ports)?;
        }
        Ok(())
    }

    fn read_ports(&mut self, object: &[u8]) -> Option<()> {
        let inner = object.strip_prefix(b"{")?.strip_suffix(b"}")?;
        let mut counted: u64 = 0;
        for pair in inner.split(|&byte| byte == b',') {
            let pair = pair.trim_ascii().strip_prefix(b"\"")?;
            let (port, rest) = number(pair)?;
            let rest = rest.strip_prefix(b"\"")?.trim_ascii_start();
            let (count, rest) = number(rest.strip_prefix(b":")?.trim_ascii_start())?;
            let port = u16::try_from(port).ok().filter(|_| rest.is_empty())?;
            // Checked before the addition: enough of them would overflow.
            counted = counted.checked_add(count)?;
            if counted > self.frequency {
                return None;
            }
            self.add_port(port, count);
        }
        Some(())
    }
}

/// The kinds of errors in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    TooLong,
    Row,
    Frequency,
    Spread,
    Ports,
    Unsorted,
    Duplicate,
}

impl Fault {
    /// The error code, used for counting.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::TooLong => "too-long",
            Self::Row => "bad-row",
            Self::Frequency => "bad-frequency",
            Self::Spread => "bad-spread",
            Self::Ports => "bad-ports",
            Self::Unsorted => "unsorted",
            Self::Duplicate => "duplicate-key",
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::TooLong => "the line is too long",
            Self::Row => {
                "expected a key and an object: `com,a)/ {\"frequency\": 14, \"spread\": 2}`"
            }
            Self::Frequency => "expected a `frequency` of at most 18 digits",
            Self::Spread => "expected a `spread` of at most 18 digits",
            Self::Ports => "expected `ports` with the part of the frequency that each has",
            Self::Unsorted => {
                "the key belongs before the one above it: sort the lines below the header by bytes (LC_ALL=C sort)"
            }
            Self::Duplicate => "the key stands in the line above already",
        }
    }
}

/// Reads the lines of a profile, plain, gzip or zstd. Headers are skipped: they are read when the profile is opened.
pub struct ProfileReader {
    /// The name of the file in messages.
    name: String,
    lines: Lines,
    key: Vec<u8>,
    holding: Holding,
    /// The number of the last line, from 1, and its offset.
    pub(super) number: u64,
    pub(super) offset: u64,
    progress: Option<Arc<Progress>>,
}

impl ProfileReader {
    /// Lines with more bytes than the limit are an error.
    pub fn new<R: Read + Send + 'static>(
        file: R,
        name: String,
        line_limit: usize,
    ) -> Result<Self, HoldingsError> {
        Ok(Self {
            name,
            lines: Lines::new(Source::new(file)?, line_limit),
            key: Vec::new(),
            holding: Holding::default(),
            number: 0,
            offset: 0,
            progress: None,
        })
    }

    /// The same with progress reports.
    pub fn with_progress<R: Read + Send + 'static>(
        file: R,
        name: String,
        line_limit: usize,
        progress: &Arc<Progress>,
    ) -> Result<Self, HoldingsError> {
        let file = Metered {
            file,
            progress: Arc::clone(progress),
        };
        Ok(Self {
            progress: Some(Arc::clone(progress)),
            ..Self::new(file, name, line_limit)?
        })
    }

    /// The last key and its holdings.
    #[must_use]
    pub fn row(&self) -> (&[u8], &Holding) {
        (&self.key, &self.holding)
    }

    /// Reads the next line; returns whether there is one. Keys must be sorted and unique: a skipped line would be a
    /// page that is not found.
    pub fn advance(&mut self) -> Result<bool, HoldingsError> {
        match self.next()? {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(fault)) => {
                let error = self.unreadable(self.number, fault.message().to_owned());
                // The last line of a truncated file is truncated too.
                let at_end = self.lines.next_line()?.is_none();
                Err(self.damage().filter(|_| at_end).unwrap_or(error))
            }
        }
    }

    fn damage(&self) -> Option<HoldingsError> {
        let damage = self.lines.damage()?;
        Some(self.unreadable(
            self.number + 1,
            format!(
                "the compressed file is {}: a part of a profile is no profile",
                damage.kind()
            ),
        ))
    }

    fn unreadable(&self, line: u64, message: String) -> HoldingsError {
        HoldingsError::InFile {
            name: self.name.clone(),
            error: Box::new(HoldingsError::Unreadable { line, message }),
        }
    }

    /// Reads the next line and returns the error in it. A misplaced line is parsed nevertheless.
    pub(super) fn next(&mut self) -> Result<Option<Result<(), Fault>>, HoldingsError> {
        while let Some(line) = self.lines.next_line()? {
            (self.number, self.offset) = (line.number, line.offset);
            if let Some(progress) = self
                .progress
                .as_ref()
                .filter(|_| line.number % CHECK_INTERVAL_LINES == 0)
            {
                progress.add_lines(CHECK_INTERVAL_LINES);
                progress.check_cancelled()?;
            }
            if line.too_long {
                return Ok(Some(Err(Fault::TooLong)));
            }
            if line.text.is_empty() || is_header(line.text) {
                continue;
            }
            // Keys may contain braces; only the object begins a column with one.
            let Some(space) = memchr::memchr(b' ', line.text).filter(|space| *space > 0) else {
                return Ok(Some(Err(Fault::Row)));
            };
            let (key, rest) = line.text.split_at(space);
            // Maps end a key at any white space, so a key must not contain any.
            let is_key = key.iter().all(|&byte| byte > b' ');
            if !is_key || !rest.trim_ascii_start().starts_with(b"{") {
                return Ok(Some(Err(Fault::Row)));
            }
            if let Err(fault) = self.holding.read(rest) {
                return Ok(Some(Err(fault)));
            }
            let result = match key.cmp(&self.key) {
                Ordering::Less => Err(Fault::Unsorted),
                Ordering::Equal => Err(Fault::Duplicate),
                Ordering::Greater => Ok(()),
            };
            self.key.clear();
            self.key.extend_from_slice(key);
            return Ok(Some(result));
        }
        self.damage().map_or(Ok(None), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> Result<Vec<(String, Holding)>, HoldingsError> {
        let mut reader = ProfileReader::new(text.as_bytes(), "x".to_owned(), 1000)?;
        let mut found = Vec::new();
        while reader.advance()? {
            let (key, holding) = reader.row();
            found.push((String::from_utf8_lossy(key).into_owned(), holding.clone()));
        }
        Ok(found)
    }

    #[test]
    fn key_has_no_white_space_and_port_counts_stay_within_the_total() {
        assert!(read("\x05cm,a)/ {\"frequency\": 14}\n").is_err());
        assert!(read("cm,\ta)/ {\"frequency\": 14}\n").is_err());
        let most = "999999999999999999";
        let ports: Vec<String> = (1..30).map(|port| format!("\"{port}\": {most}")).collect();
        let line = format!(
            "a {{\"frequency\": {most}, \"ports\": {{{}}}}}\n",
            ports.join(", ")
        );
        assert!(read(Box::leak(line.into_boxed_str())).is_err());
    }

    #[test]
    fn any_object_spelling_is_parsed_and_one_is_written() {
        let found = read(
            "@about {}\n\na {\"frequency\": 14, \"spread\": 2}\nb { \"spread\":3,\"x\": [1, {}], \"frequency\":7 }\n\
            c {\"frequency\": 9, \"ports\": {\"8080\": 1, \"81\" :2}}\r\n",
        );
        let mut out = Vec::new();
        for (key, holding) in found.expect("a profile") {
            holding.write(key.as_bytes(), &mut out);
        }
        assert_eq!(
            String::from_utf8(out).expect("ascii"),
            "a {\"frequency\": 14, \"spread\": 2}\nb {\"frequency\": 7, \"spread\": 3}\n\
            c {\"frequency\": 9, \"spread\": 1, \"ports\": {\"81\": 2, \"8080\": 1}}\n"
        );
    }

    #[test]
    fn unreadable_line_is_an_error_with_its_number() {
        for (text, expected) in [
            ("a {\"frequency\": 1}\nb\n", "line 2: expected a key"),
            ("a 7\n", "line 1: expected a key"),
            ("a {\"frequency\": 1\n", "line 1: expected a key"),
            ("a {\"frequency\": -1}\n", "line 1: expected a `frequency`"),
            ("a {\"frequency\": 1.5}\n", "line 1: expected a `frequency`"),
            (
                "a {\"frequency\": 1234567890123456789}",
                "expected a `frequency`",
            ),
            (
                "a {\"frequency\": 1, \"spread\": \"x\"}",
                "expected a `spread`",
            ),
            (
                "a {\"frequency\": 1, \"ports\": {\"81\": 2}}",
                "expected `ports`",
            ),
            (
                "b {\"frequency\": 1}\na {\"frequency\": 1}",
                "line 2: the key belongs before",
            ),
            (
                "b {\"frequency\": 1}\nb {\"frequency\": 1}",
                "line 2: the key stands",
            ),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
