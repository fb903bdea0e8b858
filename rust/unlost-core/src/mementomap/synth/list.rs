//! A synthetic index of real URLs: captures are made up, pages are not.

use std::io::{self, Read, Write};

use super::random::{Law, ParetoTail, Random};
use super::rows::{Page, Rows};
use super::tables::{CAPTURES_PERCENT, TYPES};
use crate::input::Damage;
use crate::input::Lines;
use crate::input::Source;
use crate::uri::{RuleSet, UriError, surt_of_uri};

/// The maximum length of a line, equal to `unlost.text_lines.MAX_LINE_BYTES`. Longer lines cannot be URLs.
const MAX_LINE_BYTES: usize = 8 << 20;

/// The messages of `unlost.text_lines`.
const NO_COLUMN: &str = "expected more columns, or something in this one";
const BAD_URI: &str = "expected an address, found control characters";

/// The difference between a distribution's mean and its scale, see [`ParetoTail`].
const MEAN_LESS_SCALE: f64 = 0.55;

/// Lines of a list that are not in the index, by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedLines {
    /// The error code, used for counting: `too-long`, `no-column`, `bad-uri`, or that of [`UriError::kind`] and
    /// [`Damage::kind`].
    pub kind: &'static str,
    /// Their number.
    pub count: u64,
    /// The number of the first such line, from 1.
    pub number: u64,
    /// Its offset in the text, in bytes.
    pub offset: u64,
    /// The message about it.
    pub message: String,
}

/// The URLs of a list with their keys, in memory.
pub struct UrlList {
    /// Keys, each followed by its URL in JSON form.
    text: Vec<u8>,
    pages: Vec<Entry>,
    rejected: Vec<RejectedLines>,
}

#[derive(Clone, Copy)]
struct Entry {
    start: usize,
    key_end: usize,
    end: usize,
}

impl UrlList {
    /// Reads a list: one URL per line, or those of a TSV column, from 1; plain, gzip or zstd. Blank lines and those
    /// that begin with `#` are skipped.
    pub fn read<R: Read + Send + 'static>(file: R, column: Option<usize>) -> io::Result<Self> {
        let mut list = Self {
            text: Vec::new(),
            pages: Vec::new(),
            rejected: Vec::new(),
        };
        let mut lines = Lines::new(Source::new(file)?, MAX_LINE_BYTES);
        let mut end = (0, 0);
        while let Some(line) = lines.next_line()? {
            end = (line.number, line.offset);
            if line.too_long {
                list.reject("too-long", end, "expected a line of at most 8 MiB");
                continue;
            }
            if line.is_cut {
                list.reject("cut-line", end, "the file is damaged before the line ends");
                continue;
            }
            let text = match line.text.strip_prefix(b"\xef\xbb\xbf") {
                Some(rest) if line.number == 1 => rest,
                _ => line.text,
            };
            if text.starts_with(b"#") || text.trim_ascii().is_empty() {
                continue;
            }
            let text = match column {
                Some(column) => text.split(|&byte| byte == b'\t').nth(column - 1),
                None => Some(text),
            };
            match text.map(<[u8]>::trim_ascii) {
                None | Some(b"") => list.reject("no-column", end, NO_COLUMN),
                Some(uri) if uri.iter().any(u8::is_ascii_control) => {
                    list.reject("bad-uri", end, BAD_URI);
                }
                Some(uri) => {
                    if let Err(error) = list.add(uri) {
                        list.reject(error.kind(), end, &error.to_string());
                    }
                }
            }
        }
        if let Some(damage) = lines.damage() {
            let message = match damage {
                Damage::TrailingGarbage => {
                    "bytes behind the end of the compressed data were left out"
                }
                _ => "the compressed data is damaged behind this line: what came before was read",
            };
            list.reject(damage.kind(), end, message);
        }
        let Self { text, pages, .. } = &mut list;
        pages.sort_unstable_by(|a, b| a.texts(text).cmp(&b.texts(text)));
        pages.dedup_by(|a, b| a.texts(text) == b.texts(text));
        Ok(list)
    }

    /// Whether no line was a URL.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The rejected lines.
    #[must_use]
    pub fn rejected(&self) -> &[RejectedLines] {
        &self.rejected
    }

    fn add(&mut self, uri: &[u8]) -> Result<(), UriError> {
        let start = self.text.len();
        surt_of_uri(uri, RuleSet::Wayback, &mut self.text)?;
        let key_end = self.text.len();
        push_json(uri, &mut self.text);
        self.pages.push(Entry {
            start,
            key_end,
            end: self.text.len(),
        });
        Ok(())
    }

    fn reject(&mut self, kind: &'static str, (number, offset): (u64, u64), message: &str) {
        if let Some(known) = self.rejected.iter_mut().find(|known| known.kind == kind) {
            known.count += 1;
        } else {
            self.rejected.push(RejectedLines {
                kind,
                count: 1,
                number,
                offset,
                message: message.to_owned(),
            });
        }
    }

    /// Writes `lines` lines. With fewer lines than the pages would have at the usual number of captures, a sample of
    /// the pages has the usual number; with more, all pages have more.
    pub(super) fn write<W: Write>(
        &self,
        lines: u64,
        random: &mut Random,
        mut rows: Rows<W>,
    ) -> io::Result<()> {
        let same_key = |a: &Entry, b: &Entry| a.texts(&self.text).0 == b.texts(&self.text).0;
        let mut candidates = self.pages.chunk_by(same_key).count() as u64;
        let default_pages = lines.saturating_mul(100).div_ceil(CAPTURES_PERCENT);
        let (mut pages, mut left) = (default_pages.min(candidates), lines);
        for page in self.pages.chunk_by(same_key) {
            let is_chosen = random.below(candidates) < pages;
            candidates -= 1;
            if is_chosen {
                let count = captures(left, pages, random);
                pages -= 1;
                left -= count;
                let (key, url) = page[0].texts(&self.text);
                let urls: Vec<&[u8]> = page.iter().map(|form| form.texts(&self.text).1).collect();
                let mime = mime(url);
                let urls = &urls;
                rows.write(&Page { key, urls, mime }, count, random)?;
            }
        }
        rows.finish()
    }
}

