//! Percent-encoding: decodes all escapes, then writes only the necessary ones.

pub(super) const fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Decodes until nothing is left to decode: `%2541` is `%41` is `A`. Invalid escapes (`%zz`) are unchanged.
///
/// Linear for any nesting: two escapes never overlap, so the order of decoding does not matter, and inspecting the last
/// three bytes of the output after each byte finds them all.
pub(super) fn decode_fully(text: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    for &byte in text {
        out.push(byte);
        while let [.., b'%', high, low] = out[start..] {
            let (Some(high), Some(low)) = (hex_value(high), hex_value(low)) else {
                break;
            };
            out.truncate(out.len() - 3);
            out.push(high << 4 | low);
        }
    }
}

/// Whether a byte of a path or query must be escaped: bytes that would end the URL or the line of a file, and non-ASCII
/// bytes.
pub(super) const fn must_escape(byte: u8) -> bool {
    byte <= b' ' || byte >= 0x7f || byte == b'#' || byte == b'%'
}

/// Writes one escape, with digits in the case of the rule set.
pub(super) fn push_escape(byte: u8, lower_case: bool, out: &mut Vec<u8>) {
    let digits = if lower_case {
        b"0123456789abcdef"
    } else {
        b"0123456789ABCDEF"
    };
    out.extend([
        b'%',
        digits[usize::from(byte >> 4)],
        digits[usize::from(byte & 15)],
    ]);
}

#[cfg(test)]
mod tests {
    use super::decode_fully;

    fn decoded(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        decode_fully(text, &mut out);
        out
    }

    #[test]
    fn nested_escapes_are_fully_decoded() {
        assert_eq!(decoded(b"%2525252541"), b"A");
        assert_eq!(decoded(b"%2%35%341"), b"A");
        assert_eq!(decoded(b"%zz%4"), b"%zz%4");
    }

    #[test]
    fn deep_nesting_takes_linear_time() {
        let mut text = b"%".to_vec();
        text.extend(b"25".repeat(1 << 20));
        text.extend(b"41");
        assert_eq!(decoded(&text), b"A");
    }
}
