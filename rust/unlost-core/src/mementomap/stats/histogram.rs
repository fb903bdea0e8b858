//! How often which number occurred.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Numbers below this have a place of their own: nearly all are small.
const SMALL: usize = 64;

/// Counts of numbers. With a sum of n there are at most √(2n) different ones, so it stays small.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    small: Vec<u64>,
    large: HashMap<u64, u64, FixedState>,
}

impl Histogram {
    /// Counts a number, so many times.
    pub fn add(&mut self, number: u64, times: u64) {
        match usize::try_from(number) {
            Ok(at) if at < SMALL => {
                if self.small.is_empty() {
                    self.small.resize(SMALL, 0);
                }
                self.small[at] += times;
            }
            _ => *self.large.entry(number).or_default() += times,
        }
    }

    pub(super) fn append(&mut self, other: &Self) {
        for (number, &times) in (0..).zip(&other.small) {
            if times > 0 {
                self.add(number, times);
            }
        }
        for (&number, &times) in &other.large {
            self.add(number, times);
        }
    }

    pub(super) fn clear(&mut self) {
        self.small.fill(0);
        self.large.clear();
    }

    /// All numbers, smallest first, with how often each occurred.
    #[must_use]
    pub fn counts(&self) -> Vec<(u64, u64)> {
        let large: BTreeMap<u64, u64> = self.large.iter().map(|(&a, &b)| (a, b)).collect();
        (0..)
            .zip(&self.small)
            .filter(|(_, times)| **times > 0)
            .map(|(number, &times)| (number, times))
            .chain(large)
            .collect()
    }
}
