//! Scans lines of an index to counted keys.

use super::HoldingsError;
use super::block_output::BlockOutput;
use super::line_stats::LineStats;
use super::row_filter::RowFilter;
use super::tree_key::common_len;
use crate::index::Layout;
use crate::index::Row;
use crate::index::RowShape;
use crate::index::without_bom;
use crate::input::Block;
use crate::uri::{UriError, is_disputed, key_of_row, plain_page, plain_page_from, plain_uri};

/// Scans the blocks of one file.
pub(super) struct Scanner<'a> {
    pub(super) layout: &'a Layout,
    pub(super) row_filter: &'a RowFilter,
    /// Lines with more bytes are counted and skipped.
    pub(super) line_limit: usize,
}

/// The result of a block.
#[derive(Debug, Default)]
pub(super) struct BlockResult<H> {
    pub(super) output: H,
    pub(super) line_stats: LineStats,
    /// The first and last key column, to check that blocks are in order.
    pub(super) first: Vec<u8>,
    pub(super) last: Vec<u8>,
    /// The first line that sorts before the previous one.
    pub(super) unsorted: Option<u64>,
}

/// The key that is being counted.
#[derive(Default)]
struct CurrentKey {
    /// A prefix of lines that certainly have the same key: the key column, or its part before the query.
    stem: Vec<u8>,
    /// Whether the query after the stem's `?` is ignored.
    any_query: bool,
    /// How many of the stem's first bytes are a plain page, and where its host ends then.
    plain: usize,
    host_end: usize,
    /// The key itself, with the year if configured; empty if nothing is being counted.
    key: Vec<u8>,
    count: u64,
    /// The structure of earlier rows.
    shape: RowShape,
}

impl CurrentKey {
    fn flush(&mut self, output: &mut impl BlockOutput) -> Result<(), HoldingsError> {
        if self.count > 0 {
            output.push(&self.key, self.count)?;
        }
        self.count = 0;
        Ok(())
    }

    /// Begins to count a page whose key column, or its part before the query, is plain.
    fn begin(&mut self, stem: &[u8], key: &[u8], any_query: bool) {
        self.stem.clear();
        self.stem.extend_from_slice(stem);
        self.any_query = any_query;
        self.note_plain(stem);
        self.key.clear();
        self.key.extend_from_slice(key);
        self.count = 1;
    }

    /// Records that a stem is plain, and its query, if it has one.
    fn note_plain(&mut self, stem: &[u8]) {
        self.host_end = memchr::memchr(b')', stem).unwrap_or(stem.len());
        let tail = &stem[self.host_end..];
        self.plain = self.host_end + memchr::memchr(b'?', tail).unwrap_or(tail.len());
    }

    /// How much of a key with `common` bytes of the stem is known to be plain, beyond its host; 0 if less. The common
    /// prefix of neighbours is thereby checked only once.
    fn known_plain(&self, common: usize) -> usize {
        let known = common.min(self.plain);
        if known > self.host_end + 1 { known } else { 0 }
    }

    /// The end of the key column, if the line has the same key as the previous ones. It shares `common` bytes with the
    /// stem.
    fn repeated_in(&self, line: &[u8], common: usize) -> Option<usize> {
        if self.stem.is_empty() || common < self.stem.len() {
            return None;
        }
        match line.get(self.stem.len())? {
            b' ' => Some(self.stem.len()),
            b'?' if self.any_query => {
                memchr::memchr(b' ', &line[self.stem.len()..]).map(|end| self.stem.len() + end)
            }
            _ => None,
        }
    }
}

