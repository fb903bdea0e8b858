//! Pseudo-random numbers that are the same on every machine.

/// How fast a heavy tail falls. Only exponents that square roots can express: `sqrt`, unlike `powf`, is the same to the
/// last bit on every machine (IEEE 754).
#[derive(Debug, Clone, Copy)]
pub(super) enum Law {
    /// P(more than x) falls with x^-2.
    Square,
    /// P(more than x) falls with x^-1.6: fewer, larger values.
    Heavy,
}

/// A Pareto distribution of 1, 2, 3 …
#[derive(Debug, Clone, Copy)]
pub(super) struct ParetoTail {
    pub(super) law: Law,
    /// Fitted to a mean: for `Square`, about 0.55 less than it.
    pub(super) scale: f64,
}

/// The maximum value: a draw is never a sizeable part of an index by itself.
const MAX_DRAW: f64 = 1e5;

const TWO_TO_MINUS_53: f64 = 1.0 / 9_007_199_254_740_992.0;

/// xoshiro256**, seeded by `SplitMix64`, both as published by their authors.
pub(super) struct Random([u64; 4]);

/// The next number of `SplitMix64`.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| split_mix(&mut state)))
    }

    /// 64 random bits.
    pub(super) fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `end`, which is not 0. Its bias is below `end` / 2^64.
    #[allow(clippy::cast_possible_truncation)] // the upper half of 128 bits
    pub(super) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// True with this probability.
    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.unit() <= share
    }

    /// Above 0, at most 1.
    #[allow(clippy::cast_precision_loss)] // 53 bits fit
    fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 * TWO_TO_MINUS_53
    }

    /// A value of the distribution, at least 1.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from 0 to `MAX_DRAW`
    pub(super) fn draw(&mut self, tail: ParetoTail) -> u64 {
        let root = self.unit().sqrt();
        let power = match tail.law {
            Law::Square => root,
            Law::Heavy => root * root.sqrt().sqrt(),
        };
        1 + (tail.scale * (1.0 / power - 1.0)).min(MAX_DRAW) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generators_match_published_vectors() {
        // From Vigna's splitmix64.c for the seed 1234567, as listed by Rosetta Code and other implementations.
        let mut state = 1_234_567;
        assert_eq!(
            [(); 5].map(|()| split_mix(&mut state)),
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
        // From xoshiro256starstar.c for the state 1, 2, 3, 4, as in the tests of the crate rand_xoshiro.
        let mut random = Random([1, 2, 3, 4]);
        assert_eq!(
            [(); 6].map(|()| random.bits()),
            [
                11_520,
                0,
                1_509_978_240,
                1_215_971_899_390_074_240,
                1_216_172_134_540_287_360,
                607_988_272_756_665_600,
            ]
        );
    }

    #[test]
    fn draws_have_the_fitted_mean() {
        let mut random = Random::new(7);
        for (law, scale, mean) in [(Law::Square, 2.197, 2.77), (Law::Heavy, 4.814, 8.53)] {
            let tail = ParetoTail { law, scale };
            let total: u64 = (0..1_000_000).map(|_| random.draw(tail)).sum();
            let expected = mean * 1e6;
            #[allow(clippy::cast_precision_loss)]
            let off = (total as f64 - expected).abs() / expected;
            assert!(off < 0.05, "{total}");
        }
    }
}
