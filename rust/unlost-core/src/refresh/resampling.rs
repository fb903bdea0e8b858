//! How far shares could lie from what was counted if other hosts had been visited: hosts drawn anew, many times.

use std::collections::HashMap;

use super::counting::HostCells;
use super::history::History;
use super::states::BASE_CELLS;

/// The middle 95 % of what a share came to.
pub type Span = (f64, f64);

impl History {
    /// For each scheme (a bit for each of the nine cells that it downloads), reliability and usefulness when hosts are
    /// drawn anew, each as often as a Poisson variable of mean 1 says. The same seed gives the same spans.
    #[must_use]
    pub fn resample(
        &self,
        by_text: bool,
        schemes: &[u16],
        times: usize,
        seed: u64,
    ) -> Vec<(Span, Span)> {
        // Hosts with the same counts are drawn together.
        let mut alike: HashMap<HostCells, u32> = HashMap::new();
        for host in 0..self.hosts().len() {
            *alike.entry(self.host_cells(host, by_text)).or_default() += 1;
        }
        let mut groups: Vec<(HostCells, u32)> = alike.into_iter().collect();
        groups.sort_unstable();
        let mut random = Random(seed);
        let mut shares =
            vec![(Vec::with_capacity(times), Vec::with_capacity(times)); schemes.len()];
        for _ in 0..times {
            let sums = drawn(&groups, &mut random);
            for (scheme, (reliable, useful)) in schemes.iter().zip(&mut shares) {
                let (reliability, usefulness) = judged(&sums, *scheme);
                reliable.push(reliability);
                useful.push(usefulness);
            }
        }
        let spans = shares
            .into_iter()
            .map(|(reliable, useful)| (span(reliable), span(useful)));
        spans.collect()
    }
}

#[allow(clippy::cast_precision_loss)]
fn drawn(groups: &[(HostCells, u32)], random: &mut Random) -> [(f64, f64); BASE_CELLS] {
    let mut sums = [(0.0, 0.0); BASE_CELLS];
    for (cells, hosts) in groups {
        let times = random.poisson(f64::from(*hosts));
        if times > 0.0 {
            for (sum, cell) in sums.iter_mut().zip(cells) {
                sum.0 += times * cell.0 as f64;
                sum.1 += times * cell.1 as f64;
            }
        }
    }
    sums
}

fn judged(sums: &[(f64, f64); BASE_CELLS], scheme: u16) -> (f64, f64) {
    let (mut caught, mut changed, mut saved, mut unchanged) = (0.0, 0.0, 0.0, 0.0);
    for (cell, (gone, kept)) in sums.iter().enumerate() {
        changed += gone;
        unchanged += kept;
        if scheme & (1 << cell) == 0 {
            saved += kept;
        } else {
            caught += gone;
        }
    }
    let share = |part: f64, all: f64| if all > 0.0 { part / all } else { 1.0 };
    (share(caught, changed), share(saved, unchanged))
}

/// The values between which 95 % lie.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
fn span(mut values: Vec<f64>) -> Span {
    if values.is_empty() {
        return (0.0, 1.0);
    }
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    (at(0.025), at(0.975))
}

/// `SplitMix64`: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Between 0, which it never is, and 1.
    #[allow(clippy::cast_precision_loss)]
    fn share(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// A Poisson variable: by its definition for small means, by the normal one for others.
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
