//! A sample of distinct items, independent of their order and frequency: those with the lowest hashes.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// The data of the items with the lowest hashes. An item in the sample has all its observations, since an item that
/// left the sample cannot return.
#[derive(Debug, Clone)]
pub struct BottomSample<T> {
    items: HashMap<u64, T, FixedState>,
    /// Only items with lower hashes are in the sample.
    below: u64,
    min_size: usize,
}

impl<T> BottomSample<T> {
    /// Creates a sample of at least `min_size` items, or all if there are fewer, and of less than twice as many.
    #[must_use]
    pub fn new(min_size: usize) -> Self {
        Self {
            items: HashMap::default(),
            below: u64::MAX,
            min_size: min_size.max(1),
        }
    }

    /// The data of the item with this hash, created by `make`, if it is in the sample.
    pub fn add(&mut self, hash: u64, make: impl FnOnce() -> T) -> Option<&mut T> {
        if hash >= self.below {
            return None;
        }
        self.items.entry(hash).or_insert_with(make);
        if self.items.len() >= 2 * self.min_size {
            self.evict();
        }
        self.items.get_mut(&hash)
    }

    fn evict(&mut self) {
        let mut hashes: Vec<u64> = self.items.keys().copied().collect();
        let (_, middle, _) = hashes.select_nth_unstable(self.min_size);
        let below = *middle;
        self.below = below;
        self.items.retain(|hash, _| *hash < below);
    }

    /// The sampled share of all items.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn share(&self) -> f64 {
        self.below as f64 / u64::MAX as f64
    }

    /// The items of the sample.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.items.values()
    }

    /// The items with their hashes.
    pub fn pairs(&self) -> impl Iterator<Item = (u64, &T)> {
        self.items.iter().map(|(hash, thing)| (*hash, thing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mementomap::filter::xxh64;

    #[test]
    #[allow(clippy::cast_precision_loss)]
    fn lowest_hashes_keep_all_their_observations() {
        // Each item is added three times, the second time in reverse order.
        let things: Vec<u64> = (0..1000_u64).map(|n| xxh64(&n.to_le_bytes())).collect();
        let mut sample = BottomSample::new(10);
        for &hash in things.iter().chain(things.iter().rev()).chain(&things) {
            if let Some(count) = sample.add(hash, || 0) {
                *count += 1;
            }
        }
        let mut items: Vec<u64> = sample.pairs().map(|(hash, _)| hash).collect();
        items.sort_unstable();
        let mut lowest = things;
        lowest.sort_unstable();
        assert!((10..20).contains(&items.len()), "{}", items.len());
        assert_eq!(items, lowest[..items.len()]);
        assert!(sample.values().all(|&count| count == 3));
        let all = items.len() as f64 / sample.share();
        assert!((300.0..3000.0).contains(&all), "{all}");
    }

    #[test]
    fn all_items_stay_below_the_size_limit() {
        let mut sample = BottomSample::new(10);
        for hash in 0..19 {
            assert!(sample.add(hash, || ()).is_some());
        }
        assert_eq!(sample.values().count(), 19);
        assert!((sample.share() - 1.0).abs() < 1e-9);
        sample.add(100, || ());
        assert_eq!(sample.values().count(), 10);
        assert!(sample.add(18, || ()).is_none());
    }
}
