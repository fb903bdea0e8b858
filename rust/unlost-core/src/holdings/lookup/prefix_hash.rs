//! Hashes of a key's beginnings, all in one walk: a page has as many keys that could answer for it as its address has
//! segments, and an address may be long.

use super::candidates::Candidate;

/// 2^61 - 1, a prime.
const PRIME: u64 = (1 << 61) - 1;

/// Hashes keys as polynomials at a point that nobody outside knows, so that nobody can make keys that collide.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hasher {
    /// The first powers of the point, but for 1.
    powers: [u64; 4],
}

impl Hasher {
    pub(super) fn new(seed: u64) -> Self {
        let point = seed % PRIME;
        let mut powers = [point; 4];
        for i in 1..4 {
            powers[i] = reduce(u128::from(powers[i - 1]) * u128::from(point));
        }
        Self { powers }
    }

    /// The hash of a whole key.
    pub(super) fn hash(self, key: &[u8]) -> u64 {
        spread(self.go_on(0, key))
    }

    /// The hashes of candidates of a key, each as if it were written out.
    pub(super) fn hash_all(self, key: &[u8], candidates: &[Candidate], out: &mut Vec<u64>) {
        out.clear();
        let (mut at, mut state) = (0, 0);
        // What it was before the key's last byte: a root without its slash comes behind all others.
        let mut before = state;
        for candidate in candidates {
            if at < candidate.stem {
                before = self.go_on(state, &key[at..candidate.stem - 1]);
                state = self.go_on(before, &key[candidate.stem - 1..candidate.stem]);
                at = candidate.stem;
            }
            let stem = if candidate.stem < at { before } else { state };
            out.push(spread(self.go_on(stem, candidate.tail)));
        }
    }

    fn go_on(self, state: u64, bytes: &[u8]) -> u64 {
        let [x, x2, x3, x4] = self.powers.map(u128::from);
        // No byte counts as nothing, or keys could begin with any number of them.
        let digit = |byte: u8| u128::from(byte) + 1;
        // Four at a time: of products that do not wait for each other, processors make several at once.
        let mut fours = bytes.chunks_exact(4);
        let state = fours.by_ref().fold(state, |state, four| {
            let first = u128::from(state) * x4 + digit(four[0]) * x3;
            reduce(first + (digit(four[1]) * x2 + digit(four[2]) * x + digit(four[3])))
        });
        let rest = fours.remainder().iter();
        rest.fold(state, |state, &byte| {
            reduce(u128::from(state) * x + digit(byte))
        })
    }
}

/// The remainder of a number of hardly more than 122 bits.
fn reduce(number: u128) -> u64 {
    // Both parts have 61 bits, or the second a little more.
    #[allow(clippy::cast_possible_truncation)]
    let mut sum = (number as u64 & PRIME) + (number >> 61) as u64;
    while sum >= PRIME {
        sum -= PRIME;
    }
    sum
}

/// Makes all bits depend on all others: tables look at the highest and the lowest.
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
    fn candidates_hash_as_if_written_out() {
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
        let (mut candidates, mut hashes) = (Vec::new(), Vec::new());
        for key in keys {
            for rolled_up in [false, true] {
                list(key.as_bytes(), rolled_up, &mut candidates);
                of_keys.hash_all(key.as_bytes(), &candidates, &mut hashes);
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
    fn remainders_are_smaller_than_what_was_divided_by() {
        let large = u128::from(PRIME - 1) * u128::from(PRIME - 1) + 768 * u128::from(PRIME);
        for number in [large, large - 1, u128::from(PRIME), u128::from(PRIME) << 61] {
            assert_eq!(u128::from(reduce(number)), number % u128::from(PRIME));
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
