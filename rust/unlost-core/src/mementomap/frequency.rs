//! The frequency of a key: `[m][+-~][/[r][+-~]]`, the number of mementos (URI-Ms) of a number of pages (URI-Rs).

use std::io::Write;

/// The maximum count: 18 digits, which fit a 64-bit word together with the flags, with room for one addition.
const MAX_COUNT: u64 = 999_999_999_999_999_999;

/// The value is a lower bound.
const MORE: u64 = 1;
/// The value is an upper bound.
const LESS: u64 = 2;
/// The value is approximate.
const ABOUT: u64 = MORE | LESS;
/// The value is unknown.
const UNKNOWN: u64 = 4;
/// The number of flag bits below the value.
const SHIFT: u32 = 3;

/// A value and its bounds, in one word. Unknown counts as "0 or more" in sums, so sums never claim too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(u64);

impl Count {
    /// Unknown.
    pub const UNKNOWN: Self = Self::new(0, MORE | UNKNOWN);

    const fn new(value: u64, bounds: u64) -> Self {
        Self(value << SHIFT | bounds)
    }

    const fn number(self) -> u64 {
        self.0 >> SHIFT
    }

    const fn bounds(self) -> u64 {
        self.0 & (MORE | LESS | UNKNOWN)
    }

    /// An exact value of at most 18 digits.
    #[must_use]
    pub fn exactly(value: u64) -> Self {
        Self::new(value.min(MAX_COUNT), 0)
    }

    /// The value, if known.
    #[must_use]
    pub fn value(self) -> Option<u64> {
        (self.bounds() & UNKNOWN == 0).then_some(self.number())
    }

    /// The bound as written in files: nothing, `+`, `-` or `~`.
    #[must_use]
    pub fn bound(self) -> &'static str {
        match self.bounds() {
            MORE => "+",
            LESS => "-",
            ABOUT => "~",
            _ => "",
        }
    }

    /// Whether it is exactly zero.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.number() == 0 && self.bounds() & MORE == 0
    }

    /// The sum: values add, bounds combine. Commutative and associative. `None` if it has more than 18 digits.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        let value = self.number() + other.number();
        let unknown = self.bounds() & other.bounds() & UNKNOWN;
        let bounds = (self.bounds() | other.bounds()) & ABOUT | unknown;
        (value <= MAX_COUNT).then_some(Self::new(value, bounds))
    }

    /// The sum of two counts that may include the same things: an upper bound.
    #[must_use]
    pub fn plus_overlapping(self, other: Self) -> Option<Self> {
        let overlaps = self.number() > 0 && other.number() > 0;
        let sum = self.plus(other)?;
        Some(Self(sum.0 | if overlaps { LESS } else { 0 }))
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let (digits, bounds) = match text.split_last() {
            Some((b'+', digits)) => (digits, MORE),
            Some((b'-', digits)) => (digits, LESS),
            Some((b'~', digits)) => (digits, ABOUT),
            _ => (text, 0),
        };
        // A bound without a value is meaningless.
        if digits.is_empty() {
            return Some(Self::UNKNOWN);
        }
        if digits.len() > 18 {
            return None;
        }
        let mut value = 0;
        for &digit in digits {
            if !digit.is_ascii_digit() {
                return None;
            }
            value = value * 10 + u64::from(digit - b'0');
        }
        Some(Self::new(value, bounds))
    }

    fn write(self, out: &mut Vec<u8>) {
        if let Some(value) = self.value() {
            write_number(value, out);
            out.extend_from_slice(self.bound().as_bytes());
        }
    }
}

/// The number of mementos and pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frequency {
    /// URI-Ms.
    pub mementos: Count,
    /// URI-Rs.
    pub resources: Count,
}

impl Frequency {
    /// Unknown.
    pub const UNKNOWN: Self = Self {
        mementos: Count::UNKNOWN,
        resources: Count::UNKNOWN,
    };

    /// An exact number of mementos, of an unknown number of pages.
    #[must_use]
    pub fn of(mementos: u64) -> Self {
        Self {
            mementos: Count::exactly(mementos),
            resources: Count::UNKNOWN,
        }
    }

    /// An exact number of mementos, of an unknown number of pages. `None` if it has more than 18 digits.
    #[must_use]
    pub fn checked(mementos: u64) -> Option<Self> {
        (mementos <= MAX_COUNT).then(|| Self::of(mementos))
    }

