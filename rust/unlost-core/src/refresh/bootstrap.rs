//! Bootstrap: the uncertainty of shares if other hosts had been visited, from resampled hosts.
//!
//! Hosts with false headers are few and of very different size, so that the standard error of a draw with few of their
//! pages is too small. Each deviation is therefore divided by the standard error of its own draw, on the scale of
//! log-odds (bootstrap-t).

use std::collections::HashMap;

use super::history::History;
use super::states::BASE_CELLS;
use super::visit_pairs::threads;

/// The changes that a scheme misses, as sums over hosts, and the deviations of draws from it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Resampled {
    /// Changed pairs that are missed.
    pub missed: f64,
    /// All changed pairs.
    pub changed: f64,
    /// The sum over hosts of missed squared.
    pub missed_squared: f64,
    /// The sum over hosts of missed times changed.
    pub missed_changed: f64,
    /// The sum over hosts of changed squared.
    pub changed_squared: f64,
    /// Hosts with a changed page.
    pub hosts: u32,
    /// The 95 % range of the differences between the log-odds of draws and those of all, in standard errors of the
    /// draw; both 0 if no draw is usable.
    pub deviations: (f64, f64),
}

/// Hosts with the same changes: the number of changes per cell.
type ChangeProfile = Vec<(u8, u32)>;

/// Sums over hosts of the changes in each cell, and of the products of any two cells.
#[derive(Default)]
struct Sums {
    cells: [f64; BASE_CELLS],
    products: [[f64; BASE_CELLS]; BASE_CELLS],
}

impl Sums {
    /// Adds `times` hosts.
    fn add(&mut self, change_profiles: &ChangeProfile, times: f64) {
        for &(cell, count) in change_profiles {
            let weighted = times * f64::from(count);
            self.cells[usize::from(cell)] += weighted;
            for &(other, others) in change_profiles {
                self.products[usize::from(cell)][usize::from(other)] +=
                    weighted * f64::from(others);
            }
        }
    }

    /// The changes that a scheme misses. `scheme` has a bit for each cell that it downloads.
    fn missed(&self, scheme: u16) -> Resampled {
        let is_skipped = |cell: usize| scheme & (1 << cell) == 0;
        let mut resampled = Resampled::default();
        for (cell, (count, products)) in self.cells.iter().zip(&self.products).enumerate() {
            resampled.changed += count;
            resampled.changed_squared += products.iter().sum::<f64>();
            if is_skipped(cell) {
                resampled.missed += count;
                resampled.missed_changed += products.iter().sum::<f64>();
                let both = products.iter().enumerate();
                let both = both.filter(|(other, _)| is_skipped(*other));
                resampled.missed_squared += both.map(|(_, product)| product).sum::<f64>();
            }
        }
        resampled
    }
}

impl Resampled {
    /// The log-odds of a miss, and their standard error over hosts; None if nothing or everything is missed.
    fn log_odds(&self) -> Option<(f64, f64)> {
        let share = self.missed / self.changed;
        if self.missed <= 0.0 || share >= 1.0 {
            return None;
        }
        let squares = self.missed_squared - 2.0 * share * self.missed_changed
            + share * share * self.changed_squared;
        let error = squares.max(0.0).sqrt() / self.changed / (share * (1.0 - share));
        (error > 0.0).then(|| ((share / (1.0 - share)).ln(), error))
    }
}

impl History {
    /// For each scheme (a bit for each of the nine cells that it downloads), the changes that it misses in resampled
    /// hosts. Each host is drawn a Poisson(1) number of times. The same seed gives the same numbers.
    #[must_use]
    pub fn resample(
        &self,
        by_text: bool,
        schemes: &[u16],
        times: usize,
        seed: u64,
    ) -> Vec<Resampled> {
        let groups = self.change_profiles(by_text);
        let mut all = Sums::default();
        for (change_profiles, hosts) in &groups {
            all.add(change_profiles, f64::from(*hosts));
        }
        let hosts = groups.iter().map(|(_, hosts)| hosts).sum();
        let mut resampled: Vec<Resampled> = schemes.iter().map(|&one| all.missed(one)).collect();
        let share = times.div_ceil(threads()).max(1);
        let draws = |first: usize| -> Vec<Vec<f64>> {
            let mut deviations = vec![Vec::new(); schemes.len()];
            for number in first..(first + share).min(times) {
                let sums = drawn(&groups, seed, number);
                for ((scheme, whole), each) in schemes.iter().zip(&resampled).zip(&mut deviations) {
                    let odds = whole.log_odds().zip(sums.missed(*scheme).log_odds());
                    each.extend(odds.map(|((truth, _), (odds, error))| (odds - truth) / error));
                }
            }
            deviations
        };
        let mut deviations = vec![Vec::with_capacity(times); schemes.len()];
        std::thread::scope(|scope| {
            let firsts = (0..times).step_by(share);
            let work: Vec<_> = firsts
                .map(|first| scope.spawn(move || draws(first)))
                .collect();
            for part in work.into_iter().filter_map(|thread| thread.join().ok()) {
                for (all, some) in deviations.iter_mut().zip(part) {
                    all.extend(some);
                }
            }
        });
        for (one, deviations) in resampled.iter_mut().zip(deviations) {
            one.hosts = hosts;
            one.deviations = span(deviations);
        }
        resampled
    }

    /// Hosts with a changed page; those with the same counts are grouped, as they are drawn together.
    fn change_profiles(&self, by_text: bool) -> Vec<(ChangeProfile, u32)> {
        let mut change_profiles: HashMap<ChangeProfile, u32> = HashMap::new();
        for host in 0..self.hosts().len() {
            let cells = (0_u8..).zip(self.host_cells(host, by_text));
            let changed = cells.filter(|(_, (changed, _))| *changed > 0);
            let changed: ChangeProfile = changed
                .map(|(cell, (changed, _))| (cell, u32::try_from(changed).unwrap_or(u32::MAX)))
                .collect();
            if !changed.is_empty() {
                *change_profiles.entry(changed).or_default() += 1;
            }
        }
        let mut groups: Vec<(ChangeProfile, u32)> = change_profiles.into_iter().collect();
        groups.sort_unstable();
        groups
    }
}

/// The draw with this number.
fn drawn(groups: &[(ChangeProfile, u32)], seed: u64, number: usize) -> Sums {
    // Mixed twice, so that consecutive draws or seeds are uncorrelated.
    let mut random = Random(Random(Random(seed).next().wrapping_add(number as u64)).next());
    let mut sums = Sums::default();
    for (change_profiles, hosts) in groups {
        let times = random.poisson(f64::from(*hosts));
        if times > 0.0 {
            sums.add(change_profiles, times);
        }
    }
    sums
}

/// The 95 % range.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
fn span(mut values: Vec<f64>) -> (f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0);
    }
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    (at(0.025), at(0.975))
}

/// `SplitMix64`: small and portable.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Between 0, exclusive, and 1.
    #[allow(clippy::cast_precision_loss)]
    fn share(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// A Poisson variable: by its definition for small means, by the normal distribution for others.
    fn poisson(&mut self, mean: f64) -> f64 {
        const SMALL: f64 = 30.0;
        if mean > SMALL {
            let angle = std::f64::consts::TAU * self.share();
            let normal = (-2.0 * self.share().ln()).sqrt() * angle.cos();
            return (mean + mean.sqrt() * normal).round().max(0.0);
        }
        let (limit, mut product, mut count) = ((-mean).exp(), self.share(), 0.0);
        while product > limit {
            product *= self.share();
            count += 1.0;
        }
        count
    }
}
