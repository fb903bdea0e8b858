//! The addresses in a `srcset`.

use std::ops::Range;

use super::is_blank;

/// Where the addresses are, as the HTML standard reads a list of candidates; also of candidates whose sizes make no sense.
pub fn urls(value: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = value.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            while at < bytes.len() && (is_blank(bytes[at]) || bytes[at] == b',') {
                at += 1;
            }
            let start = at;
            while at < bytes.len() && !is_blank(bytes[at]) {
                at += 1;
            }
            if start == at {
                return None;
            }
            let mut end = at;
            while end > start && bytes[end - 1] == b',' {
                end -= 1;
            }
            // A comma at the end of the address ends the candidate; else its sizes follow, where a comma in brackets does not.
            if end == at {
                let mut inside = false;
                while at < bytes.len() && (inside || bytes[at] != b',') {
                    inside = match bytes[at] {
                        b'(' => true,
                        b')' => false,
                        _ => inside,
                    };
                    at += 1;
                }
            }
            if end > start {
                return Some(start..end);
            }
        }
    })
}
