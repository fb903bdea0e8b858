//! Replays the pairs of a log: each is decided by the statistics of the rest of the log.

use std::ops::Range;

use super::cell_counts::fold_of;
use super::history::History;
use super::states::{Fields, GROUPS, Projected};
use super::visit_pairs::threads;

/// The number of steps of probabilities: an eighth of an octave each, from 1 down to 2^-32.
pub const BUCKETS: usize = 257;

/// The learned parameters.
#[derive(Debug)]
pub struct Learned<'a> {
    /// The probability of change in each cell, for the hosts of each fold; NaN for cells that were not observed.
    pub means: &'a [Vec<f64>],
    /// The weight of the mean in visits of a host, for each group; infinite to ignore hosts.
    pub strengths: &'a [f64],
    /// The indicators to use.
    pub fields: Fields,
    /// Whether to compare texts.
    pub by_text: bool,
    /// The times that cut the log into parts, in seconds since 1970. A part is decided by changes of its host in the
    /// other parts, and by unchanged pairs in the other half, since a harvest knows both.
    pub splits: &'a [u32],
}

/// The result if pairs from this step on are skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Step {
    /// Changed and skipped.
    pub missed: f64,
    /// Unchanged and skipped.
    pub saved: f64,
    /// The sum over hosts of missed squared.
    pub missed_squared: f64,
    /// The sum over hosts of missed times changed.
    pub missed_changed: f64,
    /// Hosts with a missed one.
    pub missed_hosts: u32,
}

/// All steps and their totals.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    /// One for each bucket and one more, at which nothing is skipped.
    pub steps: Vec<Step>,
    /// Pairs that changed.
    pub changed: f64,
    /// Pairs that did not.
    pub unchanged: f64,
    /// The sum over hosts of changed squared.
    pub changed_squared: f64,
    /// Hosts with a pair.
    pub hosts: u32,
}

/// The step of a probability: higher is less likely to have changed.
pub(super) fn bucket_of(probability: f64) -> usize {
    if probability.is_nan() || probability >= 1.0 {
        return 0;
    }
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    let step = (-probability.max(1e-300).log2() * 8.0)
        .floor()
        .min((BUCKETS - 1) as f64) as usize;
    step
}

impl History {
    /// Decides every pair by its cell and by its host's pairs in the rest of the log.
    #[must_use]
    pub fn replay(&self, learned: &Learned<'_>) -> Replay {
        let projected = Projected::of(learned.fields);
        let hosts = self.hosts().len();
        let share = hosts.div_ceil(threads()).max(1);
        let some = |hosts: Range<usize>| {
            let mut replay = Replay::nothing();
            let mut counts = [(0.0, 0.0); BUCKETS];
            let mut known = Vec::new();
            for host in hosts {
                counts.fill((0.0, 0.0));
                self.replay_host(host, learned, &projected, &mut known, &mut counts);
                replay.add_host(&counts);
            }
            replay
        };
        // Sums of integers: independent of how they are distributed.
        let mut replay = Replay::nothing();
        std::thread::scope(|scope| {
            let firsts = (0..hosts).step_by(share);
            let ranges = firsts.map(|first| first..(first + share).min(hosts));
            let work: Vec<_> = ranges.map(|range| scope.spawn(|| some(range))).collect();
            for part in work.into_iter().filter_map(|thread| thread.join().ok()) {
                replay.add(&part);
            }
        });
        replay
    }

    fn replay_host(
        &self,
        host: usize,
        learned: &Learned<'_>,
        projected: &Projected,
        known: &mut Vec<[u32; GROUPS]>,
        counts: &mut [(f64, f64)],
    ) {
        let number = u32::try_from(host).unwrap_or(u32::MAX);
        let means = &learned.means[fold_of(number, learned.means.len())];
        let pairs = self.pairs_of(host);
        let parts = learned.splits.len() + 1;
        let part_of = |time: u32| learned.splits.partition_point(|&split| split <= time);
        let half_of = |part: usize| usize::from(part >= parts / 2);
        known.clear();
        known.resize(parts, [0; GROUPS]);
        let mut lied = [0; GROUPS];
        let mut same = [[0; GROUPS]; 2];
        for pair in pairs {
            let (_, group) = projected.get(pair.cell());
            let part = part_of(pair.time);
            if pair.changed(learned.by_text) {
                known[part][group] += 1;
                lied[group] += 1;
            } else {
                same[half_of(part)][group] += 1;
            }
        }
        for pair in pairs {
            let (cell, group) = projected.get(pair.cell());
            let part = part_of(pair.time);
            let changed = lied[group] - known[part][group];
            let all = changed + same[1 - half_of(part)][group];
            let chance = posterior(
                means[cell],
                learned.strengths[group],
                (f64::from(changed), f64::from(all)),
            );
            let count = &mut counts[bucket_of(chance)];
            *(if pair.changed(learned.by_text) {
                &mut count.0
            } else {
                &mut count.1
            }) += f64::from(pair.weight);
        }
    }
}

/// The posterior probability of change: the cell's, weighted with the host's history (changed, all).
fn posterior(mean: f64, strength: f64, (changed, all): (f64, f64)) -> f64 {
    if strength.is_infinite() {
        mean
    } else {
        (strength * mean + changed) / (strength + all)
    }
}

impl Replay {
    fn nothing() -> Self {
        Self {
            steps: vec![Step::default(); BUCKETS + 1],
            ..Self::default()
        }
    }

    fn add(&mut self, other: &Self) {
        self.changed += other.changed;
        self.unchanged += other.unchanged;
        self.changed_squared += other.changed_squared;
        self.hosts += other.hosts;
        for (step, more) in self.steps.iter_mut().zip(&other.steps) {
            step.missed += more.missed;
            step.saved += more.saved;
            step.missed_squared += more.missed_squared;
            step.missed_changed += more.missed_changed;
            step.missed_hosts += more.missed_hosts;
        }
    }

    fn add_host(&mut self, counts: &[(f64, f64)]) {
        let changed: f64 = counts.iter().map(|count| count.0).sum();
        let unchanged: f64 = counts.iter().map(|count| count.1).sum();
        if changed + unchanged == 0.0 {
            return;
        }
        self.hosts += 1;
        self.changed += changed;
        self.unchanged += unchanged;
        self.changed_squared += changed * changed;
        let (mut missed, mut saved) = (0.0, 0.0);
        for bucket in (0..BUCKETS).rev() {
            missed += counts[bucket].0;
            saved += counts[bucket].1;
            let step = &mut self.steps[bucket];
            step.missed += missed;
            step.saved += saved;
            step.missed_squared += missed * missed;
            step.missed_changed += missed * changed;
            step.missed_hosts += u32::from(missed > 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_eighths_of_an_octave() {
        assert_eq!(bucket_of(1.0), 0);
        assert_eq!(bucket_of(f64::NAN), 0);
        assert_eq!(bucket_of(0.5), 8);
        assert_eq!(bucket_of(0.0), BUCKETS - 1);
    }
}
