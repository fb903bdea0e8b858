//! Finds the marks of a page, 64 bytes at once: matches in tags are near, and a bit is found faster than a byte.

use super::byte_scan;

/// The number of bytes per step.
pub const LENGTH: usize = 64;

/// Bit masks of the marks: the lowest bit is the first byte.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Marks {
    /// `<`
    opens: u64,
    /// Potential ends of a name: `/`, `=`, `>`, and everything up to the blank.
    stops: u64,
    /// `"` and `'`
    quotes: u64,
}

/// Moves over a page with the marks of the current bytes.
pub struct SimdByteScanner<'t> {
    bytes: &'t [u8],
    start: usize,
    marks: Marks,
}

impl<'t> SimdByteScanner<'t> {
    pub fn new(bytes: &'t [u8]) -> Self {
        let mut window = Self {
            bytes,
            start: 0,
            marks: Marks::default(),
        };
        window.load(0);
        window
    }

    /// The offset of the next `<`, from `at` on.
    #[inline]
    pub fn open(&mut self, at: usize) -> Option<usize> {
        match self.near_open(at) {
            Some(open) => Some(open),
            None => self.far(at, b'<', |marks| marks.opens),
        }
    }

    /// The same, but only within the current bytes.
    #[inline]
    pub fn near_open(&self, at: usize) -> Option<usize> {
        self.near(at, |marks| marks.opens)
    }

    /// The offset of the quote that ends the value at `at`.
    #[inline]
    pub fn quote(&mut self, mut at: usize, quote: u8) -> Option<usize> {
        loop {
            let end = match self.near(at, |marks| marks.quotes) {
                Some(end) => end,
                None => self.far(at, quote, |marks| marks.quotes)?,
            };
            if self.bytes[end] == quote {
                return Some(end);
            }
            at = end + 1;
        }
    }

    /// The end of the tag name at `at`. `None` if the page ends in it.
    #[inline]
    pub fn tag_name_end(&mut self, at: usize) -> Option<usize> {
        self.stop(at, byte_scan::ends_name)
    }

    /// The end of the attribute name at `at`. `None` if the page ends in it.
    #[inline]
    pub fn attribute_name_end(&mut self, at: usize) -> Option<usize> {
        self.stop(at, byte_scan::ends_attribute_name)
    }

    /// The end of the unquoted value at `at`. `None` if the page ends in it.
    #[inline]
    pub fn value_end(&mut self, at: usize) -> Option<usize> {
        self.stop(at, |byte| byte == b'>' || byte_scan::is_blank_byte(byte))
    }

    #[inline]
    fn stop(&mut self, mut at: usize, ends: impl Fn(u8) -> bool) -> Option<usize> {
        loop {
            let stop = match self.near(at, |marks| marks.stops) {
                Some(stop) => stop,
                None => self.next_stop(at)?,
            };
            if ends(self.bytes[stop]) {
                return Some(stop);
            }
            at = stop + 1;
        }
    }

    /// The next of some marks, if it is within the current bytes.
    #[inline]
    fn near(&self, at: usize, needle: impl Fn(&Marks) -> u64) -> Option<usize> {
        let passed = at.wrapping_sub(self.start);
        if passed >= LENGTH {
            return None;
        }
        let rest = needle(&self.marks) >> passed;
        (rest != 0).then(|| at + rest.trailing_zeros() as usize)
    }

    /// Moves to the next of some marks if none is within the current bytes; `byte` is one of them.
    #[inline(never)]
    fn far(&mut self, at: usize, byte: u8, needle: impl Fn(&Marks) -> u64) -> Option<usize> {
        self.load(at);
        if let Some(position) = self.near(at, needle) {
            return Some(position);
        }
        let position = byte_scan::find(self.bytes, at + LENGTH, byte)?;
        self.load(position);
        Some(position)
    }

    /// Moves to the next potential end of a name.
    #[inline(never)]
    fn next_stop(&mut self, mut at: usize) -> Option<usize> {
        while at < self.bytes.len() {
            self.load(at);
            if self.marks.stops != 0 {
                return self.near(at, |marks| marks.stops);
            }
            at += LENGTH;
        }
        None
    }

    #[inline]
    fn load(&mut self, start: usize) {
        self.start = start;
        let rest = self.bytes.get(start..).unwrap_or_default();
        self.marks = match rest.first_chunk() {
            Some(bytes) => Marks::of(bytes),
            None => Marks::of_last(rest),
        };
    }
}

impl Marks {
    /// The marks of fewer bytes, at the end of a page.
    #[cold]
    fn of_last(rest: &[u8]) -> Self {
        let mut bytes = [b'x'; LENGTH];
        bytes[..rest.len()].copy_from_slice(rest);
        Self::of(&bytes)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn of(bytes: &[u8; LENGTH]) -> Self {
        sse2::marks(bytes)
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn of(bytes: &[u8; LENGTH]) -> Self {
        Self::one_by_one(bytes)
    }

    #[cfg(any(test, not(target_arch = "x86_64")))]
    fn one_by_one(bytes: &[u8; LENGTH]) -> Self {
        let bits = |is: fn(u8) -> bool| {
            let bytes = bytes.iter().rev();
            bytes.fold(0, |bits, &byte| bits << 1 | u64::from(is(byte)))
        };
        Self {
            opens: bits(|byte| byte == b'<'),
            stops: bits(|byte| byte <= b' ' || matches!(byte, b'/' | b'=' | b'>')),
            quotes: bits(|byte| matches!(byte, b'"' | b'\'')),
        }
    }
}

/// SSE2 compares sixteen bytes at once and is part of every x86-64 processor.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8,
    };

