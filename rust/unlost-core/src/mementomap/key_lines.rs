//! Keys in one text, one per line.

/// The lines of a text without their ends. Text after the last line end is a line.
pub fn key_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest);
        let line = &rest[..end.unwrap_or(rest.len())];
        rest = &rest[end.map_or(rest.len(), |end| end + 1)..];
        Some(line)
    })
}

/// Splits a text at line ends into pieces of at least `min_bytes` bytes, except for the last one.
pub fn shares(text: &[u8], min_bytes: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let from = min_bytes.saturating_sub(1).min(rest.len());
        let end = memchr::memchr(b'\n', &rest[from..]).map_or(rest.len(), |end| from + end + 1);
        let (share, tail_part) = rest.split_at(end);
        rest = tail_part;
        Some(share)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_lines_equal_split_lines() {
        for text in ["", "\n", "a", "a\n", "a\nb", "\n\na\n\n", "a\r\nb\r\n"] {
            let expected: Vec<&[u8]> = text.split_terminator('\n').map(str::as_bytes).collect();
            assert_eq!(key_lines(text.as_bytes()).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn shares_lose_nothing_and_end_at_line_ends() {
        let text = b"a\nbcd\n\nefghij\nk";
        for min_bytes in 0..20 {
            let parts: Vec<&[u8]> = shares(text, min_bytes).collect();
            assert_eq!(parts.concat(), text);
            for part in &parts[..parts.len() - 1] {
                assert!(part.ends_with(b"\n") && part.len() >= min_bytes);
            }
        }
    }
}