impl Entry {
    fn texts(self, text: &[u8]) -> (&[u8], &[u8]) {
        (
            &text[self.start..self.key_end],
            &text[self.key_end..self.end],
        )
    }
}

/// The number of the remaining lines for the next of the remaining pages: at least one each.
#[allow(clippy::cast_precision_loss)] // a mean
fn captures(lines: u64, pages: u64, random: &mut Random) -> u64 {
    if pages == 1 {
        return lines;
    }
    let scale = (lines as f64 / pages as f64 - MEAN_LESS_SCALE).max(0.0);
    let law = Law::Square;
    random
        .draw(ParetoTail { law, scale })
        .min(lines - (pages - 1))
}

/// The media type by a page's file extension, if known.
fn mime(url: &[u8]) -> &'static str {
    let path = url.split(|&byte| byte == b'?').next().unwrap_or_default();
    let known = TYPES
        .iter()
        .find(|(ending, _, _)| path.ends_with(ending.as_bytes()));
    known.map_or(TYPES[0].1, |(_, mime, _)| mime)
}

/// Appends a URL as the content of a JSON string, in ASCII as pywb writes it. Bytes that are not UTF-8 become escapes,
/// which have the same key.
fn push_json(uri: &[u8], out: &mut Vec<u8>) {
    let is_plain = |&byte: &u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if uri.iter().all(is_plain) {
        out.extend_from_slice(uri);
        return;
    }
    for chunk in uri.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => out.extend([b'\\', character as u8]),
                ' '..='~' => out.push(character as u8),
                _ => {
                    let mut units = [0; 2];
                    for unit in character.encode_utf16(&mut units) {
                        out.extend(format!("\\u{unit:04x}").bytes());
                    }
                }
            }
        }
        for byte in chunk.invalid() {
            out.extend(format!("%{byte:02X}").bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_escaped_as_json() {
        for (uri, json) in [
            (&b"http://a.com/b"[..], "http://a.com/b"),
            (b"http://a.com/\"\\", "http://a.com/\\\"\\\\"),
            (
                "http://a.com/é€😀".as_bytes(),
                "http://a.com/\\u00e9\\u20ac\\ud83d\\ude00",
            ),
            (b"http://a.com/\xff", "http://a.com/%FF"),
        ] {
            let mut out = Vec::new();
            push_json(uri, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), json);
        }
    }
}
