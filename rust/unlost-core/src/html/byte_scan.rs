//! Searches eight bytes at once: matches in tags are near, and a bytewise search would dominate the run time.

use super::spans::is_blank;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The number of sixteen-byte steps searched here; distant matches are found faster by `memchr`.
const NEAR_STEPS: usize = 2;

/// What a byte ends.
const TAG_NAME: u8 = 1;
const ATTRIBUTE_NAME: u8 = 2;
/// Also separates words.
const BLANK: u8 = 4;

const ENDS: [u8; 256] = {
    let mut ends = [0; 256];
    let bytes = b" \t\n\x0c\r/>";
    let mut nth = 0;
    while nth < bytes.len() {
        ends[bytes[nth] as usize] = TAG_NAME | ATTRIBUTE_NAME;
        nth += 1;
    }
    ends[b'=' as usize] = ATTRIBUTE_NAME;
    let mut byte = 0_u8;
    while byte <= b' ' {
        if is_blank(byte) {
            ends[byte as usize] |= BLANK;
        }
        byte += 1;
    }
    ends
};

#[inline]
fn eight(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(eight.try_into().ok()?))
}

/// The highest bit of each byte below `limit`, which is at most 128. Only the first is reliable.
#[inline]
fn below(eight: u64, limit: u64) -> u64 {
    eight.wrapping_sub(ONES * limit) & !eight & HIGHS
}

#[inline]
fn first(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// The highest bit of each byte that is `byte`. Only the first is reliable.
#[inline]
fn same(eight: u64, byte: u8) -> u64 {
    below(eight ^ (ONES * u64::from(byte)), 1)
}

/// The offset of the next such byte, from `at` on.
#[inline]
pub fn find(bytes: &[u8], at: usize, needle: u8) -> Option<usize> {
    memchr::memchr(needle, bytes.get(at..)?).map(|length| at + length)
}

/// The same for frequent bytes.
#[inline]
pub fn find_near(bytes: &[u8], mut at: usize, needle: u8) -> Option<usize> {
    while let Some(eight) = eight(bytes, at) {
        let matches = same(eight, needle);
        if matches != 0 {
            return Some(at + first(matches));
        }
        at += 8;
    }
    let rest = bytes.get(at..)?.iter();
    rest.take(8)
        .position(|&byte| byte == needle)
        .map(|length| at + length)
}

/// Whether a text contains one of two bytes.
#[inline]
pub fn has_either(bytes: &[u8], one: u8, other: u8) -> bool {
    let Some(last) = bytes.len().checked_sub(8) else {
        return bytes.iter().any(|&byte| byte == one || byte == other);
    };
    if last > NEAR_STEPS * 16 {
        return memchr::memchr2(one, other, bytes).is_some();
    }
    let mut matches = 0;
    let mut at = 0;
    while at < last {
        let eight = eight(bytes, at).unwrap_or_default();
        matches |= same(eight, one) | same(eight, other);
        at += 8;
    }
    // The last eight bytes may overlap the previous ones, which does no harm.
    let eight = eight(bytes, last).unwrap_or_default();
    matches | same(eight, one) | same(eight, other) != 0
}

/// The offset of the first byte that is not a blank. `None` if the page ends before.
#[inline]
pub fn blanks_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    while is_blank_byte(*bytes.get(at)?) {
        at += 1;
    }
    Some(at)
}

/// Whether a byte is a blank, with one table look-up.
#[inline]
pub fn is_blank_byte(byte: u8) -> bool {
    ENDS[usize::from(byte)] & BLANK != 0
}

#[inline]
pub fn ends_name(byte: u8) -> bool {
    ENDS[usize::from(byte)] & TAG_NAME != 0
}

#[inline]
pub fn ends_attribute_name(byte: u8) -> bool {
    ENDS[usize::from(byte)] & ATTRIBUTE_NAME != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rng::test_rng;

    /// For any bytes and offset, the result equals that of a bytewise search.
    #[test]
    fn first_match_equals_bytewise_search() {
        let mut rng = test_rng(3);
        for _ in 0..20_000 {
            let length = rng(60);
            // ASCII letters, bytes adjacent to those that end names, and some non-ASCII bytes.
            let bytes: Vec<u8> = (0..length)
                .map(|_| match rng(16) {
                    0 => b" \t\n\x0c\r/>=<?0-:"[rng(13)],
                    1 => u8::try_from(rng(256)).expect("a byte"),
                    _ => b'a' + u8::try_from(rng(26)).expect("a-z"),
                })
                .collect();
            let at = rng(length + 1);
            let slow = |is: &dyn Fn(u8) -> bool| (at..bytes.len()).find(|&each| is(bytes[each]));
            let is_end = |byte| is_blank(byte) || byte == b'/' || byte == b'>';
            assert_eq!(find(&bytes, at, b'<'), slow(&|byte| byte == b'<'));
            assert_eq!(find_near(&bytes, at, b'<'), slow(&|byte| byte == b'<'));
            let is_there = slow(&|byte| byte == b'<' || byte == b'?').is_some();
            assert_eq!(has_either(&bytes[at..], b'<', b'?'), is_there);
            assert_eq!(slow(&ends_name), slow(&is_end));
            let is_end = |byte| is_end(byte) || byte == b'=';
            assert_eq!(slow(&ends_attribute_name), slow(&is_end));
            assert_eq!(blanks_end(&bytes, at), slow(&|byte| !is_blank(byte)));
        }
    }
}
