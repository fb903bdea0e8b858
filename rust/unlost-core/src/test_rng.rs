//! Deterministic pseudo-random numbers for tests.

/// Returns a generator of numbers from 0 up to, but not including, its argument.
pub(crate) fn test_rng(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |sides| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % sides
    }
}
