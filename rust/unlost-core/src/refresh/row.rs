//! A visit in 80 bytes, with hashes instead of texts, so that ten million visits take 800 MB.

use crate::memento::httpdate;
use crate::mementomap::filter::xxh64;

use super::visit::Visit;

/// Bytes of a stored row.
pub(super) const ROW_BYTES: usize = 80;
/// The maximum difference in seconds between `Last-Modified` and `Date` for which the former is taken for the time of
/// the response. A server reads the clock for each header separately.
const MAX_CLOCK_SECONDS: i64 = 2;
/// The same if the response has no `Date`, so that the time of the visit is used instead.
const MAX_OUR_CLOCK_SECONDS: i64 = 5;

/// Properties of a row.
pub(super) mod flag {
    pub const ETAG: u16 = 1;
    pub const WEAK: u16 = 1 << 1;
    pub const CODING_SUFFIX: u16 = 1 << 2;
    pub const DATE: u16 = 1 << 3;
    pub const DATE_VALID: u16 = 1 << 4;
    pub const DATE_IS_RESPONSE_TIME: u16 = 1 << 5;
    pub const LENGTH: u16 = 1 << 6;
    pub const REPR_DIGEST: u16 = 1 << 7;
    pub const AGE: u16 = 1 << 8;
    pub const LIFETIME: u16 = 1 << 9;
    pub const UNCACHEABLE: u16 = 1 << 10;
    pub const TEXT: u16 = 1 << 11;
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub page: u64,
    pub time: i64,
    pub digest: u64,
    pub text: u64,
    pub etag: u64,
    pub date: i64,
    pub host: u32,
    pub order: u32,
    pub length: u32,
    pub repr: u32,
    pub age: u32,
    pub lifetime: u32,
    pub weight: u16,
    pub flags: u16,
}

impl Row {
    /// The stored part of a visit with a known body.
    pub(super) fn of(
        visit: &Visit<'_>,
        digest: &[u8],
        host: u32,
        order: u32,
        read: &mut ParseCache,
    ) -> Self {
        let mut row = Self {
            page: xxh64(visit.uri),
            time: visit.time,
            digest: xxh64(digest),
            host,
            order,
            weight: visit
                .weight
                .map_or(1, |weight| u16::try_from(weight.max(1)).unwrap_or(u16::MAX)),
            ..Self::default()
        };
        if let Some(text) = visit.text_digest {
            row.text = xxh64(text);
            row.flags |= flag::TEXT;
        }
        if let Some(etag) = visit.etag {
            row.take_tag(etag);
        }
        row.take_dates(visit, read);
        if let Some(length) = visit.content_length {
            row.length = fold(xxh64(&length.to_le_bytes()));
            row.flags |= flag::LENGTH;
        }
        if let Some(repr) = visit.repr_digest {
            row.repr = fold(xxh64(repr));
            row.flags |= flag::REPR_DIGEST;
        }
        if let Some(age) = visit.age.and_then(|age| u32::try_from(age).ok()) {
            row.age = age;
            row.flags |= flag::AGE;
        }
        row.take_lifetime(visit, read);
        row
    }

    pub(super) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Removes `W/` and a suffix for the coding from a tag: the page is the same.
    fn take_tag(&mut self, etag: &[u8]) {
        self.flags |= flag::ETAG;
        let mut tag = etag.trim_ascii();
        if let Some(rest) = tag.strip_prefix(b"W/").or(tag.strip_prefix(b"w/")) {
            self.flags |= flag::WEAK;
            tag = rest;
        }
        let inner = tag.strip_prefix(b"\"").unwrap_or(tag);
        let inner = inner.strip_suffix(b"\"").unwrap_or(inner);
        let bare = [&b"-gzip"[..], b";gzip", b"-br", b"-deflate", b"-zstd"]
            .iter()
            .find_map(|suffix| inner.strip_suffix(*suffix));
        if bare.is_some() {
            self.flags |= flag::CODING_SUFFIX;
        }
        self.etag = xxh64(bare.unwrap_or(inner));
    }

