//! Drives it: blocks are scanned by many threads, and what they come to is put together in their order.

use std::ops::Range;

use super::host_tree::HostTree;
use super::large_host::LargeHost;
use super::path_tree::{HostTotals, PathTree};
use super::reading::{harvested, of_uris};
use super::runs::{RunHarvest, Runs};
use super::statistics::{PathCounts, Statistics};
use crate::formats::{Damage, Input, Layout, Row};
use crate::holdings::collect::tally_file;
use crate::holdings::harvest::Harvest;
use crate::holdings::wanted::Wanted;
use crate::holdings::{Effort, HoldingsError, Progress, Tally};

/// A host of a block that begins and ends in it.
#[derive(Debug, Clone, Copy)]
struct InnerHost {
    /// Its first run.
    start: usize,
    totals: HostTotals,
}

/// What a block came to.
#[derive(Default)]
struct Gathered {
    found: RunHarvest,
    paths: PathCounts,
    tree: PathTree,
    inner: Vec<InnerHost>,
    /// Where the first host ends, and where the last begins.
    first_end: usize,
    last_start: usize,
}

impl Harvest for Gathered {
    const READS_ROWS: bool = true;

    fn clear(&mut self) {
        self.found.clear();
        self.paths.clear();
        self.inner.clear();
        self.first_end = 0;
        self.last_start = 0;
    }

    fn see_text(&mut self, bytes: usize) {
        self.found.see_text(bytes);
    }

    fn see_row(&mut self, row: &Row<'_>) {
        self.found.see_row(row);
    }

    fn see_foreign(&mut self, scheme: &str) {
        self.found.see_foreign(scheme);
    }

    fn push(&mut self, key: &[u8], count: u64) -> Result<(), HoldingsError> {
        self.found.push(key, count)
    }

    fn finish(&mut self) -> Result<(), HoldingsError> {
        let all = self.found.runs.len();
        if all == 0 {
            return Ok(());
        }
        self.first_end = self.found.runs.host_end(0);
        let mut start = self.first_end;
        self.last_start = start;
        while start < all {
            let end = self.found.runs.host_end(start);
            if end == all {
                break;
            }
            let totals = self
                .tree
                .count(&mut self.found.runs, start..end, &mut self.paths);
            self.inner.push(InnerHost { start, totals });
            start = end;
        }
        self.last_start = start;
        Ok(())
    }
}

/// Gathers what is told of indexes.
pub struct Gatherer {
    wanted: Wanted,
    effort: Effort,
    out: Statistics,
    hosts: HostTree,
    tree: PathTree,
    /// The host that goes on, its runs, and those of them that did not fit in memory.
    host: Vec<u8>,
    pending: Runs,
    large: LargeHost,
}

impl Gatherer {
    /// Begins. Keys keep their queries, and years make no difference to them.
    #[must_use]
    pub fn new(wanted: Wanted, effort: Effort) -> Self {
        Self {
            wanted: of_uris(wanted),
            effort,
            out: Statistics::default(),
            hosts: HostTree::default(),
            tree: PathTree::default(),
            host: Vec::new(),
            pending: Runs::default(),
            large: LargeHost::default(),
        }
    }

    /// Takes the rows of a file. Without a layout it is told by the first lines. Hosts must come in their order, over all
    /// files, each in one piece: [`HoldingsError::Scattered`] if one does not.
    pub fn add_file<R: Input + Send + Sync>(
        &mut self,
        file: R,
        layout: Option<Layout>,
        progress: &Progress,
    ) -> Result<(Tally, Option<Damage>), HoldingsError> {
        let (wanted, effort) = (self.wanted.clone(), self.effort.clone());
        let take = |block: &mut Gathered| self.take(block);
        tally_file(file, layout, (&wanted, &effort), progress, take)
    }

    /// Takes rows that were read elsewhere. The order matters as it does in files.
    pub fn add_rows<'a>(
        &mut self,
        rows: impl Iterator<Item = Row<'a>>,
    ) -> Result<Tally, HoldingsError> {
        let (tally, mut block) = harvested::<Gathered>(rows, &self.wanted, &self.effort)?;
        block.finish()?;
        self.take(&mut block)?;
        Ok(tally)
    }

    /// Everything that was counted.
    pub fn finish(mut self) -> Result<Statistics, HoldingsError> {
        self.end_host()?;
        self.hosts.finish(&mut self.out);
        Ok(self.out)
    }

    /// Takes what a block came to.
    fn take(&mut self, block: &mut Gathered) -> Result<(), HoldingsError> {
        self.out.rows.append(&block.found.rows);
        self.out.paths.append(&mut block.paths);
        let all = block.found.runs.len();
        if all == 0 {
            return Ok(());
        }
        self.go_on(&block.found.runs, 0..block.first_end)?;
        for host in &block.inner {
            self.end_host()?;
            let name = block.found.runs.host(host.start);
            self.push(name, host.totals)?;
        }
        if block.last_start < all {
            self.go_on(&block.found.runs, block.last_start..all)?;
        }
        Ok(())
    }

    /// Takes runs of one host, of which more may come.
    fn go_on(&mut self, runs: &Runs, part: Range<usize>) -> Result<(), HoldingsError> {
        let host = runs.host(part.start);
        if self.host != host {
            self.end_host()?;
            self.host.extend_from_slice(host);
        }
        self.pending.append(runs, part);
        if self.pending.size() > self.effort.memory {
            self.large.keep(&mut self.pending, self.host.len())?;
        }
        Ok(())
    }

    fn end_host(&mut self) -> Result<(), HoldingsError> {
        if self.host.is_empty() {
            return Ok(());
        }
        let host = std::mem::take(&mut self.host);
        let (runs, tree) = (&mut self.pending, &mut self.tree);
        let totals = self
            .large
            .end_host(&host, runs, tree, &mut self.out.paths)?;
        self.push(&host, totals)
    }

    fn push(&mut self, host: &[u8], totals: HostTotals) -> Result<(), HoldingsError> {
        if self.hosts.push(host, totals, &mut self.out) {
            Ok(())
        } else {
            Err(HoldingsError::Scattered {
                host: host.to_vec(),
            })
        }
    }
}
