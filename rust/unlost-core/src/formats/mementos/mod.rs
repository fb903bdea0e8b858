//! The copies of a page that archives list: by date, each once, in little memory.
//!
//! All addresses are in one text, one behind the other, in visible ASCII without `<`, `>` and `"`: what an archive
//! lists is escaped when it comes in, so that whoever writes it out can neither be made to write entries or headers of
//! somebody else's, nor has to look at it again.

mod address;
mod draft;
mod listing;
mod packing;
mod rendering;
mod seen;

pub use draft::{Draft, TooLarge};
pub use listing::{MAX_TEXT_BYTES, read};
pub use packing::{Unreadable, unpacked};
pub use rendering::{Ends, Length, Room, Text};
pub use seen::Seen;

use super::httpdate::{self, Digits};

/// Copies, sorted by date, address without its scheme, address and archive; no two have the first two in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mementos {
    text: String,
    rows: Vec<Row>,
    /// Sorted, without those that list nothing, so that equal copies are equal.
    archives: Vec<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Row {
    /// 14 digits as a number.
    date: u64,
    /// Where its address ends; it begins where the one before ends.
    end: u32,
    archive: u32,
}

/// One copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy<'a> {
    /// When it was captured.
    pub datetime: Digits,
    /// The archive that lists it.
    pub archive: &'a str,
    /// Its address.
    pub uri: &'a str,
}

impl Mementos {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The bytes that they take in memory.
    #[must_use]
    pub fn size(&self) -> usize {
        let names: usize = self.archives.iter().map(|name| name.len() + 16).sum();
        size_of::<Self>() + self.text.capacity() + self.rows.capacity() * size_of::<Row>() + names
    }

    /// The copy at a place.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<Copy<'_>> {
        let row = self.rows.get(place)?;
        Some(Copy {
            datetime: digits(row.date),
            archive: &self.archives[row.archive as usize],
            uri: self.address(place),
        })
    }

    /// All copies, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Copy<'_>> {
        (0..self.len()).filter_map(|place| self.get(place))
    }

    /// The place of the copy closest to a date: the earlier of two, the first of many.
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
        let wanted = httpdate::to_seconds(datetime);
        let from_earlier = wanted - httpdate::to_seconds(&digits(self.rows[earlier].date));
        let to_later = httpdate::to_seconds(&digits(later.date)) - wanted;
        Some(if to_later < from_earlier {
            after
        } else {
            earlier
        })
    }

    /// How many copies are not later than a date.
    #[must_use]
    pub fn until(&self, datetime: &Digits) -> usize {
        self.before(number(datetime) + 1)
    }

    /// The places of the copies of a span, ends included.
    #[must_use]
    pub fn span(&self, first: Option<&Digits>, last: Option<&Digits>) -> std::ops::Range<usize> {
        let begin = first.map_or(0, |date| self.before(number(date)));
        let end = last.map_or(self.len(), |date| self.until(date));
        begin..end.max(begin)
    }

    /// The copies at some places, which must be there.
    #[must_use]
    pub fn slice(&self, places: std::ops::Range<usize>) -> Self {
        let begin = self.start(places.start);
        let rows = &self.rows[places.clone()];
        let text = &self.text[begin..self.start(places.end)];
        let rows = rows.iter().map(|row| Row {
            end: row.end - u32::try_from(begin).unwrap_or(0),
            ..*row
        });
        Self::canonical(text.to_owned(), rows.collect(), &self.archives)
    }

    /// How many copies each archive has of each year, both in order.
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

    /// All copies of several lists.
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Result<Self, TooLarge> {
        let mut draft = Draft::default();
        for part in parts {
            draft.add_all(part)?;
        }
        Ok(draft.finish())
    }

    /// How many copies are earlier than a date.
    fn before(&self, date: u64) -> usize {
        self.rows.partition_point(|row| row.date < date)
    }

    /// Where the address of a copy begins.
    fn start(&self, place: usize) -> usize {
        place
            .checked_sub(1)
            .map_or(0, |before| self.rows[before].end as usize)
    }

    fn address(&self, place: usize) -> &str {
        &self.text[self.start(place)..self.rows[place].end as usize]
    }

    /// Of rows in order, whose archives may be in any, with others that list nothing.
    fn canonical(mut text: String, mut rows: Vec<Row>, archives: &[Box<str>]) -> Self {
        let mut is_used = vec![false; archives.len()];
        for row in &rows {
            is_used[row.archive as usize] = true;
        }
        let mut order: Vec<usize> = (0..archives.len()).filter(|&id| is_used[id]).collect();
        order.sort_unstable_by(|&one, &other| archives[one].cmp(&archives[other]));
        if order.len() != archives.len() || !order.iter().copied().eq(0..archives.len()) {
            let mut places = vec![0; archives.len()];
            for (place, &id) in (0..).zip(&order) {
                places[id] = place;
            }
            for row in &mut rows {
                row.archive = places[row.archive as usize];
            }
        }
        text.shrink_to_fit();
        rows.shrink_to_fit();
        let archives = order.iter().map(|&id| archives[id].clone()).collect();
        Self {
            text,
            rows,
            archives,
        }
    }
}

fn number(digits: &Digits) -> u64 {
    digits.iter().fold(0, |value, &byte| {
        value * 10 + u64::from(byte.wrapping_sub(b'0'))
    })
}

fn digits(mut number: u64) -> Digits {
    let mut out = [b'0'; 14];
    for place in out.iter_mut().rev() {
        *place += u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(rows: &[(&[u8; 14], &str, &str)]) -> Mementos {
        let mut draft = Draft::default();
        for (date, archive, uri) in rows {
            let archive = draft.archive(archive);
            draft.add(date, archive, uri.as_bytes().into()).unwrap();
        }
        draft.finish()
    }

    #[test]
    fn copies_are_in_order_and_each_is_there_once() {
        let copies = list(&[
            (b"20150101000000", "z", "http://z/2"),
            (b"20140101000000", "b", "https://a/1"),
            (b"20140101000000", "c", "http://a/1"),
        ]);
        let found: Vec<_> = copies.iter().map(|copy| (copy.archive, copy.uri)).collect();
        assert_eq!(found, [("c", "http://a/1"), ("z", "http://z/2")]);
        assert_eq!(
            copies.slice(1..2),
            list(&[(b"20150101000000", "z", "http://z/2")])
        );
    }

    #[test]
    fn the_closest_is_the_earlier_of_two_and_the_first_of_many() {
        let copies = list(&[
            (b"20140101000000", "a", "http://a/1"),
            (b"20140101000000", "a", "http://a/2"),
            (b"20140101000002", "a", "http://a/3"),
        ]);
        for (date, place) in [
            (b"00010101000000", 0),
            (b"20140101000001", 0),
            (b"20140101000002", 2),
            (b"99991231235959", 2),
        ] {
            assert_eq!(copies.closest(date), Some(place));
        }
        assert_eq!(list(&[]).closest(b"20140101000000"), None);
    }
}
