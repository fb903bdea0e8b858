//! The mementos of a page: sorted by date, deduplicated, compact.
//!
//! URLs that differ only in their dates are stored once, as a pattern; such a memento takes 16 bytes. URLs are in
//! visible ASCII without `<`, `>` and `"`: they are escaped on input, so that writers need not check them, and an
//! archive cannot inject entries or headers.

mod dedup_set;
mod list_builder;
mod listing;
mod packing;
mod patterns;
mod rendering;
mod url;

pub use dedup_set::DedupSet;
pub use list_builder::{MementoListBuilder, TooLarge};
pub use listing::{MAX_TEXT_BYTES, read};
pub use packing::{UnpackError, unpack};
pub use rendering::{LengthCounter, ListEnds, SliceWriter, TextSink};

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use self::patterns::{PatternCollector, Patterns, Url};
use self::url::without_scheme;
use super::httpdate::{self, Digits};

/// Mementos, sorted by date, URL without scheme, URL and archive; unique by date and URL without scheme.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mementos {
    patterns: Patterns,
    rows: Vec<Row>,
    /// Sorted, without archives that have no memento, so that equal lists are equal.
    archives: Vec<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Row {
    /// 14 digits as a number.
    date: u64,
    /// The pattern of its URL.
    pattern: u32,
    archive: u32,
}

/// One memento.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MementoRef<'a> {
    /// The capture date.
    pub datetime: Digits,
    /// The archive that lists it.
    pub archive: &'a str,
    /// Its URL.
    pub uri: Cow<'a, str>,
}

