//! Compact storage for URLs of mementos: most URLs of one archive differ only in the date that they contain.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::{memchr, memmem};

use super::rendering::TextSink;
use super::{Digits, digits};

/// The placeholder of the date in a pattern: a byte that no URL contains.
const DATE: u8 = 1;

/// The maximum number of patterns that are looked up. If there are more, the URLs do not follow a pattern.
const MAX_KNOWN: usize = 1 << 10;

/// Concatenated patterns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Patterns {
    text: String,
    ends: Vec<u32>,
}

/// A URL: the text before the date, the date if it has one, and the text after it.
pub(super) struct Url<'a> {
    before: &'a str,
    date: Option<Digits>,
    after: &'a str,
}

impl<'a> Url<'a> {
    pub(super) fn text(&self) -> Cow<'a, str> {
        let Some(date) = &self.date else {
            return Cow::Borrowed(self.before);
        };
        let date = std::str::from_utf8(date).unwrap_or_default();
        Cow::Owned([self.before, date, self.after].concat())
    }

    /// Writes the URL; `add` writes a part of it.
    pub(super) fn write<T: TextSink>(&self, out: &mut T, add: impl Fn(&mut T, &str)) {
        add(out, self.before);
        if let Some(date) = &self.date {
            out.add(date);
            add(out, self.after);
        }
    }
}

impl Patterns {
    /// Memory use in bytes.
    pub(super) fn size(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * size_of::<u32>()
    }

    pub(super) fn get(&self, id: u32) -> &str {
        let id = id as usize;
        let begin = id
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize);
        &self.text[begin..self.ends[id] as usize]
    }

    /// The URL of a memento with this pattern and this date.
    pub(super) fn url(&self, id: u32, date: u64) -> Url<'_> {
        let pattern = self.get(id);
        match memchr(DATE, pattern.as_bytes()) {
            None => Url {
                before: pattern,
                date: None,
                after: "",
            },
            Some(at) => Url {
                before: &pattern[..at],
                date: Some(digits(date)),
                after: &pattern[at + 1..],
            },
        }
    }

    fn push(&mut self, pattern: &str) -> u32 {
        let id = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        self.text.push_str(pattern);
        // At most as much as the list builder accepted, which fits.
        let end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        self.ends.push(end);
        id
    }
}

/// Collects patterns. The same URLs in the same order give the same patterns.
#[derive(Debug, Default)]
pub(super) struct PatternCollector {
    patterns: Patterns,
    known: HashMap<Box<str>, u32>,
    last: Option<u32>,
    pattern: String,
}

impl PatternCollector {
    /// Adds the URL of a memento with its date; returns the number of its pattern.
    pub(super) fn add_url(&mut self, url: &str, date: u64) -> u32 {
        let date = digits(date);
        let Some(at) = memmem::find(url.as_bytes(), &date) else {
            return self.patterns.push(url);
        };
        let mut pattern = std::mem::take(&mut self.pattern);
        pattern.clear();
        pattern.push_str(&url[..at]);
        pattern.push(char::from(DATE));
        pattern.push_str(&url[at + date.len()..]);
        let id = self.add_dated(&pattern);
        self.pattern = pattern;
        id
    }

    /// Adds a pattern of another collection.
    pub(super) fn add(&mut self, pattern: &str) -> u32 {
        if memchr(DATE, pattern.as_bytes()).is_none() {
            return self.patterns.push(pattern);
        }
        self.add_dated(pattern)
    }

    /// Whether the pattern added last is shared by all URLs that have it.
    pub(super) fn is_shared(&self, id: u32) -> bool {
        self.last == Some(id)
    }

    pub(super) fn finish(mut self) -> Patterns {
        self.patterns.text.shrink_to_fit();
        self.patterns.ends.shrink_to_fit();
        self.patterns
    }

    fn add_dated(&mut self, pattern: &str) -> u32 {
        if let Some(id) = self.last.filter(|&id| self.patterns.get(id) == pattern) {
            return id;
        }
        if let Some(&id) = self.known.get(pattern) {
            self.last = Some(id);
            return id;
        }
        let id = self.patterns.push(pattern);
        if self.known.len() < MAX_KNOWN {
            self.known.insert(pattern.into(), id);
            self.last = Some(id);
        }
        id
    }
}
