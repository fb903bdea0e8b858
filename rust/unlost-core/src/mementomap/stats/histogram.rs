//! Histograms of numbers.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Numbers below this are counted in an array: nearly all are small.
const ARRAY_SIZE: usize = 64;

/// Counts of numbers. A sum of n has at most √(2n) distinct summands, so it stays small.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    small: Vec<u64>,
    large: HashMap<u64, u64, FixedState>,
}

impl Histogram {
    /// Counts a number `times` times.
    pub fn add(&mut self, number: u64, times: u64) {
        match usize::try_from(number) {
            Ok(at) if at < ARRAY_SIZE => {
                if self.small.is_empty() {
                    self.small.resize(ARRAY_SIZE, 0);
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

    /// All numbers in ascending order, with their counts.
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
