//! The history of visits, as explained in `unlost.refresh.history`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use unlost_core::refresh::{CELLS, CellCount, Fields, GROUPS, History, Learned, Presence};

/// Missed, saved, missed squared, missed times changed, hosts with a missed one.
type StepFields = (f64, f64, f64, f64, u32);
/// Missed, changed, missed squared, missed times changed, changed squared, hosts, deviations.
type ResampledFields = (f64, f64, f64, f64, f64, u32, (f64, f64));
/// Name, visits, with a tag, with a date, server, the nine cells.
type HostFields = (String, u32, u32, u32, Option<String>, Vec<CellCount>);

/// Name; then group, changed and all pairs of each group.
type HostGroups = (String, Vec<(usize, (u64, u64))>);

/// All pairs of a log.
#[pyclass(frozen, module = "unlost._core")]
pub struct VisitHistory(pub History);

#[pymethods]
impl VisitHistory {
    /// The visit statistics, by name.
    fn visit_stats(&self) -> Vec<(&'static str, u64)> {
        let stats = self.0.visit_stats();
        vec![
            ("successful", stats.successful),
            ("not_modified", stats.not_modified),
            ("failed", stats.failed),
            ("without_digest", stats.without_digest),
            ("without_host", stats.without_host),
            ("duplicate", stats.duplicate),
            ("out_of_order", stats.out_of_order),
            ("tagged", stats.tagged),
            ("dated", stats.dated),
            ("pages", stats.pages),
            ("pairs", self.0.len() as u64),
            ("hosts", self.0.hosts().len() as u64),
        ]
    }

    fn matrix(&self, py: Python<'_>, by_text: bool) -> Vec<CellCount> {
        py.detach(|| self.0.matrix(by_text).to_vec())
    }

    /// For each fold, the cells with pairs: number, changed, unchanged.
    fn cells(
        &self,
        py: Python<'_>,
        by_text: bool,
        fields: u8,
        folds: usize,
    ) -> Vec<Vec<(usize, u64, u64)>> {
        let all = py.detach(|| self.0.cells(by_text, Fields(fields), folds));
        let of_fold = |cells: Vec<CellCount>| {
            let numbered = cells.into_iter().enumerate();
            let seen = numbered.filter(|(_, (changed, unchanged))| changed + unchanged > 0);
            seen.map(|(cell, (changed, unchanged))| (cell, changed, unchanged))
                .collect()
        };
        all.into_iter().map(of_fold).collect()
    }

    fn spread(&self, py: Python<'_>, by_text: bool, fields: u8) -> Vec<[f64; 5]> {
        py.detach(|| self.0.spread(by_text, Fields(fields)).to_vec())
    }

    /// A range of hosts with their groups.
    fn host_groups(
        &self,
        first: usize,
        end: usize,
        by_text: bool,
        fields: u8,
        since: u32,
    ) -> Vec<HostGroups> {
        let all = self.0.hosts();
        let end = end.min(all.len());
        let first = first.min(end);
        let groups = self
            .0
            .host_groups(first..end, by_text, Fields(fields), since);
        all[first..end]
            .iter()
            .zip(groups)
            .map(|(host, groups)| {
                let groups = groups.into_iter();
                let pairs = groups.map(|(group, changed, all)| (group, (changed, all)));
                (host.name.to_string(), pairs.collect())
            })
            .collect()
    }

    /// Hosts with pages that changed under an unchanged date or tag: date lies, date claims, tag lies, tag claims.
    fn lying_hosts(&self, py: Python<'_>, by_text: bool) -> Vec<(String, [u64; 4])> {
        py.detach(|| self.0.lying_hosts(by_text))
    }

    fn bytes_and_text(&self) -> [u64; 4] {
        self.0.bytes_and_text()
    }

    /// The times that cut the log into parts with equal numbers of pairs.
    fn splits(&self, py: Python<'_>, parts: usize) -> Vec<u32> {
        py.detach(|| self.0.splits(parts))
    }

    fn intervals(&self, host: usize, by_text: bool) -> Vec<(u32, bool)> {
        if host < self.0.hosts().len() {
            self.0.intervals(host, by_text)
        } else {
            Vec::new()
        }
    }

    /// For each scheme: missed, changed, the sums of missed squared, of missed times changed, of changed squared, hosts
    /// with a change, and the 95 % range of the deviations.
    fn resample(
        &self,
        py: Python<'_>,
        by_text: bool,
        schemes: Vec<u16>,
        times: usize,
        seed: u64,
    ) -> Vec<ResampledFields> {
        let results = py.detach(|| self.0.resample(by_text, &schemes, times, seed));
        let fields = results.into_iter().map(|one| {
            (
                one.missed,
                one.changed,
                one.missed_squared,
                one.missed_changed,
                one.changed_squared,
                one.hosts,
                one.deviations,
            )
        });
        fields.collect()
    }

    /// All steps; then changed, unchanged, the sum of changed squared, and hosts.
    #[allow(clippy::too_many_arguments)]
    fn replay(
        &self,
        py: Python<'_>,
        means: Vec<Vec<f64>>,
        strengths: Vec<f64>,
        fields: u8,
        by_text: bool,
        splits: Vec<u32>,
    ) -> PyResult<(Vec<StepFields>, f64, f64, f64, u32)> {
        if strengths.len() != GROUPS
            || means.is_empty()
            || means.iter().any(|mean| mean.len() != CELLS)
        {
            return Err(PyValueError::new_err(
                "expected a strength for each group and a mean for each cell",
            ));
        }
        let learned = Learned {
            means: &means,
            strengths: &strengths,
            fields: Fields(fields),
            by_text,
            splits: &splits,
        };
        let replay = py.detach(|| self.0.replay(&learned));
        let steps = replay.steps.iter().map(|step| {
            (
                step.missed,
                step.saved,
                step.missed_squared,
                step.missed_changed,
                step.missed_hosts,
            )
        });
        Ok((
            steps.collect(),
            replay.changed,
            replay.unchanged,
            replay.changed_squared,
            replay.hosts,
        ))
    }

    /// A range of hosts.
    fn hosts(&self, first: usize, end: usize, by_text: bool) -> Vec<HostFields> {
        let all = self.0.hosts();
        let end = end.min(all.len());
        let fields = |number: usize| {
            let host = &all[number];
            let server = host
                .server
                .map(|server| self.0.servers()[server as usize].to_string());
            let cells = self.0.host_cells(number, by_text).to_vec();
            (
                host.name.to_string(),
                host.visits,
                host.tagged,
                host.dated,
                server,
                cells,
            )
        };
        (first.min(end)..end).map(fields).collect()
    }

    /// The number of hosts that send a tag always, sometimes and never, by server software.
    fn tags_by_server(&self) -> Vec<(Option<String>, [u64; 3])> {
        let mut counts = vec![[0; 3]; self.0.servers().len() + 1];
        for host in self.0.hosts().iter().filter(|host| host.visits > 0) {
            let index = match host.tags() {
                Presence::Always => 0,
                Presence::Sometimes => 1,
                Presence::Never => 2,
            };
            counts[host
                .server
                .map_or(self.0.servers().len(), |server| server as usize)][index] += 1;
        }
        let names = self
            .0
            .servers()
            .iter()
            .map(|name| Some(name.to_string()))
            .chain([None]);
        names
            .zip(counts)
            .filter(|(_, counts)| counts.iter().sum::<u64>() > 0)
            .collect()
    }
}
