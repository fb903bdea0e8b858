//! The date range of the captures in a filter.

/// The earliest and the latest date, as 14 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateRange {
    first: Moment,
    last: Moment,
}

type Moment = [u8; 14];

impl Default for DateRange {
    fn default() -> Self {
        // Inverted, so that any date is before the first and after the last.
        Self {
            first: [b'~'; 14],
            last: [b' '; 14],
        }
    }
}

impl DateRange {
    /// Both dates, if any was added.
    #[must_use]
    pub fn get(&self) -> Option<(&[u8], &[u8])> {
        (self.first <= self.last).then_some((&self.first[..], &self.last[..]))
    }

    /// Takes the date of a row; an invalid one is ignored.
    #[inline]
    pub(in crate::mementomap) fn add(&mut self, date: &[u8]) {
        // Nearly all are within the known range, and need not be parsed.
        if let (Some(day), Some(first), Some(last)) = (
            date.first_chunk::<8>(),
            self.first.first_chunk::<8>(),
            self.last.first_chunk::<8>(),
        ) {
            let number = |day: &[u8; 8]| u64::from_be_bytes(*day);
            if number(first) < number(day) && number(day) < number(last) {
                return;
            }
        }
        self.add_slowly(date);
    }

    fn add_slowly(&mut self, date: &[u8]) {
        if let Some(moment) = moment(date) {
            self.first = self.first.min(moment);
            self.last = self.last.max(moment);
        }
    }

    /// Takes the range of another one.
    pub(in crate::mementomap) fn append(&mut self, other: &Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }

    /// From the output of [`DateRange::get`]. `None` if these are not two dates in order.
    #[must_use]
    pub fn of(first: &[u8], last: &[u8]) -> Option<Self> {
        let range = Self {
            first: moment(first)?,
            last: moment(last)?,
        };
        let is_same = range.first == first && range.last == last;
        (is_same && range.first <= range.last).then_some(range)
    }
}

/// A date as 14 digits: a truncated date is completed to its earliest time, and milliseconds are dropped. ISO dates are
/// accepted in UTC. `None` if it is invalid.
#[must_use]
pub(super) fn moment(date: &[u8]) -> Option<Moment> {
    let is_iso = date.get(4) == Some(&b'-');
    let mut moment = *b"00000101000000";
    let mut length = 0;
    for &byte in date {
        match byte {
            b'0'..=b'9' if length < 17 => {
                if let Some(digit) = moment.get_mut(length) {
                    *digit = byte;
                }
                length += 1;
            }
            b'-' | b':' | b'T' if is_iso => {}
            // The fraction of a second.
            b'.' | b'Z' if is_iso && length >= 14 => break,
            _ => return None,
        }
    }
    // The tenth month and the tenth day begin with the same digit as their neighbours.
    if (length == 5 || length == 7) && moment[length - 1] != b'0' {
        moment[length] = b'0';
    }
    let number = |at: usize| (moment[at] - b'0') * 10 + (moment[at + 1] - b'0');
    let is_date = (4..=14).contains(&length) || length == 17;
    let year = u16::from(number(0)) * 100 + u16::from(number(2));
    let is_there = year > 0
        && (1..=days(year, number(4))).contains(&number(6))
        && number(8) < 24
        && number(10) < 60
        && number(12) <= 60;
    (is_date && is_there).then_some(moment)
}

/// The number of days of a month; 0 for an invalid month.
fn days(year: u16, month: u8) -> u8 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_dates_are_parsed() {
        for (date, expected) in [
            ("20140210000001", Some("20140210000001")),
            ("20140210000001999", Some("20140210000001")),
            ("2014", Some("20140101000000")),
            ("20141", Some("20141001000000")),
            ("201402", Some("20140201000000")),
            ("2014021", Some("20140210000000")),
            ("2014-02-10T00:00:01Z", Some("20140210000001")),
            ("2014-02-10T00:00:01.999Z", Some("20140210000001")),
            ("2014-02-10T00:00:01+01:00", None),
            ("20141310000001", None),
            ("99999999999999", None),
            ("20140229000000", None),
            ("20160229000000", Some("20160229000000")),
            ("19000229000000", None),
            ("20000229000000", Some("20000229000000")),
            ("20140431", None),
            ("0000", None),
            ("201", None),
            ("", None),
            ("-", None),
            ("201402100000011", None),
        ] {
            let found = moment(date.as_bytes());
            let found = found.map(|moment| String::from_utf8(moment.to_vec()).expect("digits"));
            assert_eq!(found.as_deref(), expected, "{date}");
        }
    }

    #[test]
    fn range_covers_all_dates() {
        let mut range = DateRange::default();
        assert_eq!(range.get(), None);
        for date in ["x", "20140210000001", "2013", "99999999999999", "20140210"] {
            range.add(date.as_bytes());
        }
        let mut other = DateRange::default();
        other.append(&range);
        assert_eq!(
            other.get(),
            Some((&b"20130101000000"[..], &b"20140210000001"[..]))
        );
        assert_eq!(
            DateRange::of(b"20130101000000", b"20140210000001"),
            Some(range)
        );
        assert_eq!(DateRange::of(b"20140210000001", b"20130101000000"), None);
        assert_eq!(DateRange::of(b"2013", b"20130101000000"), None);
    }
}
