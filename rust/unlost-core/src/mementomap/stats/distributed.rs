//! Exact statistics of an index that is read by many machines in any order. Each machine counts its rows and writes
//! runs; the runs of a host, and then the hosts of a domain, are combined in further steps.
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
use crate::index::Layout;
use crate::input::Damage;
use crate::input::Input;
use crate::mementomap::in_order_sink::process_file;
use crate::mementomap::row_filter::RowFilter;
use crate::mementomap::{BuildOptions, HoldingsError, LineStats, Progress};

/// Bytes per write.
const WRITE_BYTES: usize = 1 << 20;

/// Counts rows where they are read, or combines runs.
pub struct RunCounter {
    row_filter: RowFilter,
    build_options: BuildOptions,
    rows: RowCounts,
    runs: RunSorter,
}

impl RunCounter {
    /// Creates a counter. Keys retain their queries, and `by_year` has no effect.
    #[must_use]
    pub fn new(row_filter: RowFilter, build_options: BuildOptions) -> Self {
        Self {
            row_filter: by_uri(row_filter),
            rows: RowCounts::default(),
            runs: RunSorter::new(build_options.memory),
            build_options,
        }
    }

    /// Takes the rows of a file in any order. Without a layout it is detected from the first lines.
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

    /// Takes runs of other machines, as lines.
    pub fn add_runs(&mut self, lines: &[u8]) -> Result<(), HoldingsError> {
        for (number, line) in (1..).zip(lines.split_inclusive(|&byte| byte == b'\n')) {
            if !self.runs.push_line(line)? {
                return Err(unreadable(number));
            }
        }
        Ok(())
    }

    /// Writes its runs as sorted lines; returns the row statistics.
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

    /// Counts the paths of hosts, all of whose runs must be present, and writes the hosts as sorted lines.
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

/// The current host, its runs, and those that did not fit in memory.
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

/// Writes and clears a text that has become large enough.
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

/// Counts hosts from sorted, unique lines that contain whole domains.
#[derive(Default)]
pub struct HostCounter {
    tree: HostTree,
    out: Statistics,
}

impl HostCounter {
    /// Takes lines of [`RunCounter::count_paths`].
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

    /// All counts.
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
