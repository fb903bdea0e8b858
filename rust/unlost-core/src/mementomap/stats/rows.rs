//! Statistics by row: types, statuses, dates, sizes, and a sample of rows.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::runs::NO_MONTH;
use crate::index::Row;

/// The first year that is counted separately: the web began in 1990, and the first paper's data begins in 1992.
pub const FIRST_YEAR: u64 = 1990;

/// The number of years that are counted separately: they are stored as the bits of a 64-bit word.
pub const YEARS: usize = 64;

/// The number of months in these years.
pub const MONTHS: usize = YEARS * 12;

/// Classes of statuses: none or invalid, then 1xx to 5xx.
pub(super) const CLASSES: usize = 6;

/// The maximum number of kinds that are counted separately. Our limit: no real index has as many.
const MAX_KINDS: usize = 20_000;

/// The maximum length of a stored media type or status.
const KIND_BYTES: usize = 100;

/// The number of sampled rows.
const SAMPLES: usize = 10;

/// The maximum length of a sampled URL. Longer ones are not useful as examples.
const SAMPLE_BYTES: usize = 2000;

/// A media type and status verbatim, and their number of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindCount {
    /// The media type.
    pub mime: Vec<u8>,
    /// The status.
    pub status: Vec<u8>,
    /// Rows.
    pub count: u64,
}

/// The size of the cache of recent kinds: nearly all rows are of few kinds.
const RECENT_KINDS: usize = 64;

/// A sampled row: its priority, date and URL.
type Sample = (u64, u64, Vec<u8>);

/// Counts of rows, which can be added up.
#[derive(Debug, Clone)]
pub struct RowCounts {
    /// Bytes of text.
    pub text_bytes: u64,
    /// See above.
    pub captures: u64,
    /// Bytes of records.
    pub record_bytes: u64,
    /// See above.
    pub sized: u64,
    /// The first date of 14 digits; 0 if there is none.
    pub first: u64,
    /// See above.
    pub last: u64,
    /// Rows with an invalid date, or a year before the web.
    pub invalid_dates: u64,
    /// Rows by month.
    pub months: Vec<u64>,
    /// Rows by year and status class: none or invalid, 1xx to 5xx.
    pub classes: Vec<[u64; CLASSES]>,
    /// Rows that are not web pages, by scheme.
    pub schemes: HashMap<String, u64, FixedState>,
    /// Rows of kinds beyond the maximum.
    pub further_kinds: u64,
    kind_indexes: HashMap<Vec<u8>, usize, FixedState>,
    kinds: Vec<KindCount>,
    recent: [usize; RECENT_KINDS],
    word: Vec<u8>,
    samples: Vec<Sample>,
}

impl Default for RowCounts {
    fn default() -> Self {
        Self {
            text_bytes: 0,
            captures: 0,
            record_bytes: 0,
            sized: 0,
            first: 0,
            last: 0,
            invalid_dates: 0,
            months: vec![0; MONTHS],
            classes: vec![[0; CLASSES]; YEARS],
            schemes: HashMap::default(),
            further_kinds: 0,
            kind_indexes: HashMap::default(),
            kinds: Vec::new(),
            recent: [0; RECENT_KINDS],
            word: Vec::new(),
            samples: Vec::new(),
        }
    }
}

impl RowCounts {
    /// Counts a row; returns its month, or [`NO_MONTH`].
    pub(super) fn add(&mut self, row: &Row<'_>) -> u16 {
        self.captures += 1;
        let (date, month) = read_date(row.date);
        let class = class_of(&row.status);
        if month == NO_MONTH {
            self.invalid_dates += 1;
        } else {
            self.months[usize::from(month)] += 1;
            self.classes[usize::from(month) / 12][class] += 1;
            if self.first == 0 || date < self.first {
                self.first = date;
            }
            self.last = self.last.max(date);
        }
        if let Some(size) = read_number(&row.size) {
            self.record_bytes = self.record_bytes.saturating_add(size);
            self.sized += 1;
        }
        let kind = self.kind_index(&row.mime, &row.status);
        match kind {
            Some(at) => self.kinds[at].count += 1,
            None => self.further_kinds += 1,
        }
        if *row.status == *b"200" && is_html(&row.mime) && month != NO_MONTH {
            self.add_sample(date, &row.url);
        }
        month
    }