impl Mementos {
    /// The number of mementos.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Memory use in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let names: usize = self.archives.iter().map(|name| name.len() + 16).sum();
        size_of::<Self>() + self.patterns.size() + self.rows.capacity() * size_of::<Row>() + names
    }

    /// The memento at an index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<MementoRef<'_>> {
        let row = self.rows.get(index)?;
        Some(MementoRef {
            datetime: digits(row.date),
            archive: &self.archives[row.archive as usize],
            uri: self.url(row).text(),
        })
    }

    /// All mementos in order.
    pub fn iter(&self) -> impl Iterator<Item = MementoRef<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The index of the memento closest to a date: the earlier of two, the first of equal ones.
    #[must_use]
    pub fn closest(&self, datetime: &Digits) -> Option<usize> {
        let after = self.before(number(datetime));
        let Some(previous) = after.checked_sub(1) else {
            return (!self.is_empty()).then_some(0);
        };
        let earlier = self.before(self.rows[previous].date);
        let Some(later) = self.rows.get(after) else {
            return Some(earlier);
        };
        let target = httpdate::to_seconds(datetime);
        let from_earlier = target - httpdate::to_seconds(&digits(self.rows[earlier].date));
        let to_later = httpdate::to_seconds(&digits(later.date)) - target;
        Some(if to_later < from_earlier {
            after
        } else {
            earlier
        })
    }

    /// The number of mementos not later than a date.
    #[must_use]
    pub fn until(&self, datetime: &Digits) -> usize {
        self.before(number(datetime) + 1)
    }

    /// The range of mementos between two dates, inclusive.
    #[must_use]
    pub fn span(&self, first: Option<&Digits>, last: Option<&Digits>) -> std::ops::Range<usize> {
        let begin = first.map_or(0, |date| self.before(number(date)));
        let end = last.map_or(self.len(), |date| self.until(date));
        begin..end.max(begin)
    }

    /// The mementos of a range, which must exist.
    #[must_use]
    pub fn slice(&self, indexes: std::ops::Range<usize>) -> Self {
        let mut collector = PatternCollector::default();
        let rows = self.rows[indexes].iter().map(|row| Row {
            pattern: collector.add(self.patterns.get(row.pattern)),
            ..*row
        });
        let rows = rows.collect();
        Self::canonical(collector.finish(), rows, &self.archives)
    }

    /// The number of mementos per archive and year, both in order.
    #[must_use]
    pub fn by_archive_and_year(&self) -> Vec<(&str, Vec<(u16, usize)>)> {
        let mut counts: Vec<Vec<(u16, usize)>> = vec![Vec::new(); self.archives.len()];
        for row in &self.rows {
            let year = u16::try_from(row.date / 10_000_000_000).unwrap_or(0);
            let years = &mut counts[row.archive as usize];
            match years.last_mut() {
                Some((last, count)) if *last == year => *count += 1,
                _ => years.push((year, 1)),
            }
        }
        self.archives
            .iter()
            .map(AsRef::as_ref)
            .zip(counts)
            .collect()
    }

    /// Merges several lists.
    pub fn merge<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Result<Self, TooLarge> {
        let mut heads: Vec<MergeHead<'_>> = Vec::new();
        let mut archives: Vec<Box<str>> = Vec::new();
        let (mut total, mut bytes) = (0, 0);
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            total += part.len();
            bytes += part.patterns.size();
            heads.push(MergeHead::new(part, &mut archives));
        }
        u32::try_from(bytes).map_err(|_| TooLarge)?;
        let indexes = heads.iter().map(MergeHead::date).zip(0..);
        let mut queue: BinaryHeap<Reverse<(u64, usize)>> = indexes.map(Reverse).collect();
        let mut collector = PatternCollector::default();
        let mut rows = Vec::with_capacity(total);
        let mut same: Vec<(usize, Row)> = Vec::new();
        while let Some(&Reverse((date, _))) = queue.peek() {
            // The lists with the earliest date, which are few.
            while let Some(&Reverse((_, index))) = queue.peek().filter(|next| next.0.0 == date) {
                queue.pop();
                let head = &mut heads[index];
                while let Some(row) = head.next_of(date) {
                    same.push((index, row));
                }
                if head.index < head.part.len() {
                    queue.push(Reverse((head.date(), index)));
                }
            }
            if same.len() > 1 {
                sort_and_dedup(&mut same, &heads, &archives);
            }
            for (index, row) in same.drain(..) {
                rows.push(Row {
                    pattern: heads[index].add_pattern(row.pattern, &mut collector),
                    ..row
                });
            }
        }
        Ok(Self::canonical(collector.finish(), rows, &archives))
    }

    /// The number of mementos earlier than a date.
    fn before(&self, date: u64) -> usize {
        self.rows.partition_point(|row| row.date < date)
    }

    fn url(&self, row: &Row) -> Url<'_> {
        self.patterns.url(row.pattern, row.date)
    }

    /// From sorted rows; archives may be in any order and include unused ones.
    fn canonical(patterns: Patterns, mut rows: Vec<Row>, archives: &[Box<str>]) -> Self {
        let mut is_used = vec![false; archives.len()];
        for row in &rows {
            is_used[row.archive as usize] = true;
        }
        let mut order: Vec<usize> = (0..archives.len()).filter(|&id| is_used[id]).collect();
        order.sort_unstable_by(|&one, &other| archives[one].cmp(&archives[other]));
        if order.len() != archives.len() || !order.iter().copied().eq(0..archives.len()) {
            let mut indexes = vec![0; archives.len()];
            for (index, &id) in (0..).zip(&order) {
                indexes[id] = index;
            }
            for row in &mut rows {
                row.archive = indexes[row.archive as usize];
            }
        }
        rows.shrink_to_fit();
        let archives = order.iter().map(|&id| archives[id].clone()).collect();
        Self {
            patterns,
            rows,
            archives,
        }
    }
}

/// The merge position in one list.
struct MergeHead<'a> {
    part: &'a Mementos,
    index: usize,
    /// The numbers of its archives in the result.
    archives: Vec<u32>,
    /// The number of the last pattern that was added, in the list and in the result.
    last: Option<(u32, u32)>,
}

impl<'a> MergeHead<'a> {
    fn new(part: &'a Mementos, all: &mut Vec<Box<str>>) -> Self {
        let mut number = |name: &str| {
            let index = all.iter().position(|known| **known == *name);
            let index = index.unwrap_or_else(|| {
                all.push(name.into());
                all.len() - 1
            });
            u32::try_from(index).unwrap_or(u32::MAX)
        };
        Self {
            part,
            index: 0,
            archives: part.archives.iter().map(|name| number(name)).collect(),
            last: None,
        }
    }

    fn date(&self) -> u64 {
        self.part.rows[self.index].date
    }

    /// The next memento, if it is of this date.
    fn next_of(&mut self, date: u64) -> Option<Row> {
        let row = self.part.rows.get(self.index)?;
        if row.date != date {
            return None;
        }
        self.index += 1;
        let archive = self.archives[row.archive as usize];
        Some(Row { archive, ..*row })
    }

