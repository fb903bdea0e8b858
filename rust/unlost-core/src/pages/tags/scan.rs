//! Eight bytes at once: what is looked for in a tag is near, and going to it byte by byte takes longer than all else.

use crate::pages::spans::is_blank;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// So many times eight bytes are looked at here; what is farther away is found faster by others.
const NEAR: usize = 4;

/// What a byte ends.
const TAG_NAME: u8 = 1;
const ATTRIBUTE_NAME: u8 = 2;

const ENDS: [u8; 256] = {
    let mut ends = [0; 256];
    let bytes = b" \t\n\x0c\r/>";
    let mut nth = 0;
    while nth < bytes.len() {
        ends[bytes[nth] as usize] = TAG_NAME | ATTRIBUTE_NAME;
        nth += 1;
    }
    ends[b'=' as usize] = ATTRIBUTE_NAME;
    ends
};

/// All bytes that end a name are below this one.
const ABOVE_ENDS: u64 = b'>' as u64 + 1;

#[inline]
fn eight(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(eight.try_into().ok()?))
}

/// The highest bit of each byte that is less than `limit`, which is at most 128. Only the first of them is sure.
#[inline]
fn below(eight: u64, limit: u64) -> u64 {
    eight.wrapping_sub(ONES * limit) & !eight & HIGHS
}

#[inline]
fn first(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// Where a byte is next, from `at` on.
#[inline]
pub fn find(bytes: &[u8], mut at: usize, wanted: u8) -> Option<usize> {
    for _ in 0..NEAR {
        let Some(eight) = eight(bytes, at) else {
            break;
        };
        let found = below(eight ^ (ONES * u64::from(wanted)), 1);
        if found != 0 {
            return Some(at + first(found));
        }
        at += 8;
    }
    memchr::memchr(wanted, bytes.get(at..)?).map(|length| at + length)
}

/// Where the name of a tag ends that goes on at `at`. `None` if the page ends in it.
#[inline]
pub fn tag_name_end(bytes: &[u8], at: usize) -> Option<usize> {
    name_end(bytes, at, TAG_NAME)
}

/// Where the name of an attribute ends that goes on at `at`. `None` if the page ends in it.
#[inline]
pub fn attribute_name_end(bytes: &[u8], at: usize) -> Option<usize> {
    name_end(bytes, at, ATTRIBUTE_NAME)
}

#[inline]
fn name_end(bytes: &[u8], mut at: usize, what: u8) -> Option<usize> {
    while let Some(eight) = eight(bytes, at) {
        let low = below(eight, ABOVE_ENDS);
        if low == 0 {
            at += 8;
            continue;
        }
        at += first(low);
        // Digits and dashes are as low, and end nothing.
        if ENDS[usize::from(bytes[at])] & what != 0 {
            return Some(at);
        }
        at += 1;
    }
    while ENDS[usize::from(*bytes.get(at)?)] & what == 0 {
        at += 1;
    }
    Some(at)
}

/// Where the first byte is that is no blank. `None` if the page ends before.
#[inline]
pub fn blanks_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    while is_blank(*bytes.get(at)?) {
        at += 1;
    }
    Some(at)
}

pub fn ends_name(byte: u8) -> bool {
    ENDS[usize::from(byte)] & TAG_NAME != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the bytes are and wherever it begins, what is found is what going byte by byte finds.
    #[test]
    fn the_first_is_found() {
        let mut state = 3_u64;
        let mut dice = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for _ in 0..20_000 {
            let length = dice() % 60;
            // Letters, bytes around those that end names, and some that are no ASCII.
            let bytes: Vec<u8> = (0..length)
                .map(|_| match dice() % 16 {
                    0 => b" \t\n\x0c\r/>=<?0-:"[usize::try_from(dice() % 13).expect("small")],
                    1 => u8::try_from(dice() % 256).expect("a byte"),
                    _ => b'a' + u8::try_from(dice() % 26).expect("a letter"),
                })
                .collect();
            let at = usize::try_from(dice() % (length + 1)).expect("small");
            let slow = |is: &dyn Fn(u8) -> bool| (at..bytes.len()).find(|&each| is(bytes[each]));
            let is_end = |byte| is_blank(byte) || byte == b'/' || byte == b'>';
            assert_eq!(find(&bytes, at, b'<'), slow(&|byte| byte == b'<'));
            assert_eq!(tag_name_end(&bytes, at), slow(&is_end), "{bytes:?}");
            let found = attribute_name_end(&bytes, at);
            assert_eq!(found, slow(&|byte| is_end(byte) || byte == b'='));
            assert_eq!(blanks_end(&bytes, at), slow(&|byte| !is_blank(byte)));
        }
    }
}