    /// The index of a kind, if it is counted separately.
    fn kind_index(&mut self, mime: &[u8], status: &[u8]) -> Option<usize> {
        let (mime, status) = (cut(mime, KIND_BYTES), cut(status, KIND_BYTES));
        let recent = recent_slot(mime, status);
        let last = self.recent[recent];
        let known = self.kinds.get(last);
        if known.is_some_and(|known| known.mime == mime && known.status == status) {
            return Some(last);
        }
        self.word.clear();
        self.word.extend_from_slice(mime);
        self.word.push(0);
        self.word.extend_from_slice(status);
        if let Some(&at) = self.kind_indexes.get(&self.word) {
            self.recent[recent] = at;
            return Some(at);
        }
        if self.kinds.len() == MAX_KINDS {
            return None;
        }
        let at = self.kinds.len();
        self.recent[recent] = at;
        self.kind_indexes.insert(self.word.clone(), at);
        self.kinds.push(KindCount {
            mime: mime.to_vec(),
            status: status.to_vec(),
            count: 0,
        });
        Some(at)
    }

    /// Samples the rows with the lowest priorities, which are hashes: the sample does not depend on the order of rows
    /// or on the reader.
    fn add_sample(&mut self, date: u64, url: &[u8]) {
        if url.len() > SAMPLE_BYTES {
            return;
        }
        let priority = sample_priority(date, url);
        if self.samples.len() == SAMPLES && self.samples[SAMPLES - 1].0 <= priority {
            return;
        }
        self.insert_sample((priority, date, url.to_vec()));
    }

    fn insert_sample(&mut self, sample: Sample) {
        if let Err(at) = self.samples.binary_search(&sample) {
            self.samples.insert(at, sample);
            self.samples.truncate(SAMPLES);
        }
    }

    /// Adds other counts.
    pub(super) fn append(&mut self, other: &Self) {
        self.text_bytes += other.text_bytes;
        self.captures += other.captures;
        self.record_bytes = self.record_bytes.saturating_add(other.record_bytes);
        self.sized += other.sized;
        if other.first > 0 && (self.first == 0 || other.first < self.first) {
            self.first = other.first;
        }
        self.last = self.last.max(other.last);
        self.invalid_dates += other.invalid_dates;
        self.further_kinds += other.further_kinds;
        for (into, more) in self.months.iter_mut().zip(&other.months) {
            *into += more;
        }
        for (into, more) in self.classes.iter_mut().zip(&other.classes) {
            for (into, more) in into.iter_mut().zip(more) {
                *into += more;
            }
        }
        for (scheme, count) in &other.schemes {
            self.on_foreign(scheme, *count);
        }
        for kind in &other.kinds {
            match self.kind_index(&kind.mime, &kind.status) {
                Some(at) => self.kinds[at].count += kind.count,
                None => self.further_kinds += kind.count,
            }
        }
        for sample in &other.samples {
            self.insert_sample(sample.clone());
        }
    }

    pub(super) fn on_foreign(&mut self, scheme: &str, count: u64) {
        let scheme = if scheme.len() <= KIND_BYTES && self.schemes.len() < MAX_KINDS {
            scheme
        } else {
            "…"
        };
        if let Some(known) = self.schemes.get_mut(scheme) {
            *known += count;
        } else {
            self.schemes.insert(scheme.to_owned(), count);
        }
    }

    /// Clears all counts and retains the memory.
    pub(super) fn clear(&mut self) {
        let mut months = std::mem::take(&mut self.months);
        let mut classes = std::mem::take(&mut self.classes);
        months.fill(0);
        classes.fill([0; CLASSES]);
        let mut kind_indexes = std::mem::take(&mut self.kind_indexes);
        let mut kinds = std::mem::take(&mut self.kinds);
        // Kinds recur: their indexes stay, unless there are too many.
        if kinds.len() > MAX_KINDS / 4 {
            kind_indexes.clear();
            kinds.clear();
        }
        for kind in &mut kinds {
            kind.count = 0;
        }
        *self = Self {
            months,
            classes,
            kind_indexes,
            kinds,
            recent: self.recent,
            word: std::mem::take(&mut self.word),
            ..Self::default()
        };
    }

    /// All kinds that occurred.
    pub fn kinds(&self) -> impl Iterator<Item = &KindCount> {
        self.kinds.iter().filter(|kind| kind.count > 0)
    }

