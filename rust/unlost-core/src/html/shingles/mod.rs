//! The resemblance of two texts: the share of common shingles, runs of `size` words.

mod words;

/// An odd number without a pattern (the digits of the golden ratio), so that no power of it is small.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// The common shingles as a share of all distinct shingles of both texts: 0 to 1, and 1 if there are none.
///
/// A shingle is a run of `size` words; of a shorter text, all its words; a text without words has none. Each counts
/// once. Shingles are identified by 64 bits. `size` is at least 1.
#[must_use]
pub fn resemblance(first: &str, second: &str, size: usize) -> f64 {
    if first == second {
        return 1.0;
    }
    share(&shingles(first, size), &shingles(second, size))
}

/// The sorted, unique hashes of a text's shingles.
fn shingles(text: &str, size: usize) -> Vec<u64> {
    let mut hashes = words::hashes(text);
    into_runs(&mut hashes, size);
    hashes = sorted(&hashes);
    hashes.dedup();
    hashes
}

/// Replaces the hash of each run's first word by that of the run: a polynomial whose coefficients are the words'
/// hashes, computed incrementally for any run length. The words' hashes are as good as random, so collisions of runs
/// are as unlikely as those of random numbers. (Colliding runs of 2048 words and more could be crafted.)
fn into_runs(hashes: &mut Vec<u64>, size: usize) {
    let size = size.clamp(1, hashes.len().max(1));
    let (mut run, mut power) = (0_u64, 1_u64);
    for &word in hashes.iter().take(size) {
        run = run.wrapping_mul(BASE).wrapping_add(word);
        power = power.wrapping_mul(BASE);
    }
    let runs = (hashes.len() + 1).saturating_sub(size).min(hashes.len());
    for first in 0..runs {
        let left = std::mem::replace(&mut hashes[first], run);
        let next = hashes.get(first + size).copied().unwrap_or_default();
        run = run
            .wrapping_mul(BASE)
            .wrapping_add(next)
            .wrapping_sub(left.wrapping_mul(power));
    }
    hashes.truncate(runs);
}

/// Sorts hashes. They are as good as random, so the first bits determine a bucket for each, with few per bucket.
/// Crafted ones are sorted there like any others.
fn sorted(hashes: &[u64]) -> Vec<u64> {
    let bits = hashes.len().max(2).ilog2();
    let bucket = |hash: u64| usize::try_from(hash >> (64 - bits)).unwrap_or_default();
    let mut ends = vec![0_usize; (1 << bits) + 1];
    for &hash in hashes {
        ends[bucket(hash) + 1] += 1;
    }
    for at in 1..ends.len() {
        ends[at] += ends[at - 1];
    }
    let mut sorted = vec![0; hashes.len()];
    // Each entry moves from the start of its bucket to its end, which is the start of the next one.
    for &hash in hashes {
        let end = &mut ends[bucket(hash)];
        sorted[*end] = hash;
        *end += 1;
    }
    let mut start = 0;
    for &end in &ends[..1 << bits] {
        sorted[start..end].sort_unstable();
        start = end;
    }
    sorted
}

/// The common elements of two sorted lists, as a share of all distinct ones.
fn share(first: &[u64], second: &[u64]) -> f64 {
    let (mut shared, mut left, mut right) = (0, 0, 0);
    while left < first.len() && right < second.len() {
        let (one, other) = (first[left], second[right]);
        shared += usize::from(one == other);
        left += usize::from(one <= other);
        right += usize::from(other <= one);
    }
    let all = first.len() + second.len() - shared;
    if all == 0 {
        return 1.0;
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "texts have fewer words than 2^53"
    )]
    let share = shared as f64 / all as f64;
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_sorted_for_any_input() {
        let random = |count: u64| (0..count).map(|number| number.wrapping_mul(BASE)).collect();
        let lists: [Vec<u64>; 7] = [
            vec![],
            vec![7],
            vec![u64::MAX, 0],
            vec![3, 2, 1, 3, 2, 1],
            (0..1000).rev().collect(),
            random(1000),
            random(1024),
        ];
        for list in lists {
            let mut expected = list.clone();
            expected.sort_unstable();
            assert_eq!(sorted(&list), expected);
        }
    }
}
