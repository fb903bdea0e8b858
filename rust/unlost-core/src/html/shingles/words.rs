//! The words of a text.
//!
//! A word is a run of letters and digits, in lower case. In scripts without spaces, each character is a word.

use std::sync::LazyLock;

/// The hashes of a text's words, in order.
pub fn hashes(text: &str) -> Vec<u64> {
    let bytes = text.as_bytes();
    let mut hashes = Vec::with_capacity(text.len() / 8);
    let mut lower = String::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let class = loop {
            match bytes.get(at).map(|&byte| CLASSES[usize::from(byte)]) {
                Some(LETTER) => at += 1,
                Some(class) => break class,
                None => break PARTS,
            }
        };
        if class == OTHER {
            at = other_word(text, start, &mut lower, &mut hashes);
            continue;
        }
        if at > start {
            hashes.push(hash_of_ascii(bytes, start, at));
        }
        at += 1;
    }
    hashes
}

/// Classes of bytes: ASCII letters and digits, or one of these.
const CLASSES: [u8; 256] = classes();
const PARTS: u8 = 0;
const LETTER: u8 = 1;
/// Part of a non-ASCII character.
const OTHER: u8 = 2;

const fn classes() -> [u8; 256] {
    let mut classes = [PARTS; 256];
    let mut byte = 0_u8;
    loop {
        classes[byte as usize] = if !byte.is_ascii() {
            OTHER
        } else if byte.is_ascii_alphanumeric() {
            LETTER
        } else {
            PARTS
        };
        if byte == u8::MAX {
            return classes;
        }
        byte += 1;
    }
}

/// For most alphabets, letters and digits in lower case; zero for other characters, or those with a complex mapping.
static SIMPLE: LazyLock<[char; 0x800]> = LazyLock::new(|| {
    std::array::from_fn(|code| {
        let character = u32::try_from(code).ok().and_then(char::from_u32);
        let character =
            character.filter(|&character| character.is_alphanumeric() && character != 'Σ');
        let mut lower = character.into_iter().flat_map(char::to_lowercase);
        match (lower.next(), lower.next()) {
            (Some(only), None) => only,
            _ => '\0',
        }
    })
});

/// Adds the hash of the non-ASCII word that begins at `start`, if there is one; returns its end.
fn other_word(text: &str, start: usize, lower: &mut String, hashes: &mut Vec<u64>) -> usize {
    lower.clear();
    let simple = &*SIMPLE;
    let mut has_sigma = false;
    let mut end = text.len();
    let mut alone = None;
    for (offset, character) in text[start..].char_indices() {
        let after = start + offset + character.len_utf8();
        if let Some(&small) = simple.get(character as usize)
            && small != '\0'
        {
            lower.push(small);
        } else if is_unspaced(character) {
            alone = character.is_alphanumeric().then_some(character);
            end = after;
            break;
        } else if character.is_alphanumeric() {
            has_sigma |= character == 'Σ';
            lower.extend(character.to_lowercase());
        } else {
            end = after;
            break;
        }
    }
    if has_sigma {
        // Sigma has another form at the end of a word.
        *lower = text[start..end]
            .trim_end_matches(|character: char| {
                is_unspaced(character) || !character.is_alphanumeric()
            })
            .to_lowercase();
    }
    if !lower.is_empty() {
        hashes.push(hash_of(lower));
    }
    if let Some(character) = alone {
        hashes.push(hash_of(character.encode_utf8(&mut [0; 4])));
    }
    end
}

/// Whether a character is Han, Hiragana, Katakana, Thai, Lao, Khmer or Myanmar, by Unicode block. None of them has
/// capitals.
fn is_unspaced(character: char) -> bool {
    matches!(
        u32::from(character),
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

/// The hash of a word, stable across machines and versions. Different words of up to eight bytes have different hashes.
fn hash_of(word: &str) -> u64 {
    let bytes = word.as_bytes();
    hash_of_pieces(bytes.len(), |from, to| {
        let piece = bytes[from..to].iter();
        piece.fold(0, |packed, &byte| packed << 8 | u64::from(byte))
    })
}

/// The same for an ASCII word in lower case within a text.
fn hash_of_ascii(text: &[u8], start: usize, end: usize) -> u64 {
    /// Lower-cases letters, and leaves digits unchanged.
    const SMALL: u64 = 0x2020_2020_2020_2020;
    hash_of_pieces(end - start, |from, to| {
        let missing = 8 - (to - from);
        // In one step if the text continues after the word, as it nearly always does.
        if let Some(piece) = text[start + from..].first_chunk() {
            return (u64::from_be_bytes(*piece) | SMALL) >> (8 * missing);
        }
        let mut piece = [0; 8];
        piece[missing..].copy_from_slice(&text[start + from..start + to]);
        u64::from_be_bytes(piece) | SMALL >> (8 * missing)
    })
}

/// The hash of a word of `len` bytes; `packed` returns those between two offsets, at most eight, as one number.
fn hash_of_pieces(len: usize, packed: impl Fn(usize, usize) -> u64) -> u64 {
    let mut hash = 0;
    let mut from = 0;
    loop {
        let to = len.min(from + 8);
        hash = mixed(hash ^ packed(from, to));
        if to == len {
            return hash;
        }
        from = to;
    }
}

/// The finaliser of `SplitMix64`: injective, and every bit of the result depends on every bit of the value.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
