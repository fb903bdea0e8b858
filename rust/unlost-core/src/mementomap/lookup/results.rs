//! Look-up results in compact groups, some dozen in one allocation.

use super::super::Frequency;
use crate::uri::{RuleSet, Segments, UriError, page_of_uri};

/// Bytes of text per result: its key and the matched key. Few groups need more.
const TEXT_BYTES: usize = 96;

/// The kind of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryKind {
    /// URLs or SURTs, normalized by these rules.
    Uris(RuleSet),
    /// Normalized keys, with or without query.
    Keys,
}

/// The result for one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupResult<'a> {
    /// The page's key, without query.
    pub key: &'a [u8],
    /// The matched key of the map and its frequency; `None` if no key matches.
    pub matched: Option<(&'a [u8], Frequency)>,
}

/// A range of the group's text.
#[derive(Debug, Clone, Copy)]
struct TextRange(usize, usize);

#[derive(Debug)]
struct StoredResult {
    key: TextRange,
    matched: Option<(TextRange, Frequency)>,
}

/// A group of results with their text in one allocation: retaining one of them retains its neighbours, and no result
/// needs its own memory.
#[derive(Debug, Default)]
pub struct LookupResults {
    text: Vec<u8>,
    results: Vec<Result<StoredResult, UriError>>,
}

impl LookupResults {
    /// A group of one result.
    #[must_use]
    pub fn of(result: LookupResult<'_>) -> Self {
        let mut results = Self::default();
        let key = results.append(result.key);
        let matched = result.matched;
        let matched = matched.map(|(matched, frequency)| (results.append(matched), frequency));
        results.results.push(Ok(StoredResult { key, matched }));
        results
    }

    /// The number of results.
    #[must_use]
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Whether the group is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// The result of a query, or why the query is invalid.
    pub fn get(&self, i: usize) -> Result<LookupResult<'_>, &UriError> {
        let results = self.results[i].as_ref()?;
        Ok(LookupResult {
            key: self.piece(results.key),
            matched: results
                .matched
                .map(|(matched, frequency)| (self.piece(matched), frequency)),
        })
    }

    /// Whether the page is held; false for invalid queries.
    #[must_use]
    pub fn is_held(&self, i: usize) -> bool {
        let matched = self.results[i]
            .as_ref()
            .ok()
            .and_then(|results| results.matched);
        matched.is_some_and(|(_, frequency)| frequency.is_held())
    }

    /// The key of a valid query.
    pub(super) fn key(&self, i: usize) -> Option<&[u8]> {
        let results = self.results[i].as_ref().ok()?;
        Some(self.piece(results.key))
    }

    fn piece(&self, TextRange(start, end): TextRange) -> &[u8] {
        &self.text[start..end]
    }

    fn append(&mut self, text: &[u8]) -> TextRange {
        let start = self.text.len();
        self.text.extend_from_slice(text);
        self.since(start)
    }

    fn since(&self, start: usize) -> TextRange {
        TextRange(start, self.text.len())
    }

    /// Normalizes queries to keys.
    pub(super) fn read<'a>(
        queries: impl ExactSizeIterator<Item = &'a [u8]>,
        kind: QueryKind,
    ) -> Self {
        let mut results = Self {
            text: Vec::with_capacity(queries.len() * TEXT_BYTES),
            results: Vec::with_capacity(queries.len()),
        };
        for query in queries {
            let start = results.text.len();
            let read = write_key(query, kind, &mut results.text);
            if read.is_err() {
                results.text.truncate(start);
            }
            let key = results.since(start);
            results
                .results
                .push(read.map(|()| StoredResult { key, matched: None }));
        }
        results
    }

    /// Replaces a result by the only one of `other`.
    pub(super) fn replace(&mut self, i: usize, other: &Self) {
        if let Ok(result) = other.get(0) {
            let key = self.append(result.key);
            let matched = result.matched;
            let matched = matched.map(|(matched, frequency)| (self.append(matched), frequency));
            self.results[i] = Ok(StoredResult { key, matched });
        }
    }

    /// Sets the match of a result.
    pub(super) fn set_found(&mut self, i: usize, matched: &[u8], frequency: Frequency) {
        let piece = self.append(matched);
        if let Ok(results) = &mut self.results[i] {
            results.matched = Some((piece, frequency));
        }
    }
}

impl PartialEq for LookupResults {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && (0..self.len()).all(|i| self.get(i) == other.get(i))
    }
}

/// Appends the key to look up: normalized, without query.
fn write_key(query: &[u8], kind: QueryKind, out: &mut Vec<u8>) -> Result<(), UriError> {
    match kind {
        QueryKind::Uris(rules) => page_of_uri(query, rules, out),
        QueryKind::Keys => {
            // Keys contain no white space, and rows end their keys there.
            let end = query.iter().position(|&byte| byte <= b' ');
            let key = &query[..end.unwrap_or(query.len())];
            out.extend_from_slice(&key[..Segments::of(key).path_end()]);
            Ok(())
        }
    }
}
