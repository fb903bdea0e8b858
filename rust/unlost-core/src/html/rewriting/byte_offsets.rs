//! Maps offsets in a text to offsets in its encoded bytes.
//!
//! In every encoding that contains ASCII, except for ISO-2022-JP, some bytes are never part of a multi-byte character:
//! those below `0x40` except digits, such as blanks, quotes, brackets and commas. The text therefore contains these
//! marks in the same number and order as the bytes, even if the bytes are invalid. Every URL has such a mark before or
//! after it, with only ASCII in between.

/// Finds the marks before and after an offset, for increasing offsets.
struct Marks<'b> {
    bytes: &'b [u8],
    /// The next mark; the end, if there is none.
    next: usize,
    /// The offset after the last mark; 0 at the beginning.
    after_last: usize,
}

impl<'b> Marks<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        let mut marks = Self {
            bytes,
            next: 0,
            after_last: 0,
        };
        marks.next = marks.find(0);
        marks
    }

    fn find(&self, from: usize) -> usize {
        let rest = &self.bytes[from..];
        rest.iter()
            .position(|&byte| is_mark(byte))
            .map_or(self.bytes.len(), |length| from + length)
    }

    fn pass(&mut self) {
        self.pass_to(self.next);
    }

    fn pass_to(&mut self, mark: usize) {
        self.after_last = mark + 1;
        self.next = self.find(self.after_last);
    }
}

/// The mark that begins tags.
const TAG: u8 = b'<';

fn is_mark(byte: u8) -> bool {
    byte < 0x40 && !byte.is_ascii_digit()
}

/// The offsets in `raw` that correspond to sorted offsets in `text`. `None` for one without a mark near it.
pub fn body_offsets(text: &str, raw: &[u8], offsets: &[usize]) -> Vec<Option<usize>> {
    let bytes = text.as_bytes();
    let (mut in_text, mut in_raw) = (Marks::new(bytes), Marks::new(raw));
    let mut mapped = Vec::with_capacity(offsets.len());
    for &offset in offsets {
        // Offsets are not far from the beginning of their tag, and tags are found faster.
        let between = &bytes[in_text.after_last..offset];
        if let Some(last) = memchr::memrchr(TAG, between) {
            let nth = memchr::memchr_iter(TAG, between).count() - 1;
            let tag_start = memchr::memchr_iter(TAG, &raw[in_raw.after_last..]).nth(nth);
            in_text.pass_to(in_text.after_last + last);
            in_raw.pass_to(
                tag_start.map_or(raw.len() - 1, |tag_start| in_raw.after_last + tag_start),
            );
        }
        while in_text.next < offset {
            in_text.pass();
            in_raw.pass();
        }
        let before = &bytes[in_text.after_last..offset];
        let after = &bytes[offset..in_text.next];
        mapped.push(if before.is_ascii() {
            Some(in_raw.after_last + before.len())
        } else if after.is_ascii() {
            in_raw.next.checked_sub(after.len())
        } else {
            None
        });
    }
    mapped
}

#[cfg(test)]
mod tests {
    use encoding_rs::Encoding;

    use super::*;

    /// All encodings except those in which any byte may be part of a multi-byte character.
    const LABELS: [&str; 36] = [
        "utf-8",
        "ibm866",
        "iso-8859-2",
        "iso-8859-3",
        "iso-8859-4",
        "iso-8859-5",
        "iso-8859-6",
        "iso-8859-7",
        "iso-8859-8",
        "iso-8859-8-i",
        "iso-8859-10",
        "iso-8859-13",
        "iso-8859-14",
        "iso-8859-15",
        "iso-8859-16",
        "koi8-r",
        "koi8-u",
        "macintosh",
        "windows-874",
        "windows-1250",
        "windows-1251",
        "windows-1252",
        "windows-1253",
        "windows-1254",
        "windows-1255",
        "windows-1256",
        "windows-1257",
        "windows-1258",
        "x-mac-cyrillic",
        "gbk",
        "gb18030",
        "big5",
        "euc-jp",
        "shift_jis",
        "euc-kr",
        "x-user-defined",
    ];

    fn marks(bytes: &[u8]) -> Vec<u8> {
        bytes
            .iter()
            .copied()
            .filter(|&byte| is_mark(byte))
            .collect()
    }

    fn check(encoding: &'static Encoding, raw: &[u8]) {
        let text = encoding.decode_without_bom_handling(raw).0;
        assert_eq!(
            marks(text.as_bytes()),
            marks(raw),
            "{} {raw:?}",
            encoding.name()
        );
    }

    /// Text and bytes have the same marks, after any three bytes.
    #[test]
    fn text_and_bytes_have_the_same_marks() {
        for label in LABELS {
            let encoding = Encoding::for_label(label.as_bytes()).expect(label);
            for first in 0x7f..=255_u8 {
                for second in 0..=255_u8 {
                    check(encoding, &[first, second, b'"', b'x', first, b'<', second]);
                }
            }
            // Characters of three and four bytes, valid and invalid.
            for first in (0x80..=255_u8).step_by(3) {
                for second in [b'0', b'9', b'<', b'&', 0x41, 0x80, 0x8f, 0xa1, 0xbf, 0xfe] {
                    for third in [b'0', b'"', b'A', 0x81, 0x8e, 0xa1, 0xfe, 0xff] {
                        check(
                            encoding,
                            &[first, second, third, b'>', third, b'3', first, b'\''],
                        );
                        check(encoding, &[first, second, third, b'5', b'=', second]);
                    }
                }
            }
        }
    }

    #[test]
    fn offsets_are_found() {
        let raw = b"\x83\x5c'\x83\x5cx\x83\x5c'y";
        let text = encoding_rs::SHIFT_JIS.decode_without_bom_handling(raw).0;
        let quotes: Vec<usize> = text.match_indices('\'').map(|(at, _)| at).collect();
        let offsets = [quotes[0] + 1, quotes[1], text.len()];
        assert_eq!(
            body_offsets(&text, raw, &offsets),
            [Some(3), Some(8), Some(raw.len())]
        );
    }
}
