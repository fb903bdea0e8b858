//! Sorted names: made-up words and numbers, each after the previous one.

use super::random::Random;

/// In byte order, like the vowels, so that syllables sort like their numbers.
const CONSONANTS: [u8; 20] = *b"bcdfghjklmnpqrstvwxz";
const VOWELS: [u8; 5] = *b"aeiou";
const SYLLABLES: u64 = 100;

/// The ratio of possible names to names, so that names are not dense and words not long.
const SPARSENESS: u64 = 20;

/// The names of siblings. All begin with the same number of distinct syllables or digits: names stay sorted with any
/// suffix, and none is a prefix of another.
pub(super) struct Labels {
    is_number: bool,
    width: u32,
    /// The first unused position.
    next: u64,
    end: u64,
}

impl Labels {
    /// Words for at most `count` siblings.
    pub(super) fn words(count: u64) -> Self {
        let mut width = 1;
        let mut end = SYLLABLES;
        while end < count.saturating_mul(SPARSENESS) && width < 9 {
            width += 1;
            end *= SYLLABLES;
        }
        Self {
            is_number: false,
            width,
            next: 0,
            end,
        }
    }

    /// Numbers without leading zeros for at most `count` siblings.
    pub(super) fn numbers(count: u64) -> Self {
        let mut width = 1;
        let mut start = 1;
        while start * 9 < count.saturating_mul(2) && width < 18 {
            width += 1;
            start *= 10;
        }
        Self {
            is_number: true,
            width,
            next: start,
            end: start * 10,
        }
    }

    /// Appends the next name. `expected` names are expected from here on, and at most `at_most`, for which there is
    /// always room.
    pub(super) fn push(
        &mut self,
        expected: u64,
        at_most: u64,
        random: &mut Random,
        out: &mut Vec<u8>,
    ) {
        let left = self.end - self.next;
        let gap = random.below((2 * (left / (expected + 1))).max(1));
        let position = self.next + gap.min(left.saturating_sub(at_most));
        self.next = position + 1;
        if self.is_number {
            out.extend_from_slice(position.to_string().as_bytes());
        } else {
            push_syllables(position, self.width, out);
        }
    }
}

/// A number as `count` syllables, which sort like the numbers.
#[allow(clippy::cast_possible_truncation)] // below 100
pub(super) fn push_syllables(number: u64, count: u32, out: &mut Vec<u8>) {
    let start = out.len();
    let mut rest = number;
    for _ in 0..count {
        let syllable = (rest % SYLLABLES) as usize;
        rest /= SYLLABLES;
        out.extend([VOWELS[syllable % 5], CONSONANTS[syllable / 5]]);
    }
    out[start..].reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stay_sorted_with_any_suffix() {
        let mut random = Random::new(1);
        for count in [1, 5, 6, 30, 5_000] {
            for mut labels in [Labels::words(count), Labels::numbers(count)] {
                let mut last = Vec::new();
                for i in 0..count {
                    let mut name = Vec::new();
                    // Fewer expected than actual names: they become dense, but always fit.
                    labels.push((count - i) / 3, count - i, &mut random, &mut name);
                    assert!(last < name && !name.starts_with(&last) || i == 0);
                    last = name;
                }
            }
        }
    }

    #[test]
    fn syllables_sort_like_their_numbers() {
        for (number, word) in [(0, "baba"), (1, "babe"), (5, "baca"), (9_999, "zuzu")] {
            let mut out = Vec::new();
            push_syllables(number, 2, &mut out);
            assert_eq!(out, word.as_bytes());
        }
    }
}
