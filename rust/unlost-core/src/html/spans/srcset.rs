//! The URLs in a `srcset`.

use std::ops::Range;

use super::is_blank;

/// The ranges of the URLs, parsed as a candidate list of the HTML standard; includes candidates with invalid sizes.
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
            // A comma at the end of the URL ends the candidate; otherwise its sizes follow, in which commas within
            // brackets do not count.
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
