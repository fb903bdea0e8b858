//! The words of a text.
//!
//! A word is a run of letters and digits, in lower case. In scripts that are written without spaces, each letter is one.

use std::sync::LazyLock;

/// The hashes of a text's words, in their order.
pub fn hashes(text: &str) -> Vec<u64> {
    let bytes = text.as_bytes();
    let mut found = Vec::with_capacity(text.len() / 8);
    let mut lower = String::new();
    let mut at = 0;
    'words: while at < bytes.len() {
        let start = at;
        let mut word = WordHash::default();
        while let Some(&byte) = bytes.get(at) {
            match CLASSES[usize::from(byte)] {
                PARTS => break,
                OTHER => {
                    at = other_word(text, start, &mut lower, &mut found);
                    continue 'words;
                }
                letter => word.push(letter),
            }
            at += 1;
        }
        if at > start {
            found.push(word.finish());
        }
        at += 1;
    }
    found
}

/// What bytes are: letters and digits of ASCII in lower case, or one of these.
const CLASSES: [u8; 256] = classes();
const PARTS: u8 = 0;
/// Part of a letter, or of something else, that is not in ASCII.
const OTHER: u8 = 0xff;

const fn classes() -> [u8; 256] {
    let mut classes = [PARTS; 256];
    let mut byte = 0_u8;
    loop {
        classes[byte as usize] = if !byte.is_ascii() {
            OTHER
        } else if byte.is_ascii_alphanumeric() {
            byte.to_ascii_lowercase()
        } else {
            PARTS
        };
        if byte == u8::MAX {
            return classes;
        }
        byte += 1;
    }
}

/// Of the scripts that most alphabets are of, letters and digits in lower case; zero for what is none, or no simple one.
static SIMPLE: LazyLock<[char; 0x800]> = LazyLock::new(|| {
    std::array::from_fn(|code| {
        let letter = u32::try_from(code).ok().and_then(char::from_u32);
        let letter = letter.filter(|&letter| letter.is_alphanumeric() && letter != 'Σ');
        let mut lower = letter.into_iter().flat_map(char::to_lowercase);
        match (lower.next(), lower.next()) {
            (Some(only), None) => only,
            _ => '\0',
        }
    })
});

/// Adds the hash of what begins at `start`, which is not all ASCII, if it is a word; says where it ends.
fn other_word(text: &str, start: usize, lower: &mut String, found: &mut Vec<u64>) -> usize {
    lower.clear();
    let simple = &*SIMPLE;
    let mut has_sigma = false;
    let mut end = text.len();
    let mut alone = None;
    for (offset, letter) in text[start..].char_indices() {
        let after = start + offset + letter.len_utf8();
        if let Some(&small) = simple.get(letter as usize)
            && small != '\0'
        {
            lower.push(small);
        } else if is_unspaced(letter) {
            alone = letter.is_alphanumeric().then_some(letter);
            end = after;
            break;
        } else if letter.is_alphanumeric() {
            has_sigma |= letter == 'Σ';
            lower.extend(letter.to_lowercase());
        } else {
            end = after;
            break;
        }
    }
    if has_sigma {
        // It has another form at the end of a word.
        *lower = text[start..end]
            .trim_end_matches(|letter: char| is_unspaced(letter) || !letter.is_alphanumeric())
            .to_lowercase();
    }
    if !lower.is_empty() {
        found.push(hash_of(lower));
    }
    if let Some(letter) = alone {
        found.push(hash_of(letter.encode_utf8(&mut [0; 4])));
    }
    end
}

/// Whether a character is of Han, Hiragana, Katakana, Thai, Lao, Khmer or Myanmar, by the blocks of Unicode. None of them
/// has capitals.
fn is_unspaced(letter: char) -> bool {
    matches!(
        u32::from(letter),
        0x0e00..=0x0eff // Thai, Lao
        | 0x1000..=0x109f // Myanmar
        | 0x1780..=0x17ff // Khmer
        | 0x2e80..=0x2fdf // radicals
        | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3031..=0x303c // marks and numbers of Han and Kana
        | 0x3040..=0x30ff // Hiragana, Katakana
        | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf
        | 0x4e00..=0x9fff // Han
        | 0xa9e0..=0xa9ff // Myanmar
        | 0xaa60..=0xaa7f
        | 0xf900..=0xfaff // Han
        | 0xff66..=0xff9f // Katakana of half the width
        | 0x116d0..=0x116ff // Myanmar
        | 0x1aff0..=0x1b16f // Kana
        | 0x20000..=0x3ffff // Han
    )
}

fn hash_of(word: &str) -> u64 {
    let mut hash = WordHash::default();
    word.bytes().for_each(|byte| hash.push(byte));
    hash.finish()
}

/// The hash of a word, the same everywhere and always. Different words of up to eight bytes have different ones.
#[derive(Default)]
struct WordHash {
    before: u64,
    /// The last bytes, up to eight; none of them is zero.
    last: u64,
}

impl WordHash {
    fn push(&mut self, byte: u8) {
        // With a byte at its upper end, there is no room for another one.
        if self.last >> 56 != 0 {
            self.before = mixed(self.before ^ self.last);
            self.last = 0;
        }
        self.last = self.last << 8 | u64::from(byte);
    }

    fn finish(self) -> u64 {
        mixed(self.before ^ self.last)
    }
}

/// Every bit of the result depends on every bit of the value, and no two values have the same: the finaliser of
/// `SplitMix64`.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