    use super::{LENGTH, Marks};

    #[inline]
    pub fn marks(bytes: &[u8; LENGTH]) -> Marks {
        let mut marks = Marks::default();
        for (nth, sixteen) in bytes.chunks_exact(16).enumerate() {
            // SAFETY: the instructions belong to SSE2, which all of x86_64 has, and the sixteen bytes that are read are
            // in bounds.
            let [opens, stops, quotes] = unsafe {
                let sixteen = _mm_loadu_si128(sixteen.as_ptr().cast());
                [opens(sixteen), stops(sixteen), quotes(sixteen)]
            };
            marks.opens |= opens << (16 * nth);
            marks.stops |= stops << (16 * nth);
            marks.quotes |= quotes << (16 * nth);
        }
        marks
    }

    #[inline]
    unsafe fn opens(bytes: __m128i) -> u64 {
        unsafe { bits(same(bytes, b'<')) }
    }

    #[inline]
    unsafe fn stops(bytes: __m128i) -> u64 {
        unsafe {
            let low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, each(b' ')), bytes);
            let slash_or_equals = _mm_or_si128(same(bytes, b'/'), same(bytes, b'='));
            let low_or_close = _mm_or_si128(low, same(bytes, b'>'));
            bits(_mm_or_si128(slash_or_equals, low_or_close))
        }
    }

    #[inline]
    unsafe fn quotes(bytes: __m128i) -> u64 {
        unsafe { bits(_mm_or_si128(same(bytes, b'"'), same(bytes, b'\''))) }
    }

    #[inline]
    unsafe fn same(bytes: __m128i, byte: u8) -> __m128i {
        unsafe { _mm_cmpeq_epi8(bytes, each(byte)) }
    }

    #[inline]
    unsafe fn each(byte: u8) -> __m128i {
        unsafe { _mm_set1_epi8(i8::from_ne_bytes([byte])) }
    }

    /// The highest bits of sixteen bytes.
    #[inline]
    unsafe fn bits(bytes: __m128i) -> u64 {
        let bits = unsafe { _mm_movemask_epi8(bytes) };
        u64::from(u32::from_ne_bytes(bits.to_ne_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rng::test_rng;

    /// Marks, bytes adjacent to them, ASCII letters, and some non-ASCII bytes.
    fn bytes(length: usize, rng: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
        let byte = |_| match rng(24) {
            0 => b"<>\"'=/ \t\n\x0c\r;?.0!#&(\x0b\0"[rng(20)],
            1 => u8::try_from(rng(256)).expect("a byte"),
            _ => b'a' + u8::try_from(rng(26)).expect("a-z"),
        };
        (0..length).map(byte).collect()
    }

    /// The SIMD marks equal those of each byte.
    #[test]
    fn simd_marks_equal_bytewise_marks() {
        let mut rng = test_rng(5);
        for _ in 0..20_000 {
            let page = bytes(LENGTH, &mut rng);
            let page: &[u8; LENGTH] = page.first_chunk().expect("as many");
            assert_eq!(Marks::of(page), Marks::one_by_one(page), "{page:?}");
        }
        let every: Vec<u8> = (0..=255).collect();
        for page in every.chunks_exact(LENGTH) {
            let page = page.first_chunk().expect("as many");
            assert_eq!(Marks::of(page), Marks::one_by_one(page));
        }
    }

    /// At any offset, forwards or backwards, the result equals that of a bytewise search.
    #[test]
    fn first_match_equals_bytewise_search() {
        let mut rng = test_rng(3);
        for _ in 0..2_000 {
            let page = bytes(rng(400), &mut rng);
            let mut window = SimdByteScanner::new(&page);
            for _ in 0..20 {
                let at = rng(page.len() + 2);
                let slow = |is: &dyn Fn(u8) -> bool| (at..page.len()).find(|&each| is(page[each]));
                let is_end = |byte| byte_scan::is_blank_byte(byte) || byte == b'>';
                match rng(6) {
                    0 => assert_eq!(window.open(at), slow(&|byte| byte == b'<')),
                    1 => assert_eq!(window.quote(at, b'"'), slow(&|byte| byte == b'"')),
                    2 => assert_eq!(window.quote(at, b'\''), slow(&|byte| byte == b'\'')),
                    3 => assert_eq!(window.tag_name_end(at), slow(&byte_scan::ends_name)),
                    4 => {
                        let end = window.attribute_name_end(at);
                        assert_eq!(end, slow(&byte_scan::ends_attribute_name));
                    }
                    _ => assert_eq!(window.value_end(at), slow(&is_end)),
                }
                if let Some(open) = window.near_open(at) {
                    assert_eq!(Some(open), slow(&|byte| byte == b'<'));
                }
            }
        }
    }
}
