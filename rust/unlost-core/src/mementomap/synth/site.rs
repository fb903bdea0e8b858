//! Generates the pages of one host in byte order, without storing them.
//!
//! Byte order is not tree order: `/a`, `/a-b`, `/a.html`, `/a/b`, `/a?q` are a page, two siblings, a child and a query.
//! Pages are generated in exactly that order, so that nothing has to be sorted.

use std::io::{self, Write};

use super::labels::{Labels, push_syllables};
use super::random::Random;
use super::rows::{Page, Rows};
use super::tables::{CAPTURES, HTML_ENDINGS, KEYS_PER_SEGMENT, PATHS, QUERIED, QUERIES, TYPES};

/// How often the URL of a page differs from its key. Our assumption, as are the other small shares in this file.
const CAPITALIZED_SHARE: f64 = 1.0 / 16.0;
const NUMBER_SHARE: f64 = 1.0 / 16.0;
const TWIN_SHARE: f64 = 1.0 / 16.0;

/// Names of a query's first parameter; that of the second sorts after all of them.
const PARAMETERS: [&[u8]; 8] = [b"a", b"article", b"cat", b"id", b"id", b"p", b"page", b"q"];
const SECOND: &[u8] = b"&view=";

const HTML: usize = 0;

/// The requested size of a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) lines: u64,
    /// The exact number of keys without query; otherwise not restricted.
    pub(super) keys: Option<u64>,
    /// The share of pages with several captures, and with queries, relative to the papers.
    pub(super) density: f64,
}

pub(super) struct Site<'a, W: Write> {
    pub(super) random: &'a mut Random,
    pub(super) rows: &'a mut Rows<W>,
    /// The host's part of the key, up to its `)`, and the current page.
    key: &'a mut Vec<u8>,
    host_length: usize,
    remaining: Extent,
    /// The page's URL with http, and with https if the host has that too.
    urls: [Vec<u8>; 2],
    schemes: [usize; 2],
    is_secure: bool,
}

/// How a URL differs from its key.
#[derive(Clone, Copy)]
struct Spelling {
    ends_in_slash: bool,
    is_swapped: bool,
}

impl<'a, W: Write> Site<'a, W> {
    /// The key ends in `)`; the authority is the host as in URLs.
    pub(super) fn new(
        key: &'a mut Vec<u8>,
        authority: &str,
        extent: Extent,
        random: &'a mut Random,
        rows: &'a mut Rows<W>,
    ) -> Self {
        let urls = ["http", "https"].map(|scheme| format!("{scheme}://{authority}").into_bytes());
        Self {
            host_length: key.len(),
            schemes: [urls[0].len(), urls[1].len()],
            is_secure: random.below(8) == 0,
            remaining: extent,
            key,
            urls,
            random,
            rows,
        }
    }

    /// Writes all pages; returns the number of lines.
    pub(super) fn write(mut self) -> io::Result<u64> {
        let lines = self.remaining.lines;
        self.key.push(b'/');
        let root = PATHS[0];
        let is_parent = self.remaining.keys.is_some() || self.random.chance(root.parents);
        let is_page = self.remaining.keys.is_some() || !is_parent || self.random.chance(root.own);
        let has_numbers = self.random.chance(NUMBER_SHARE);
        if is_page {
            self.page(HTML, is_parent, false)?;
            // Words sort after `?`, numbers before.
            if !has_numbers {
                self.queries(false)?;
            }
        }
        if is_parent {
            let count = self.random.draw(root.children);
            self.children(0, count, has_numbers)?;
        }
        if is_page && has_numbers {
            self.queries(false)?;
        }
        self.key.truncate(self.host_length);
        Ok(lines - self.remaining.lines)
    }

    fn is_full(&self) -> bool {
        self.remaining.lines == 0 || self.remaining.keys == Some(0)
    }

    /// Writes the subtree of a node, whose name the key ends with.
    fn children(&mut self, depth: usize, count: u64, are_numbers: bool) -> io::Result<()> {
        // A host of a requested size has as many children as it takes.
        let mut remaining = match self.remaining.keys {
            Some(keys) if depth == 0 => keys,
            _ => count,
        };
        let mut labels = if are_numbers {
            Labels::numbers(remaining)
        } else {
            Labels::words(remaining)
        };
        let start = self.key.len();
        while remaining > 0 && !self.is_full() {
            if depth > 0 {
                self.key.push(b'/');
            }
            let expected = match self.remaining.keys {
                Some(keys) if depth == 0 => keys / KEYS_PER_SEGMENT,
                _ => remaining,
            };
            labels.push(expected, remaining, self.random, self.key);
            if !are_numbers {
                self.lengthen();
            }
            remaining -= self.node(depth + 1, remaining)?;
            self.key.truncate(start);
        }
        Ok(())
    }

    /// Converts a name to the form of page names.
    fn lengthen(&mut self) {
        let bits = self.random.bits();
        let syllables = |bits: u64, count, out: &mut Vec<u8>| push_syllables(bits, count, out);
        syllables(bits >> 40, 1 + u32::from(bits & 1 == 1), self.key);
        match bits >> 1 & 15 {
            0..=2 => {
                self.key.push(b'-');
                syllables(bits >> 20, 2, self.key);
            }
            3 => {
                self.key.push(b'_');
                syllables(bits >> 20, 2, self.key);
            }
            4 | 5 => self
                .key
                .extend((10 + (bits >> 20) % 90).to_string().bytes()),
            6 if (bits >> 20) % 8 == 0 => self.key.extend_from_slice(b"%c3%a9"),
            _ => {}
        }
    }

