//! The same of an index that many machines read, in any order, and exactly: each counts its rows, and makes runs of them;
//! the runs of a host are brought together by somebody else, and so are the hosts of a domain.
//!
//! ```text
//! rows ─ counts of rows                                        added up
//!      └ runs, as lines ─ cut at hosts ─ trees of paths        added up
//!                                      └ hosts, as lines ─ cut at domains ─ tree of hosts      added up
//! ```

use std::io::Write;

use super::host_tree::HostTree;
use super::large_host::LargeHost;
use super::path_tree::{HostTotals, PathTree};
use super::row_input::by_uri;
use super::rows::RowCounts;
use super::run_sorter::{RunSorter, read_numbers, write_numbers, write_run};
use super::runs::{RunOutput, Runs, host_of};
use super::statistics::Statistics;
use crate::formats::{Damage, Input, Layout};
use crate::mementomap::in_order_sink::process_file;
use crate::mementomap::row_filter::RowFilter;
use crate::mementomap::{BuildOptions, HoldingsError, LineStats, Progress};

/// How much is written at a time.
const WRITE_BYTES: usize = 1 << 20;

/// Counts rows where they are read, or brings runs together.
pub struct RunCounter {
    row_filter: RowFilter,
    build_options: BuildOptions,
    rows: RowCounts,
    runs: RunSorter,
}

impl RunCounter {
    /// Begins. Keys keep their queries, and years make no difference to them.
    #[must_use]
    pub fn new(row_filter: RowFilter, build_options: BuildOptions) -> Self {
        Self {
            row_filter: by_uri(row_filter),
            rows: RowCounts::default(),
            runs: RunSorter::new(build_options.memory),
            build_options,
        }
    }

    /// Takes the rows of a file, whatever their order. Without a layout it is told by the first lines.
    pub fn add_file<R: Input + Send + Sync>(
        &mut self,
        file: R,
        layout: Option<Layout>,
        progress: &Progress,
    ) -> Result<(LineStats, Option<Damage>), HoldingsError> {
        let (row_filter, build_options) = (self.row_filter.clone(), self.build_options.clone());
        let take = |output: &mut RunOutput| {
            self.rows.append(&output.rows);
            self.runs.append(&output.runs)
        };
        process_file(file, layout, (&row_filter, &build_options), progress, take)
    }

    /// Takes runs that somebody else made, as lines.
    pub fn add_runs(&mut self, lines: &[u8]) -> Result<(), HoldingsError> {
        for (number, line) in (1..).zip(lines.split_inclusive(|&byte| byte == b'\n')) {
            if !self.runs.push_line(line)? {
                return Err(unreadable(number));
            }
        }
        Ok(())
    }

    /// Writes its runs as lines in order; what is left is what was counted by row.
    pub fn write(self, out: &mut impl Write) -> Result<Statistics, HoldingsError> {
        let mut text = Vec::new();
        self.runs.for_each(|key, summary| {
            write_run(key, summary, &mut text);
            flush_if_full(&mut text, WRITE_BYTES, out)
        })?;
        flush_if_full(&mut text, 0, out)?;
        Ok(Statistics {
            rows: self.rows,
            ..Statistics::default()
        })
    }

    /// Counts what is told of the paths of hosts, all of whose runs must be there, and writes the hosts as lines in order.
    pub fn count_paths(self, out: &mut impl Write) -> Result<Statistics, HoldingsError> {
        let mut found = Statistics {
            rows: self.rows,
            ..Statistics::default()
        };
        let mut pending_host = PendingHost::default();
        let mut text = Vec::new();
        self.runs.for_each(|key, summary| {
            if pending_host.host != host_of(key) {
                pending_host.end(&mut found, &mut text)?;
                flush_if_full(&mut text, WRITE_BYTES, out)?;
                pending_host.host.extend_from_slice(host_of(key));
            }
            pending_host
                .runs
                .push(key, summary.captures, summary.years, summary.first);
            if pending_host.runs.size() > self.build_options.memory {
                pending_host
                    .large
                    .spill(&mut pending_host.runs, pending_host.host.len())?;
            }
            Ok(())
        })?;
        pending_host.end(&mut found, &mut text)?;
        flush_if_full(&mut text, 0, out)?;
        Ok(found)
    }
}

/// The host that goes on, its runs, and those of them that did not fit in memory.
#[derive(Default)]
struct PendingHost {
    host: Vec<u8>,
    runs: Runs,
    tree: PathTree,
    large: LargeHost,
}

impl PendingHost {
    fn end(&mut self, out: &mut Statistics, lines: &mut Vec<u8>) -> Result<(), HoldingsError> {
        if self.host.is_empty() {
            return Ok(());
        }
        let (host, runs) = (&self.host, &mut self.runs);
        let totals = self
            .large
            .end_host(host, runs, &mut self.tree, &mut out.paths)?;
        let numbers = [totals.captures, totals.uris, totals.pages];
        write_numbers(&self.host, numbers, lines);
        self.host.clear();
        Ok(())
    }
}

/// Writes a text that has become large enough, and empties it.
fn flush_if_full(
    text: &mut Vec<u8>,
    limit: usize,
    out: &mut impl Write,
) -> Result<(), HoldingsError> {
    if text.len() > limit {
        out.write_all(text)?;
        text.clear();
    }
    Ok(())
}

/// Counts what is told of hosts, which come as lines in order, each once, all of a domain.
#[derive(Default)]
pub struct HostCounter {
    tree: HostTree,
    out: Statistics,
}

impl HostCounter {
    /// Takes lines as [`RunCounter::exact`] writes them.
    pub fn add_hosts(&mut self, lines: &[u8]) -> Result<(), HoldingsError> {
        for (number, line) in (1..).zip(lines.split_inclusive(|&byte| byte == b'\n')) {
            let Some((host, [captures, uris, pages])) = read_numbers(line) else {
                return Err(unreadable(number));
            };
            let totals = HostTotals {
                captures,
                uris,
                pages,
            };
            if !self.tree.push(host, totals, &mut self.out) {
                return Err(HoldingsError::Scattered {
                    host: host.to_vec(),
                });
            }
        }
        Ok(())
    }

    /// Everything that was counted.
    #[must_use]
    pub fn finish(mut self) -> Statistics {
        self.tree.finish(&mut self.out);
        self.out
    }
}

fn unreadable(line: u64) -> HoldingsError {
    HoldingsError::Unreadable {
        line,
        message: "expected a key and three numbers, as other machines write them".to_owned(),
    }
}