    fn take_dates(&mut self, visit: &Visit<'_>, read: &mut ParseCache) {
        let Some(text) = visit.last_modified else {
            return;
        };
        self.flags |= flag::DATE;
        let Some(changed) = read.changed(text) else {
            self.date = i64::from_le_bytes(xxh64(text.trim_ascii()).to_le_bytes());
            return;
        };
        self.flags |= flag::DATE_VALID;
        self.date = changed;
        let is_now = match visit.date.and_then(|date| read.date(date)) {
            Some(sent) => (sent - changed).abs() <= MAX_CLOCK_SECONDS,
            None => (visit.time.div_euclid(1000) - changed).abs() <= MAX_OUR_CLOCK_SECONDS,
        };
        if is_now {
            self.flags |= flag::DATE_IS_RESPONSE_TIME;
        }
    }

    /// The freshness lifetime, from this visit on.
    fn take_lifetime(&mut self, visit: &Visit<'_>, read: &mut ParseCache) {
        let bits = visit.cache_control.map(|text| read.caching(text));
        let Caching {
            is_refused,
            mut lifetime,
        } = bits.unwrap_or_default();
        if is_refused {
            self.flags |= flag::UNCACHEABLE;
        }
        if lifetime.is_none() && visit.expires.is_some() {
            let sent = visit
                .date
                .and_then(|date| read.date(date))
                .unwrap_or_else(|| visit.time.div_euclid(1000));
            lifetime = visit.expires.and_then(seconds).map(|end| end - sent);
        }
        let age = visit.age.unwrap_or(0).max(0);
        if let Some(left) = lifetime.map(|lifetime| lifetime.saturating_sub(age)) {
            if left > 0 {
                self.lifetime = u32::try_from(left).unwrap_or(u32::MAX);
                self.flags |= flag::LIFETIME;
            }
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        // On the stack first: one copy with one capacity check.
        let mut bytes = [0; ROW_BYTES];
        let longs = [self.page, self.digest, self.text, self.etag]
            .map(u64::to_le_bytes)
            .into_iter()
            .chain([self.time, self.date].map(i64::to_le_bytes));
        for (place, word) in bytes[..48].chunks_exact_mut(8).zip(longs) {
            place.copy_from_slice(&word);
        }
        let words = [
            self.host,
            self.order,
            self.length,
            self.repr,
            self.age,
            self.lifetime,
        ];
        for (place, word) in bytes[48..72].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[72..74].copy_from_slice(&self.weight.to_le_bytes());
        bytes[74..76].copy_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(&bytes);
    }

    /// The page of a serialized row.
    pub(super) fn page_of(bytes: &[u8]) -> u64 {
        u64::from_le_bytes(part(bytes, 0))
    }

    pub(super) fn read(bytes: &[u8]) -> Self {
        Self {
            page: u64::from_le_bytes(part(bytes, 0)),
            digest: u64::from_le_bytes(part(bytes, 8)),
            text: u64::from_le_bytes(part(bytes, 16)),
            etag: u64::from_le_bytes(part(bytes, 24)),
            time: i64::from_le_bytes(part(bytes, 32)),
            date: i64::from_le_bytes(part(bytes, 40)),
            host: u32::from_le_bytes(part(bytes, 48)),
            order: u32::from_le_bytes(part(bytes, 52)),
            length: u32::from_le_bytes(part(bytes, 56)),
            repr: u32::from_le_bytes(part(bytes, 60)),
            age: u32::from_le_bytes(part(bytes, 64)),
            lifetime: u32::from_le_bytes(part(bytes, 68)),
            weight: u16::from_le_bytes(part(bytes, 72)),
            flags: u16::from_le_bytes(part(bytes, 74)),
        }
    }
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// The caching headers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Caching {
    is_refused: bool,
    lifetime: Option<i64>,
}

impl Caching {
    fn of(text: &[u8]) -> Self {
        let mut caching = Self::default();
        for directive in text.split(|&byte| byte == b',') {
            let directive = directive.trim_ascii().to_ascii_lowercase();
            if directive.starts_with(b"no-store") || directive.starts_with(b"no-cache") {
                caching.is_refused = true;
            } else if let Some(value) = directive.strip_prefix(b"max-age=") {
                let digits = std::str::from_utf8(value).unwrap_or_default();
                caching.lifetime = digits.trim_matches('"').parse().ok();
            }
        }
        caching
    }
}

/// The last parsed values: many visits were made in the same second, and to servers with the same configuration.
#[derive(Debug, Default)]
pub(super) struct ParseCache {
    date: (Vec<u8>, Option<i64>),
    changed: (Vec<u8>, Option<i64>),
    caching: (Vec<u8>, Caching),
}

impl ParseCache {
    fn date(&mut self, text: &[u8]) -> Option<i64> {
        cached(&mut self.date, text, seconds)
    }

