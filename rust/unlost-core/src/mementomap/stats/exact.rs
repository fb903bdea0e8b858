//! Exact statistics: many threads scan blocks, and the results are combined in order.

use std::ops::Range;

use super::host_tree::HostTree;
use super::large_host::LargeHost;
use super::path_tree::{HostTotals, PathTree};
use super::row_input::{by_uri, process_rows};
use super::runs::{RunOutput, Runs};
use super::statistics::{PathCounts, Statistics};
use crate::index::Layout;
use crate::index::Row;
use crate::input::Damage;
use crate::input::Input;
use crate::mementomap::block_output::BlockOutput;
use crate::mementomap::in_order_sink::process_file;
use crate::mementomap::row_filter::RowFilter;
use crate::mementomap::{BuildOptions, HoldingsError, LineStats, Progress};

/// A host that begins and ends in its block.
#[derive(Debug, Clone, Copy)]
struct InnerHost {
    /// Its first run.
    start: usize,
    totals: HostTotals,
}

/// The result of a block.
#[derive(Default)]
struct BlockStatistics {
    run_output: RunOutput,
    paths: PathCounts,
    tree: PathTree,
    inner: Vec<InnerHost>,
    /// The end of the first host's runs, and the start of the last host's.
    first_end: usize,
    last_start: usize,
}

impl BlockOutput for BlockStatistics {
    const READS_ROWS: bool = true;

    fn clear(&mut self) {
        self.run_output.clear();
        self.paths.clear();
        self.inner.clear();
        self.first_end = 0;
        self.last_start = 0;
    }

    fn on_text(&mut self, bytes: usize) {
        self.run_output.on_text(bytes);
    }

    fn on_row(&mut self, row: &Row<'_>) {
        self.run_output.on_row(row);
    }

    fn on_foreign(&mut self, scheme: &str) {
        self.run_output.on_foreign(scheme);
    }

    fn push(&mut self, key: &[u8], count: u64) -> Result<(), HoldingsError> {
        self.run_output.push(key, count)
    }

    fn finish(&mut self) -> Result<(), HoldingsError> {
        let all = self.run_output.runs.len();
        if all == 0 {
            return Ok(());
        }
        self.first_end = self.run_output.runs.host_end(0);
        let mut start = self.first_end;
        self.last_start = start;
        while start < all {
            let end = self.run_output.runs.host_end(start);
            if end == all {
                break;
            }
            let totals = self
                .tree
                .count(&mut self.run_output.runs, start..end, &mut self.paths);
            self.inner.push(InnerHost { start, totals });
            start = end;
        }
        self.last_start = start;
        Ok(())
    }
}

/// Collects exact statistics of indexes.
pub struct StatisticsCollector {
    row_filter: RowFilter,
    build_options: BuildOptions,
    out: Statistics,
    hosts: HostTree,
    tree: PathTree,
    /// The current host, its runs, and those that did not fit in memory.
    host: Vec<u8>,
    pending: Runs,
    large: LargeHost,
}

impl StatisticsCollector {
    /// Creates a collector. Keys retain their queries, and `by_year` has no effect.
    #[must_use]
    pub fn new(row_filter: RowFilter, build_options: BuildOptions) -> Self {
        Self {
            row_filter: by_uri(row_filter),
            build_options,
            out: Statistics::default(),
            hosts: HostTree::default(),
            tree: PathTree::default(),
            host: Vec::new(),
            pending: Runs::default(),
            large: LargeHost::default(),
        }
    }

    /// Takes the rows of a file. Without a layout it is detected from the first lines. Hosts must be sorted over all
    /// files, and contiguous: otherwise [`HoldingsError::Scattered`].
    pub fn add_file<R: Input + Send + Sync>(
        &mut self,
        file: R,
        layout: Option<Layout>,
        progress: &Progress,
    ) -> Result<(LineStats, Option<Damage>), HoldingsError> {
        let (row_filter, build_options) = (self.row_filter.clone(), self.build_options.clone());
        let take = |block: &mut BlockStatistics| self.take(block);
        process_file(file, layout, (&row_filter, &build_options), progress, take)
    }

    /// Takes rows that were parsed elsewhere. Their order matters as in files.
    pub fn add_rows<'a>(
        &mut self,
        rows: impl Iterator<Item = Row<'a>>,
    ) -> Result<LineStats, HoldingsError> {
        let (line_stats, mut block) =
            process_rows::<BlockStatistics>(rows, &self.row_filter, &self.build_options)?;
        block.finish()?;
        self.take(&mut block)?;
        Ok(line_stats)
    }

    /// All statistics.
    pub fn finish(mut self) -> Result<Statistics, HoldingsError> {
        self.end_host()?;
        self.hosts.finish(&mut self.out);
        Ok(self.out)
    }

    /// Takes the result of a block.
    fn take(&mut self, block: &mut BlockStatistics) -> Result<(), HoldingsError> {
        self.out.rows.append(&block.run_output.rows);
        self.out.paths.append(&mut block.paths);
        let all = block.run_output.runs.len();
        if all == 0 {
            return Ok(());
        }
        self.append_runs(&block.run_output.runs, 0..block.first_end)?;
        for host in &block.inner {
            self.end_host()?;
            let name = block.run_output.runs.host(host.start);
            self.push(name, host.totals)?;
        }
        if block.last_start < all {
            self.append_runs(&block.run_output.runs, block.last_start..all)?;
        }
        Ok(())
    }

    /// Takes runs of the current host, of which more may come.
    fn append_runs(&mut self, runs: &Runs, part: Range<usize>) -> Result<(), HoldingsError> {
        let host = runs.host(part.start);
        if self.host != host {
            self.end_host()?;
            self.host.extend_from_slice(host);
        }
        self.pending.append(runs, part);
        if self.pending.size() > self.build_options.memory {
            self.large.spill(&mut self.pending, self.host.len())?;
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
