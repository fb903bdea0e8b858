//! Sketches of the Apache `DataSketches` library: different things counted, and frequent ones found, in bounded memory.

use std::cmp::Reverse;

use datasketches::common::NumStdDev;
use datasketches::frequencies::{ErrorType, FrequentItemsSketch};
use datasketches::hll::{HllSketch, HllType};

use crate::mementomap::filter::xxh64;

/// Of 2^14 registers, a byte each: the standard error is 0.8 %.
const REGISTERS_LOG: u8 = 14;

/// How many different things there are, about.
#[derive(Clone)]
pub struct DistinctCounter(HllSketch);

impl Default for DistinctCounter {
    fn default() -> Self {
        Self(HllSketch::new(REGISTERS_LOG, HllType::Hll8))
    }
}

impl DistinctCounter {
    /// One that takes less memory and is less exact: of 2 to this power registers.
    pub(super) fn small(registers_log: u8) -> Self {
        Self(HllSketch::new(registers_log, HllType::Hll8))
    }

    /// Takes the hash of a thing.
    pub fn add(&mut self, hash: u64) {
        self.0.update(hash);
    }

    /// Takes a thing by its name.
    pub fn add_text(&mut self, name: &[u8]) {
        self.add(xxh64(name));
    }

    /// How many there are about, and between which numbers that is in 95 of 100 cases.
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

/// Which texts occur most often.
pub struct FrequentItems(FrequentItemsSketch<String>);

impl FrequentItems {
    /// Remembers up to three quarters of so many, a power of two; what is left out of all can hide at most 3.5 / `size`.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self(FrequentItemsSketch::new(
            size.clamp(8, 1 << 26).next_power_of_two(),
        ))
    }

    /// Takes a text, so many times.
    pub fn add(&mut self, text: String, times: u64) {
        self.0.update_with_count(text, times);
    }

    /// By how much a number can be too high, and how many times a text may have occurred that is not among them.
    #[must_use]
    pub fn error(&self) -> u64 {
        self.0.maximum_error()
    }

    /// The most frequent ones that are remembered, with at least how often and at most how often they occurred.
    #[must_use]
    pub fn first(&self, most: usize) -> Vec<(String, u64, u64)> {
        let mut rows: Vec<_> = self
            .0
            .frequent_items(ErrorType::NoFalseNegatives)
            .into_iter()
            .map(|row| (row.item().clone(), row.lower_bound(), row.upper_bound()))
            .collect();
        rows.sort_unstable_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
        rows.truncate(most);
        rows
    }
}
