//! Sketches of the Apache `DataSketches` library: count distinct things and find frequent ones in bounded memory.

use std::cmp::Reverse;

use datasketches::common::NumStdDev;
use datasketches::frequencies::{ErrorType, FrequentItemsSketch};
use datasketches::hll::{HllSketch, HllType};

use crate::mementomap::filter::xxh64;

/// 2^14 registers of a byte each: the standard error of `HyperLogLog` is 1.04 / √2^14 = 0.8 %.
const REGISTERS_LOG: u8 = 14;

/// Estimates the number of distinct items.
#[derive(Clone)]
pub struct DistinctCounter(HllSketch);

impl Default for DistinctCounter {
    fn default() -> Self {
        Self(HllSketch::new(REGISTERS_LOG, HllType::Hll8))
    }
}

impl DistinctCounter {
    /// A smaller and less exact one, with 2^`registers_log` registers.
    pub(super) fn small(registers_log: u8) -> Self {
        Self(HllSketch::new(registers_log, HllType::Hll8))
    }

    /// Adds an item by its hash.
    pub fn add(&mut self, hash: u64) {
        self.0.update(hash);
    }

    /// Adds an item by its text.
    pub fn add_text(&mut self, name: &[u8]) {
        self.add(xxh64(name));
    }

    /// The estimate, with the bounds of its 95 % confidence interval.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn estimate(&self) -> (u64, u64, u64) {
        let (low, high) = (
            self.0.lower_bound(NumStdDev::Two),
            self.0.upper_bound(NumStdDev::Two),
        );
        (
            self.0.estimate().round() as u64,
            low.floor() as u64,
            high.ceil() as u64,
        )
    }
}

/// Finds the most frequent texts.
pub struct FrequentItems(FrequentItemsSketch<String>);

impl FrequentItems {
    /// Tracks up to three quarters of `size` texts, a power of two; the error is at most 3.5 / `size` of all.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self(FrequentItemsSketch::new(
            size.clamp(8, 1 << 26).next_power_of_two(),
        ))
    }

    /// Adds a text `times` times.
    pub fn add(&mut self, text: String, times: u64) {
        self.0.update_with_count(text, times);
    }

    /// The maximum error of a count, and the maximum count of a text that is not tracked.
    #[must_use]
    pub fn error(&self) -> u64 {
        self.0.maximum_error()
    }

    /// The most frequent tracked texts, with lower and upper bounds of their counts.
    #[must_use]
    pub fn first(&self, count: usize) -> Vec<(String, u64, u64)> {
        let mut rows: Vec<_> = self
            .0
            .frequent_items(ErrorType::NoFalseNegatives)
            .into_iter()
            .map(|row| (row.item().clone(), row.lower_bound(), row.upper_bound()))
            .collect();
        rows.sort_unstable_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
        rows.truncate(count);
        rows
    }
}
