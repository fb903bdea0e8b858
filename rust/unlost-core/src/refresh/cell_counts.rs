//! Counts pairs by cell.

use std::ops::Range;

use super::history::{History, Pair};
use super::states::{BASE_CELLS, CELLS, Fields, GROUPS, Projected, base_cell};

/// The number of changed and unchanged pairs of a cell.
pub type CellCount = (u64, u64);
/// The counts of the nine cells of date and tag, of one host.
pub type HostCells = [CellCount; BASE_CELLS];

impl History {
    /// The matrix of date and tag.
    #[must_use]
    pub fn matrix(&self, by_text: bool) -> HostCells {
        let mut sums = HostCells::default();
        for host in 0..self.hosts().len() {
            for (sum, cell) in sums.iter_mut().zip(self.host_cells(host, by_text)) {
                sum.0 += cell.0;
                sum.1 += cell.1;
            }
        }
        sums
    }

    /// The same for one host.
    #[must_use]
    pub fn host_cells(&self, host: usize, by_text: bool) -> HostCells {
        let mut counts = HostCells::default();
        for pair in self.pairs_of(host) {
            let count = &mut counts[base_cell(usize::from(pair.cell()))];
            add(count, pair, by_text);
        }
        counts
    }

    /// Counts of all cells by the fold of their hosts, projected to these fields.
    #[must_use]
    pub fn cells(&self, by_text: bool, fields: Fields, folds: usize) -> Vec<Vec<CellCount>> {
        let mut counts = vec![vec![CellCount::default(); CELLS]; folds.max(1)];
        let projected = Projected::of(fields);
        for pair in &self.pairs {
            let (cell, _) = projected.get(pair.cell());
            let count = &mut counts[fold_of(pair.host, folds)][cell];
            add(count, pair, by_text);
        }
        counts
    }

    /// Hosts with pages that changed under an unchanged date or tag: date lies, date claims, tag lies, tag claims.
    #[must_use]
    pub fn lying_hosts(&self, by_text: bool) -> Vec<(String, [u64; 4])> {
        const DATE_SAME: [usize; 3] = [3, 4, 5];
        const TAG_SAME: [usize; 3] = [1, 4, 7];
        let mut lying = Vec::new();
        for (number, host) in self.hosts().iter().enumerate() {
            let cells = self.host_cells(number, by_text);
            let lies = |indices: [usize; 3]| indices.iter().map(|&at| cells[at].0).sum::<u64>();
            let claims =
                |indices: [usize; 3]| indices.iter().map(|&at| cells[at].0 + cells[at].1).sum();
            let counts = [
                lies(DATE_SAME),
                claims(DATE_SAME),
                lies(TAG_SAME),
                claims(TAG_SAME),
            ];
            if counts[0] + counts[2] > 0 {
                lying.push((host.name.to_string(), counts));
            }
        }
        lying
    }

    /// For each host, its groups with pairs: group, changed, all. Before `since`, in seconds since 1970, only changed
    /// pairs count.
    #[must_use]
    pub fn host_groups(
        &self,
        hosts: Range<usize>,
        by_text: bool,
        fields: Fields,
        since: u32,
    ) -> Vec<Vec<(usize, u64, u64)>> {
        let projected = Projected::of(fields);
        hosts
            .map(|host| self.groups_of(host, by_text, &projected, since))
            .collect()
    }

    fn groups_of(
        &self,
        host: usize,
        by_text: bool,
        projected: &Projected,
        since: u32,
    ) -> Vec<(usize, u64, u64)> {
        let mut counts = [(0, 0); GROUPS];
        for pair in self.pairs_of(host) {
            let count = &mut counts[projected.get(pair.cell()).1];
            let changed = pair.changed(by_text);
            count.0 += u64::from(changed);
            count.1 += u64::from(changed || pair.time >= since);
        }
        let seen = counts.iter().enumerate().filter(|(_, count)| count.1 > 0);
        seen.map(|(group, count)| (group, count.0, count.1))
            .collect()
    }

    /// For each group, sums over the hosts from which their variance is computed: hosts, pairs, pairs squared, changed,
    /// and changed squared by pairs.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn spread(&self, by_text: bool, fields: Fields) -> [[f64; 5]; GROUPS] {
        let mut sums = [[0.0; 5]; GROUPS];
        let projected = Projected::of(fields);
        for host in 0..self.hosts().len() {
            for (group, changed, all) in self.groups_of(host, by_text, &projected, 0) {
                let (all, changed) = (all as f64, changed as f64);
                let terms = [1.0, all, all * all, changed, changed * changed / all];
                for (total, term) in sums[group].iter_mut().zip(terms) {
                    *total += term;
                }
            }
        }
        sums
    }
}

fn add(count: &mut CellCount, pair: &Pair, by_text: bool) {
    *(if pair.changed(by_text) {
        &mut count.0
    } else {
        &mut count.1
    }) += u64::from(pair.weight);
}

/// The fold of a host, which depends only on its number.
pub(super) fn fold_of(host: u32, folds: usize) -> usize {
    let mixed = (u64::from(host) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    usize::try_from(mixed).unwrap_or_default() % folds.max(1)
}