impl Scanner<'_> {
    pub(super) fn scan<H: BlockOutput>(
        &self,
        block: &Block,
        out: &mut BlockResult<H>,
    ) -> Result<(), HoldingsError> {
        out.output.clear();
        out.line_stats = LineStats::default();
        out.unsorted = None;
        out.first.clear();
        out.last.clear();
        out.output.on_text(block.text().len());
        let fast = !H::READS_ROWS && self.row_filter.only_keys() && self.layout.begins_with_key();
        let mut current = CurrentKey::default();
        let mut start = match block.offset {
            0 => block.text().len() - without_bom(block.text()).len(),
            _ => 0,
        };
        let mut is_binary = false;
        // One search for line ends and NUL bytes is faster than two.
        for end in memchr::memchr2_iter(b'\n', 0, block.text()) {
            if block.text()[end] == 0 {
                is_binary = true;
                continue;
            }
            let line = &block.text()[start..end];
            let offset = block.offset + start as u64;
            start = end + 1;
            out.line_stats.lines += 1;
            if std::mem::take(&mut is_binary) {
                out.line_stats.add_problem("binary", offset, line);
                continue;
            }
            if fast
                && line.len() <= self.line_limit
                && self.try_fast_line(line, &mut current, out)?
            {
                continue;
            }
            self.line(line, offset, &mut current, out)?;
        }
        current.flush(&mut out.output)?;
        out.output.finish()
    }

    /// Counts a row whose key column is already normalized, and whose URL is a web page's, without parsing the rest.
    /// Returns whether it did.
    fn try_fast_line<H: BlockOutput>(
        &self,
        line: &[u8],
        current: &mut CurrentKey,
        out: &mut BlockResult<H>,
    ) -> Result<bool, HoldingsError> {
        let common = common_len(&current.stem, line);
        if let Some(key_end) = current.repeated_in(line, common) {
            // The key does not show the scheme: that of every row is checked.
            let is_web = self.layout.is_certainly_web(&line[key_end + 1..]);
            if is_web {
                current.count += 1;
                out.line_stats.counted += 1;
                out.output.on_date(&line[key_end + 1..key_end + 15]);
            }
            return Ok(is_web);
        }
        let Some(key_end) = memchr::memchr(b' ', &line[common..]) else {
            return Ok(false);
        };
        let key_end = common + key_end;
        let key = &line[..key_end];
        let page = match memchr::memchr(b'?', &key[common..]) {
            Some(_) if self.row_filter.queries => return Ok(false),
            Some(query) => &key[..common + query],
            None => key,
        };
        let plain = match current.known_plain(common) {
            0 => plain_page(page),
            known => plain_page_from(page, known),
        };
        let Some(plain) = plain else {
            return Ok(false);
        };
        if !self.layout.is_certainly_web(&line[key_end + 1..]) || self.row_filter.excludes(plain) {
            return Ok(false);
        }
        note_order(key, out);
        current.flush(&mut out.output)?;
        current.begin(page, plain, !self.row_filter.queries);
        out.line_stats.counted += 1;
        out.output.on_date(&line[key_end + 1..key_end + 15]);
        Ok(true)
    }

    fn line<H: BlockOutput>(
        &self,
        line: &[u8],
        offset: u64,
        current: &mut CurrentKey,
        out: &mut BlockResult<H>,
    ) -> Result<(), HoldingsError> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > self.line_limit {
            out.line_stats.add_problem("too-long", offset, line);
            return Ok(());
        }
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        if self.layout.is_header(line) {
            if self.layout.is_bad_header(line) {
                out.line_stats.add_problem("bad-header", offset, line);
                return Ok(());
            }
            if self.layout.is_changed_by(line) {
                return Err(HoldingsError::Unreadable {
                    line: out.line_stats.lines,
                    message: "a header with other columns in the middle of the file: split the file there".to_owned(),
                });
            }
            return Ok(());
        }
        let Some(row) = self.layout.row(line, &mut current.shape) else {
            out.line_stats.add_problem("bad-row", offset, line);
            return Ok(());
        };
        // If rows are read, their consumer checks the order where it matters.
        if !H::READS_ROWS {
            note_order(row.key, out);
        }
        let problem = self.start_row(&row, current, &mut out.output, &mut out.line_stats)?;
        if let Some(kind) = problem {
            out.line_stats.add_problem(kind, offset, line);
        }
        Ok(())
    }

    /// Counts a row that was parsed elsewhere.
    pub(super) fn row(
        &self,
        row: &Row<'_>,
        line_stats: &mut LineStats,
        output: &mut impl BlockOutput,
    ) -> Result<(), HoldingsError> {
        let mut current = CurrentKey::default();
        if let Some(kind) = self.start_row(row, &mut current, output, line_stats)? {
            line_stats.add_problem(kind, 0, &row.url);
        }
        current.flush(output)
    }

    /// Makes a row the current one, if the filter accepts it. Returns the kind of problem with it, if there is one.
    fn start_row<H: BlockOutput>(
        &self,
        row: &Row<'_>,
        current: &mut CurrentKey,
        output: &mut H,
        line_stats: &mut LineStats,
    ) -> Result<Option<&'static str>, HoldingsError> {
        if !self.row_filter.accepts(row) {
            line_stats.filtered += 1;
            return Ok(None);
        }
        let common = common_len(&current.stem, row.key);
        // The key does not show the scheme: that of every row is checked.
        let is_web = is_web(&row.url);
        let is_repeated = H::READS_ROWS
            && current.count > 0
            && common > 0
            && common == current.stem.len()
            && common == row.key.len()
            && is_web;
        if is_repeated {
            current.count += 1;
            line_stats.counted += 1;
            output.on_row(row);
            return Ok(None);
        }
        current.flush(output)?;
        let known = if is_web {
            current.known_plain(common)
        } else {
            0
        };
        current.key.clear();
        current.stem.clear();
        current.plain = 0;
        match self.write_key(row, is_web, known, current) {
            Ok(_) if self.row_filter.excludes(&current.key) => {
                line_stats.filtered += 1;
                current.stem.clear();
            }
            Ok(is_repaired) => {
                current.count = 1;
                line_stats.counted += 1;
                line_stats.repaired += u64::from(is_repaired);
                output.on_date(row.date);
                if H::READS_ROWS {
                    output.on_row(row);
                }
            }
            Err(UriError::Foreign { scheme }) => {
                line_stats.foreign += 1;
                output.on_foreign(&scheme);
            }
            Err(error) => {
                // A partially written key must not be continued.
                current.stem.clear();
                return Ok(Some(error.kind()));
            }
        }
        Ok(None)
    }

    /// Normalizes a row's key. The first `known` bytes are known to be plain. Returns whether the key column was
    /// repaired.
    fn write_key(
        &self,
        row: &Row<'_>,
        is_web: bool,
        known: usize,
        current: &mut CurrentKey,
    ) -> Result<bool, UriError> {
        current.any_query = false;
        let mut is_repaired = false;
        // Most keys are already normalized, and most URLs are those of web pages.
        match plain_uri(row.key, known) {
            Some(plain) if is_web => {
                current.key.extend_from_slice(plain);
                current.stem.extend_from_slice(row.key);
                current.note_plain(row.key);
            }
            _ => {
                is_repaired =
                    key_of_row(row.key, &row.url, self.row_filter.rules, &mut current.key)?;
                if ignores_url(row.key) {
                    current.stem.extend_from_slice(row.key);
                }
            }
        }
        if !self.row_filter.queries {
            if let Some(query) = memchr::memchr(b'?', &current.key) {
                current.key.truncate(query);
            }
        }
        if self.row_filter.by_year {
            current.key.push(b' ');
            current.key.extend_from_slice(year(row.date));
        }
        Ok(is_repaired)
    }
}

/// Whether a URL is certainly a web page's.
fn is_web(url: &[u8]) -> bool {
    url.starts_with(b"http:") || url.starts_with(b"https:")
}

/// Records whether the file is sorted.
fn note_order<H>(key: &[u8], out: &mut BlockResult<H>) {
    if out.first.is_empty() {
        out.first.extend_from_slice(key);
    } else if out.unsorted.is_none() && key < out.last.as_slice() {
        out.unsorted = Some(out.line_stats.lines);
    }
    out.last.clear();
    out.last.extend_from_slice(key);
}

/// Whether rows with this key column have the same key for any URL.
fn ignores_url(key: &[u8]) -> bool {
    memchr::memchr(b')', key).is_some_and(|end| end > 0) && !is_disputed(key)
}

/// The year of a date, `-` if it has none: a page must not be lost for that.
fn year(date: &[u8]) -> &[u8] {
    match date.get(..4) {
        Some(year) if year.iter().all(u8::is_ascii_digit) => year,
        _ => b"-",
    }
}