    fn add_pattern(&mut self, pattern: u32, collector: &mut PatternCollector) -> u32 {
        if let Some((_, known)) = self.last.filter(|last| last.0 == pattern) {
            return known;
        }
        let added = collector.add(self.part.patterns.get(pattern));
        if collector.is_shared(added) {
            self.last = Some((pattern, added));
        }
        added
    }
}

/// Sorts and deduplicates the mementos of one date.
fn sort_and_dedup(same: &mut Vec<(usize, Row)>, heads: &[MergeHead<'_>], archives: &[Box<str>]) {
    let mut keyed: Vec<(Cow<'_, str>, (usize, Row))> = same
        .drain(..)
        .map(|(index, row)| (heads[index].part.url(&row).text(), (index, row)))
        .collect();
    keyed.sort_by(|(one, (_, row)), (other, (_, other_row))| {
        let name = |row: &Row| &archives[row.archive as usize];
        without_scheme(one)
            .cmp(without_scheme(other))
            .then_with(|| one.cmp(other))
            .then_with(|| name(row).cmp(name(other_row)))
    });
    keyed.dedup_by(|later, before| without_scheme(&later.0) == without_scheme(&before.0));
    same.extend(keyed.into_iter().map(|(_, memento)| memento));
}

fn number(digits: &Digits) -> u64 {
    digits.iter().fold(0, |value, &byte| {
        value * 10 + u64::from(byte.wrapping_sub(b'0'))
    })
}

fn digits(mut number: u64) -> Digits {
    let mut out = [b'0'; 14];
    for digit in out.iter_mut().rev() {
        *digit += u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(rows: &[(&[u8; 14], &str, &str)]) -> Mementos {
        let mut builder = MementoListBuilder::default();
        for (date, archive, uri) in rows {
            let archive = builder.archive(archive);
            builder.add(date, archive, uri.as_bytes().into()).unwrap();
        }
        builder.finish()
    }

    #[test]
    fn mementos_are_sorted_and_deduplicated() {
        let mementos = list(&[
            (b"20150101000000", "z", "http://z/2"),
            (b"20140101000000", "b", "https://a/1"),
            (b"20140101000000", "c", "http://a/1"),
        ]);
        let rows: Vec<_> = mementos
            .iter()
            .map(|memento| (memento.archive, memento.uri.into_owned()))
            .collect();
        assert_eq!(
            rows,
            [
                ("c", "http://a/1".to_owned()),
                ("z", "http://z/2".to_owned())
            ]
        );
        assert_eq!(
            mementos.slice(1..2),
            list(&[(b"20150101000000", "z", "http://z/2")])
        );
    }

    #[test]
    fn urls_that_differ_only_in_their_dates_share_a_pattern() {
        let urls: Vec<_> = (0..100)
            .map(|day| {
                let date = format!("201401{:02}0000{:02}", day % 28 + 1, day);
                (date.clone(), format!("http://a/{date}/http://b/"))
            })
            .collect();
        let mut builder = MementoListBuilder::default();
        let archive = builder.archive("a");
        for (date, url) in &urls {
            let date: &Digits = date.as_bytes().try_into().unwrap();
            let _ = builder.add(date, archive, url.as_bytes().into());
        }
        let mementos = builder.finish();
        assert!(mementos.patterns.size() < 40);
        assert_eq!(
            Mementos::merge([&mementos.slice(40..100), &mementos.slice(0..60)]),
            Ok(mementos.clone())
        );
        for memento in mementos.iter() {
            assert!(urls.contains(&(
                String::from_utf8_lossy(&memento.datetime).into_owned(),
                memento.uri.into_owned()
            )));
        }
    }

    #[test]
    fn closest_prefers_the_earlier_memento_and_the_first_duplicate() {
        let mementos = list(&[
            (b"20140101000000", "a", "http://a/1"),
            (b"20140101000000", "a", "http://a/2"),
            (b"20140101000002", "a", "http://a/3"),
        ]);
        for (date, index) in [
            (b"00010101000000", 0),
            (b"20140101000001", 0),
            (b"20140101000002", 2),
            (b"99991231235959", 2),
        ] {
            assert_eq!(mementos.closest(date), Some(index));
        }
        assert_eq!(list(&[]).closest(b"20140101000000"), None);
    }
}