    /// Writes a node with its subtree, and siblings whose names begin with its own, at most `siblings` including this
    /// one; returns their number.
    fn node(&mut self, depth: usize, siblings: u64) -> io::Result<u64> {
        let parent = PATHS
            .get(depth)
            .filter(|branching| self.random.chance(branching.parents));
        let is_page = parent.is_none_or(|branching| self.random.chance(branching.own));
        let kind = if parent.is_some() { HTML } else { self.kind() };
        let name = self.key.len();
        if parent.is_none() {
            let ending = match kind {
                HTML => HTML_ENDINGS[(self.random.bits() >> 61) as usize],
                other => TYPES[other].0,
            };
            self.key.extend_from_slice(ending.as_bytes());
        }
        if is_page {
            self.page(kind, parent.is_some(), false)?;
        }
        let mut written = 1;
        if self.key.len() == name && siblings > 2 && self.random.chance(TWIN_SHARE) {
            self.key.push(b'-');
            push_syllables(self.random.bits(), 1, self.key);
            self.page(HTML, false, false)?;
            self.key.truncate(name);
            self.key.extend_from_slice(b".html");
            self.page(HTML, false, false)?;
            self.key.truncate(name);
            written = 3;
        }
        if let Some(branching) = parent {
            let count = self.random.draw(branching.children);
            let are_numbers = self.random.chance(NUMBER_SHARE);
            self.children(depth, count, are_numbers)?;
        }
        if is_page && kind == HTML {
            self.queries(parent.is_some())?;
        }
        Ok(written)
    }

    /// The kind of a page without children.
    fn kind(&mut self) -> usize {
        let mut share = self.random.below(100);
        TYPES
            .iter()
            .position(|(_, _, part)| {
                let is_drawn = share < *part;
                share = share.saturating_sub(*part);
                is_drawn
            })
            .unwrap_or(HTML)
    }

    /// Writes the pages that differ by their query only.
    fn queries(&mut self, is_folder: bool) -> io::Result<()> {
        if !self.random.chance(QUERIED * self.remaining.density) {
            return Ok(());
        }
        let count = self.random.draw(QUERIES);
        let mut labels = Labels::numbers(count);
        let start = self.key.len();
        let parameter = PARAMETERS[(self.random.bits() >> 61) as usize];
        for remaining in (1..=count).rev() {
            if self.is_full() {
                break;
            }
            self.key.push(b'?');
            self.key.extend_from_slice(parameter);
            self.key.push(b'=');
            labels.push(remaining, remaining, self.random, self.key);
            if self.random.below(4) == 0 {
                self.key.extend_from_slice(SECOND);
                push_syllables(self.random.bits(), 2, self.key);
            }
            self.page(HTML, is_folder, true)?;
            self.key.truncate(start);
        }
        Ok(())
    }

    /// Writes the captures of the current page.
    fn page(&mut self, kind: usize, is_folder: bool, is_query: bool) -> io::Result<()> {
        if self.is_full() {
            return Ok(());
        }
        if let Some(keys) = &mut self.remaining.keys {
            *keys -= u64::from(!is_query);
        }
        let requested =
            if self.remaining.density >= 1.0 || self.random.chance(self.remaining.density) {
                self.random.draw(CAPTURES)
            } else {
                1
            };
        // Every remaining key needs a line.
        let available = self.remaining.lines - self.remaining.keys.unwrap_or(0);
        let count = requested.min(available);
        if count == 0 {
            return Ok(());
        }
        self.remaining.lines -= count;
        let spelling = Spelling {
            ends_in_slash: is_folder && self.random.bits() >> 63 == 0,
            is_swapped: is_query && self.random.bits() >> 62 == 0,
        };
        let has_capitals = self.random.chance(CAPITALIZED_SHARE);
        let tail = &self.key[self.host_length..];
        for (url, scheme) in self.urls.iter_mut().zip(self.schemes) {
            url.truncate(scheme);
            spell(tail, spelling, url);
            if has_capitals {
                capitalise(&mut url[scheme..]);
            }
        }
        let urls = self.urls.each_ref().map(Vec::as_slice);
        let page = Page {
            key: self.key,
            urls: if self.is_secure { &urls } else { &urls[..1] },
            mime: TYPES[kind].1,
        };
        self.rows.write(&page, count, self.random)
    }
}

/// Appends a path and query that normalize to the given ones.
fn spell(tail: &[u8], spelling: Spelling, out: &mut Vec<u8>) {
    let mark = memchr::memchr(b'?', tail).unwrap_or(tail.len());
    let (path, query) = tail.split_at(mark);
    out.extend_from_slice(path);
    if spelling.ends_in_slash && path.len() > 1 {
        out.push(b'/');
    }
    match memchr::memchr(b'&', query) {
        Some(second) if spelling.is_swapped => {
            out.push(b'?');
            out.extend_from_slice(&query[second + 1..]);
            out.push(b'&');
            out.extend_from_slice(&query[1..second]);
        }
        _ => out.extend_from_slice(query),
    }
}

/// `/path/page` becomes `/Path/Page`, which has the same key.
fn capitalise(path: &mut [u8]) {
    for i in 1..path.len() {
        if path[i - 1] == b'/' {
            path[i].make_ascii_uppercase();
        }
    }
}