    /// Dates and URLs of sampled rows with status 200 and HTML.
    pub fn samples(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.samples
            .iter()
            .map(|(_, date, url)| (*date, url.as_slice()))
    }
}

/// The cache slot of a kind.
fn recent_slot(mime: &[u8], status: &[u8]) -> usize {
    let last = |text: &[u8]| text.last().map_or(0, |&byte| usize::from(byte));
    let first = |text: &[u8]| text.first().map_or(0, |&byte| usize::from(byte));
    (mime.len() + 3 * last(mime) + 5 * first(status) + 7 * last(status)) % RECENT_KINDS
}

/// The sampling priority of a row, independent of the reader: the rows with the lowest are sampled.
#[must_use]
pub fn sample_priority(date: u64, url: &[u8]) -> u64 {
    const LOTS: FixedState = FixedState::with_seed(1);
    LOTS.hash_one((date, url))
}

fn cut(text: &[u8], max_len: usize) -> &[u8] {
    &text[..text.len().min(max_len)]
}

fn is_html(mime: &[u8]) -> bool {
    mime.get(..9)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"text/html"))
}

fn class_of(status: &[u8]) -> usize {
    match status {
        [first @ b'1'..=b'5', second, third]
            if second.is_ascii_digit() && third.is_ascii_digit() =>
        {
            usize::from(first - b'0')
        }
        _ => 0,
    }
}

fn read_number(text: &[u8]) -> Option<u64> {
    if !(1..=18).contains(&text.len()) {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + u64::from(byte - b'0'))
    })
}

/// A date as a number of 14 digits, and its month. Truncated dates are completed to their earliest time.
fn read_date(date: &[u8]) -> (u64, u16) {
    const NONE: (u64, u16) = (0, NO_MONTH);
    if date.len() != 14 {
        return read_short_date(date);
    }
    let (Some(day), Some(time)) = (eight_digits(&date[..8]), eight_digits(&date[6..])) else {
        return NONE;
    };
    let number = day * 1_000_000 + time % 1_000_000;
    let (year, month) = (number / 10_000_000_000, number / 100_000_000 % 100);
    month_of(year, month).map_or(NONE, |at| (number, at))
}

/// Eight digits as a number, in parallel: pairs of digits become numbers below 100, those become numbers below 10,000.
fn eight_digits(text: &[u8]) -> Option<u64> {
    let word = u64::from_le_bytes(text.try_into().ok()?) ^ 0x3030_3030_3030_3030;
    // A byte that is not a digit is above 9 now: adding 118 sets its highest bit.
    let above = word | word.wrapping_add(0x7676_7676_7676_7676);
    if above & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let pairs = (word * 10 + (word >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    Some((fours * 10_000 + (fours >> 32)) & 0xFFFF_FFFF)
}

fn read_short_date(date: &[u8]) -> (u64, u16) {
    if date.len() > 14 || date.len() < 4 {
        return (0, NO_MONTH);
    }
    let mut whole = *b"00000101000000";
    whole[..date.len()].copy_from_slice(date);
    read_date(&whole)
}

fn month_of(year: u64, month: u64) -> Option<u16> {
    let at = year.checked_sub(FIRST_YEAR)?;
    if at >= YEARS as u64 || !(1..=12).contains(&month) {
        return None;
    }
    u16::try_from(at * 12 + month - 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_parsed_and_invalid_ones_reported() {
        assert_eq!(
            read_date(b"20140203040506"),
            (20_140_203_040_506, 24 * 12 + 1)
        );
        assert_eq!(read_date(b"2014"), (20_140_101_000_000, 24 * 12));
        for invalid in [
            &b"2014020304050x"[..],
            b"2014/203040506",
            b"201402:3040506",
            b"\xff0140203040506",
            b"20141303040506",
            b"19890203040506",
            b"201402030405060",
            b"201",
            b"",
        ] {
            assert_eq!(read_date(invalid), (0, NO_MONTH), "{invalid:?}");
        }
        for number in [0, 1, 12_345_678, 90_807_060, 99_999_999] {
            let text = format!("{number:08}");
            assert_eq!(eight_digits(text.as_bytes()), Some(number));
            for at in 0..8 {
                for byte in (0..=255).filter(|byte: &u8| !byte.is_ascii_digit()) {
                    let mut invalid = text.clone().into_bytes();
                    invalid[at] = byte;
                    assert_eq!(eight_digits(&invalid), None, "{invalid:?}");
                }
            }
        }
    }
}