    /// Parses the form used in files. `None` if it is invalid, or has more than 18 digits.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let slash = memchr::memchr(b'/', text);
        let (mementos, resources) = match slash {
            None => (text, &b""[..]),
            Some(at) => (&text[..at], &text[at + 1..]),
        };
        Some(Self {
            mementos: Count::parse(mementos)?,
            resources: Count::parse(resources)?,
        })
    }

    /// Appends its shortest form.
    pub fn write(self, out: &mut Vec<u8>) {
        self.mementos.write(out);
        if self.resources.value().is_some() {
            out.push(b'/');
            self.resources.write(out);
        } else if self.mementos.value().is_none() {
            out.push(b'/');
        }
    }

    /// Whether something is or may be held: everything but an exact 0.
    #[must_use]
    pub fn is_held(self) -> bool {
        !self.mementos.is_zero()
    }

    /// Whether nothing is held for certain, so that it adds nothing to a sum.
    pub(super) fn is_exclusion(self) -> bool {
        !self.is_held() && self.resources.value().is_none_or(|pages| pages == 0)
    }

    /// The sum over different keys of one archive. `None` if it has more than 18 digits.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        self.add(other, Count::plus)
    }

    /// The sum for one key over archives, which may hold the same pages, but never the same mementos.
    #[must_use]
    pub fn plus_overlapping(self, other: Self) -> Option<Self> {
        self.add(other, Count::plus_overlapping)
    }

    fn add(self, other: Self, add_resources: fn(Count, Count) -> Option<Count>) -> Option<Self> {
        if self.is_exclusion() && other.is_exclusion() && self != other {
            // The order does not matter, since all exclusions are equal.
            return Some(Self::of(0));
        }
        if self.is_exclusion() {
            return Some(other);
        }
        if other.is_exclusion() {
            return Some(self);
        }
        Some(Self {
            mementos: self.mementos.plus(other.mementos)?,
            resources: add_resources(self.resources, other.resources)?,
        })
    }
}

pub(super) fn write_number(value: u64, out: &mut Vec<u8>) {
    // Most counts are small.
    if let Some(digit) = u8::try_from(value).ok().filter(|digit| *digit < 10) {
        out.push(b'0' + digit);
        return;
    }
    // Writing to memory does not fail.
    let _ = write!(out, "{value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Frequency {
        Frequency::parse(text.as_bytes()).expect(text)
    }

    fn text(frequency: Frequency) -> String {
        let mut out = Vec::new();
        frequency.write(&mut out);
        String::from_utf8(out).expect("ascii")
    }

    #[test]
    fn every_form_round_trips() {
        for form in ["7", "0", "300+/20-", "2500~/900", "/5", "/5+", "0/20", "/"] {
            assert_eq!(text(read(form)), form);
        }
        assert_eq!(text(read("+/~")), "/");
        for bad in [
            "",
            "x",
            "1x",
            "1++",
            "1/2/3",
            "-1",
            "1234567890123456789",
            " 1",
        ] {
            assert_eq!(Frequency::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn sums_combine_bounds() {
        for (a, b, sum) in [
            ("3", "4", "7"),
            ("3+", "4", "7+"),
            ("3+", "4-", "7~"),
            ("3~", "4", "7~"),
            ("3", "/", "3+"),
            ("3-", "/", "3~"),
            ("/", "/", "/"),
            ("3/2", "4/1", "7/3"),
            ("3/2", "4", "7/2+"),
            ("0", "4/1", "4/1"),
            ("0", "0", "0"),
            ("0/20", "4/1", "4/21"),
            ("0-", "0", "0"),
            ("0-", "0-", "0-"),
        ] {
            assert_eq!(text(read(a).plus(read(b)).expect(sum)), sum, "{a} + {b}");
            assert_eq!(text(read(b).plus(read(a)).expect(sum)), sum, "{b} + {a}");
        }
        let overlapping = read("3/2").plus_overlapping(read("4/1")).expect("small");
        assert_eq!(text(overlapping), "7/3-");
        assert_eq!(read("999999999999999999").plus(read("1")), None);
    }

    #[test]
    fn possible_holdings_count_as_held() {
        for held in ["1", "0+", "0~", "/", "/5"] {
            assert!(read(held).is_held(), "{held}");
        }
        for excluded in ["0", "0-", "0/0", "0/20"] {
            assert!(!read(excluded).is_held(), "{excluded}");
        }
    }
}
