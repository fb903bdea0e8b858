//! Parses any bytes as a date: none, or one that round-trips; and as dates of a filter.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::memento::httpdate;
use unlost_core::mementomap::filter::DateRange;

fuzz_target!(|text: &[u8]| {
    for digits in [
        httpdate::parse(text),
        httpdate::parse_iso(text),
        httpdate::from_digits(text),
    ] {
        let Some(digits) = digits else {
            continue;
        };
        assert!(digits.iter().all(u8::is_ascii_digit));
        let written = httpdate::to_http(&digits);
        assert_eq!(httpdate::parse(&written), Some(digits));
        assert_eq!(
            httpdate::parse_iso(&httpdate::to_iso(&digits)),
            Some(digits)
        );
        let seconds = httpdate::to_seconds(&digits);
        // Between the years 0 and 9999.
        assert!((-62_167_219_200..253_402_300_800).contains(&seconds));
    }
    let (first, last) = text.split_at(text.len().min(14));
    if let Some(range) = DateRange::of(first, last) {
        assert_eq!(range.get(), Some((first, last)));
    }
});