    fn changed(&mut self, text: &[u8]) -> Option<i64> {
        cached(&mut self.changed, text, seconds)
    }

    fn caching(&mut self, text: &[u8]) -> Caching {
        cached(&mut self.caching, text, Caching::of)
    }
}

/// Parses a text; returns the cached value if it is the same as the last one.
fn cached<T: Copy>(last: &mut (Vec<u8>, T), text: &[u8], read: impl Fn(&[u8]) -> T) -> T {
    if last.0 != text || text.is_empty() {
        last.0.clear();
        last.0.extend_from_slice(text);
        last.1 = read(text);
    }
    last.1
}

fn fold(hash: u64) -> u32 {
    u32::try_from((hash >> 32) ^ (hash & 0xffff_ffff)).unwrap_or_default()
}

/// An HTTP date as seconds since 1970; None if it is invalid.
fn seconds(text: &[u8]) -> Option<i64> {
    let digits = httpdate::parse(text)?;
    let number = |from: usize, to: usize| {
        let part = digits[from..to].iter();
        part.fold(0i64, |sum, &digit| sum * 10 + i64::from(digit - b'0'))
    };
    let (year, month, day) = (number(0, 4), number(4, 6), number(6, 8));
    // Days since 1970, with years that begin in March, so that the leap day is the last.
    let shifted = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = shifted * 365 + shifted.div_euclid(4) - shifted.div_euclid(100)
        + shifted.div_euclid(400)
        + of_year
        - 719_468;
    Some(days * 86_400 + number(8, 10) * 3600 + number(10, 12) * 60 + number(12, 14))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_round_trip() {
        let visit = Visit {
            uri: b"http://a.example/",
            time: -5,
            etag: Some(b"W/\"x-gzip\""),
            last_modified: Some(b"Mon, 10 Feb 2014 00:00:01 GMT"),
            age: Some(7),
            cache_control: Some(b"max-age=60"),
            ..Visit::default()
        };
        let row = Row::of(&visit, b"d", 3, 9, &mut ParseCache::default());
        let mut bytes = Vec::new();
        row.write(&mut bytes);
        let bytes: [u8; ROW_BYTES] = bytes.try_into().expect("80 bytes");
        assert_eq!(Row::read(&bytes), row);
        assert_eq!(row.lifetime, 53);
        assert!(row.has(flag::WEAK) && row.has(flag::CODING_SUFFIX));
    }

    #[test]
    fn dates_are_parsed_to_unix_seconds() {
        assert_eq!(seconds(b"Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds(b"Tue, 29 Feb 2000 12:00:00 GMT"), Some(951_825_600));
        assert_eq!(
            seconds(b"Mon, 10 Feb 2014 00:00:01 GMT"),
            Some(1_391_990_401)
        );
        assert_eq!(seconds(b"yesterday"), None);
    }
}
