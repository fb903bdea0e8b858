//! Hashes of all candidate prefixes of a key in one pass: a page has as many candidates as its URL has segments, and a
//! URL may be long.

use super::candidates::Candidate;

/// 2^61 - 1, a prime.
const PRIME: u64 = (1 << 61) - 1;

/// Bytes per digit: the largest such number is below the prime.
const DIGIT: usize = 7;

/// Hashes keys as polynomials at a secret point, so that collisions cannot be crafted. Digits are seven bytes each, the
/// last one fewer, followed by the length, otherwise trailing zeros would not count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hasher {
    point: u64,
}

impl Hasher {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            point: seed % PRIME,
        }
    }

    /// The hash of a whole key.
    pub(super) fn hash(self, key: &[u8]) -> u64 {
        let digits = key.chunks(DIGIT).map(digit);
        let state = digits.fold(0, |state, digit| self.mix_digit(state, digit));
        self.end(state, key.len())
    }

    /// The hashes of candidates of a key, each as if it were written out. `digits` is reused memory.
    pub(super) fn hash_all(
        self,
        key: &[u8],
        candidates: &[Candidate],
        digits: &mut Vec<(u64, u64)>,
        out: &mut Vec<u64>,
    ) {
        // Each digit, and the state before it; the last one may be empty.
        digits.clear();
        let mut state = 0;
        let mut whole = key.chunks_exact(DIGIT);
        for bytes in whole.by_ref() {
            let digit = digit(bytes);
            digits.push((digit, state));
            state = self.mix_digit(state, digit);
        }
        digits.push((digit(whole.remainder()), state));
        out.clear();
        out.extend(candidates.iter().map(|candidate| {
            let (digit, mut state) = digits[candidate.stem / DIGIT];
            let start = candidate.stem % DIGIT;
            let len = start + candidate.tail.len();
            // The stem's part of its last digit, and the tail, which together may be more than one digit.
            let stem = u128::from(digit & ((1 << (8 * start)) - 1));
            let tail = candidate.tail.iter().rev();
            let tail = tail.fold(0, |number, &byte| number << 8 | u128::from(byte));
            let rest = stem | tail << (8 * start);
            #[allow(clippy::cast_possible_truncation)]
            if len > 0 {
                state = self.mix_digit(state, rest as u64 & ((1 << (8 * DIGIT)) - 1));
                if len > DIGIT {
                    state = self.mix_digit(state, (rest >> (8 * DIGIT)) as u64);
                }
            }
            self.end(state, candidate.stem + candidate.tail.len())
        }));
    }

    /// From numbers below 2^62 to one below 2^62, not fully reduced.
    fn mix_digit(self, state: u64, digit: u64) -> u64 {
        let number = u128::from(state) * u128::from(self.point) + u128::from(digit);
        #[allow(clippy::cast_possible_truncation)]
        let sum = (number as u64 & PRIME) + (number >> 61) as u64;
        // The second part may have 63 bits.
        (sum & PRIME) + (sum >> 61)
    }

    fn end(self, state: u64, len: usize) -> u64 {
        let last = self.mix_digit(state, len as u64 & PRIME);
        spread(if last >= PRIME { last - PRIME } else { last })
    }
}

/// Up to seven bytes as a number.
fn digit(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Makes all bits depend on all others: hash tables use the highest and the lowest.
fn spread(state: u64) -> u64 {
    let product = u128::from(state) * 0x9e37_79b9_7f4a_7c15;
    #[allow(clippy::cast_possible_truncation)]
    let folded = (product >> 64) as u64 ^ product as u64;
    folded
}

#[cfg(test)]
mod tests {
    use super::super::candidates::list;
    use super::*;

    #[test]
    fn candidate_hash_equals_hash_of_the_written_key() {
        let keys = [
            "com,example,a)/",
            "com,example,a)/b/c.html",
            "com,example,a)/b//c/",
            "com,example:8080)/a-long-segment-of-many-bytes/x",
            "localhost)/",
            "1.2.3.4)/a",
            "com)",
            "*",
            "",
        ];
        let of_keys = Hasher::new(7);
        let (mut candidates, mut digits, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
        for key in keys {
            for is_rolled_up in [false, true] {
                list(key.as_bytes(), is_rolled_up, &mut candidates);
                of_keys.hash_all(key.as_bytes(), &candidates, &mut digits, &mut hashes);
                assert_eq!(candidates.len(), hashes.len());
                for (candidate, hash) in candidates.iter().zip(&hashes) {
                    let mut whole = Vec::new();
                    candidate.write(key.as_bytes(), &mut whole);
                    assert_eq!(of_keys.hash(&whole), *hash, "{candidate:?} of {key}");
                }
            }
        }
    }

    #[test]
    fn hash_is_the_polynomial_of_its_digits() {
        let point = 0x1234_5678_9abc_def0 % PRIME;
        let mut key = vec![0xff; 40];
        key.extend([0, 0, 1, 0]);
        for len in 0..key.len() {
            let key = &key[..len];
            let by_hand = key
                .chunks(DIGIT)
                .map(|bytes| {
                    let number = bytes.iter().rev();
                    number.fold(0, |number, &byte| number << 8 | u64::from(byte))
                })
                .chain([len as u64])
                .fold(0, |state, digit| {
                    (state * u128::from(point) + u128::from(digit)) % u128::from(PRIME)
                });
            let by_hand = u64::try_from(by_hand).expect("less than the prime");
            assert_eq!(Hasher::new(point).hash(key), spread(by_hand), "{len} bytes");
        }
    }

    #[test]
    fn similar_keys_hash_differently() {
        let of_keys = Hasher::new(7);
        let keys = [
            "a",
            "a\0",
            "a/",
            "a//",
            "/a",
            "b",
            "",
            "a,",
            "aaaaaaaa",
            "aaaaaaaa\0",
        ];
        let mut hashes: Vec<u64> = keys
            .iter()
            .map(|key| of_keys.hash(key.as_bytes()))
            .collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), keys.len());
    }
}
