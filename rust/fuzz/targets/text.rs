//! Extracts the text of any bytes as a page: trimmed, with white space normalized; for any two texts, a resemblance
//! between 0 and 1.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::html::{shingles, text};

const TYPES: [Option<&str>; 7] = [
    None,
    Some("text/html"),
    Some("text/html; charset=shift_jis"),
    Some("application/xhtml+xml"),
    Some("text/xml"),
    Some("text/plain; charset=utf-16le"),
    Some("image/gif"),
];

fuzz_target!(|body: &[u8]| {
    // The first byte selects the type and base.
    let Some((first, body)) = body.split_first() else {
        return;
    };
    let mime = TYPES[usize::from(*first) % TYPES.len()];
    let size = usize::from(*first) % 12 + 1;
    let Some(read) = text::read(body, mime, "http://h.example/d/", None) else {
        return;
    };
    // Compressed bodies lose their type.
    let may_be_packed = body.starts_with(b"\x1f\x8b");
    assert!(!read.cut || may_be_packed);
    assert!(may_be_packed || read.text.len() <= 3 * body.len());
    if mime.is_some_and(|mime| mime.contains("html")) && !may_be_packed {
        for gap in ["  ", "\n\n", " \n", "\n ", "\t", "\r", "\x0c"] {
            assert!(!read.text.contains(gap));
        }
        assert_eq!(read.text.trim_matches([' ', '\n']), read.text);
    }
    let middle = read.text.len() / 2;
    let half = (0..=middle).rfind(|&at| read.text.is_char_boundary(at));
    let (left, right) = read.text.split_at(half.unwrap_or_default());
    let share = shingles::resemblance(left, right, size);
    assert!((0.0..=1.0).contains(&share));
    assert!(share.to_bits() == shingles::resemblance(right, left, size).to_bits());
    let spaced = format!(" {}. ", read.text);
    assert!(shingles::resemblance(&read.text, &spaced, size) == 1.0);
});
