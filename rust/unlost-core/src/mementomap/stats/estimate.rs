//! Estimated statistics of unsorted indexes, for everything that needs all rows of a URI-R together.
//!
//! Rows are counted exactly. Distinct items are counted by sketches. Statistics of URI-Rs come from a sample: those
//! with the lowest hashes, all of whose rows are seen in any order. The same holds for pages and prefixes.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::depths::{Depths, PagePath};
use super::path_tree::{depth, shape_of};
use super::row_input::{by_uri, process_rows};
use super::rows::RowCounts;
use super::runs::{NO_MONTH, Run, RunOutput, host_of};
use super::samples::BottomSample;
use super::sketches::{DistinctCounter, FrequentItems};
use super::statistics::{HOST_LEVELS, PATH_LEVELS};
use super::top::truncate_key;
use crate::index::Layout;
use crate::index::Row;
use crate::input::Damage;
use crate::input::Input;
use crate::mementomap::filter::xxh64;
use crate::mementomap::in_order_sink::process_file;
use crate::mementomap::row_filter::RowFilter;
use crate::mementomap::{BuildOptions, HoldingsError, LineStats, Progress};
use crate::uri::Segments;

/// The minimum number of sampled URI-Rs. If there are fewer, all of them are sampled.
const SAMPLED: usize = 1 << 16;

/// The number of most archived URI-Rs and hosts that are reported.
const MAX_REPORTED: usize = 100;

/// The number of keys that are tracked to find the most frequent ones.
const TRACKED_KEYS: usize = 1 << 16;

/// The maximum number of top-level domains that are distinguished.
const MAX_DOMAINS: usize = 50_000;

/// A sampled URI-R.
#[derive(Debug, Clone, Copy)]
pub struct Sampled {
    /// The number of its captures.
    pub captures: u64,
    /// The years of its captures, one bit each.
    pub years: u64,
    /// The month of its first capture.
    pub first: u16,
    /// The hash of its host.
    host: u64,
}

/// A URI-R with many captures.
#[derive(Debug, Clone, PartialEq)]
pub struct BusyUri {
    /// Its key, truncated if it is very long.
    pub key: String,
    /// A lower bound of its captures.
    pub captures: u64,
    /// The number of other sampled URI-Rs of its host.
    pub others: u64,
    /// See above.
    pub others_captures: u64,
}

/// Counts and estimates.
pub struct Estimates {
    /// Counts by row.
    pub rows: RowCounts,
    /// Distinct URI-Rs.
    pub uris: DistinctCounter,
    /// See above.
    pub pages: DistinctCounter,
    /// See above.
    pub hosts: DistinctCounter,
    /// Hosts that are IP addresses.
    pub ips: DistinctCounter,
    /// Captures of hosts that are IP addresses.
    pub ip_captures: u64,
    /// Captures by top-level domain.
    pub domains: HashMap<Vec<u8>, u64, FixedState>,
    /// Captures by segments and parameters.
    pub path_query: [u64; 36],
    /// The most archived URI-Rs.
    pub top_uris: FrequentItems,
    /// See above.
    pub top_hosts: FrequentItems,
    /// The tree of pages, by depth.
    pub depths: Depths,
    /// URI-Rs by their hashes.
    pub sample: BottomSample<Sampled>,
}

impl Estimates {
    /// With at least `sampled` URI-Rs in the sample.
    fn new(sampled: usize) -> Self {
        Self {
            rows: RowCounts::default(),
            uris: DistinctCounter::default(),
            pages: DistinctCounter::default(),
            hosts: DistinctCounter::default(),
            ips: DistinctCounter::default(),
            ip_captures: 0,
            domains: HashMap::default(),
            path_query: [0; 36],
            top_uris: FrequentItems::new(TRACKED_KEYS),
            top_hosts: FrequentItems::new(TRACKED_KEYS),
            depths: Depths::new(sampled / 2),
            sample: BottomSample::new(sampled),
        }
    }

    /// The most archived URI-Rs, with the sample of their hosts.
    #[must_use]
    pub fn busy_uris(&self) -> Vec<BusyUri> {
        let top = self.top_uris.first(MAX_REPORTED);
        let hashes = |key: &str| (xxh64(host_of(key.as_bytes())), xxh64(key.as_bytes()));
        let mut of_host: HashMap<u64, Vec<(u64, u64)>, FixedState> = HashMap::default();
        for (key, ..) in &top {
            of_host.insert(hashes(key).0, Vec::new());
        }
        for (hash, uri) in self.sample.pairs() {
            if let Some(uris) = of_host.get_mut(&uri.host) {
                uris.push((hash, uri.captures));
            }
        }
        top.into_iter()
            .map(|(key, captures, _)| {
                let (host, own) = hashes(&key);
                let others = of_host[&host].iter().filter(|(hash, _)| *hash != own);
                BusyUri {
                    others: others.clone().count() as u64,
                    others_captures: others.map(|(_, captures)| captures).sum(),
                    key,
                    captures,
                }
            })
            .collect()
    }

    /// The most archived hosts, with lower and upper bounds of their captures.
    #[must_use]
    pub fn busy_hosts(&self) -> Vec<(String, u64, u64)> {
        self.top_hosts.first(MAX_REPORTED)
    }

    fn add(&mut self, key: &[u8], run: &Run) {
        let hash = xxh64(key);
        self.uris.add(hash);
        let host = host_of(key);
        self.add_sample(hash, xxh64(host), run);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.top_uris.add(text(truncate_key(key)), run.captures);
        let tail = &key[host.len()..];
        let path = &tail[..memchr::memchr(b'?', tail).unwrap_or(tail.len())];
        self.path_query[shape_of(path, tail)] += run.captures;
        let name = host.strip_suffix(b")").unwrap_or(host);
        self.top_hosts.add(text(truncate_key(name)), run.captures);
        self.hosts.add(xxh64(name));
        let page = &key[..host.len() + path.len()];
        let page_hash = xxh64(page);
        self.pages.add(page_hash);
        let segments = Segments::of(page);
        if segments.is_ip() {
            self.ips.add(xxh64(name));
            self.ip_captures += run.captures;
        } else {
            let top = truncate_key(&name[..memchr::memchr(b',', name).unwrap_or(name.len())]);
            if let Some(count) = self.domains.get_mut(top) {
                *count += run.captures;
            } else {
                let is_full = self.domains.len() >= MAX_DOMAINS;
                let top = if is_full { "…".as_bytes() } else { top };
                *self.domains.entry(top.to_vec()).or_default() += run.captures;
            }
        }
        self.add_to_tree(&segments, page, name, depth(path), page_hash);
    }

    /// Counts all prefixes of a page. A node with children is a parent.
    fn add_to_tree(
        &mut self,
        segments: &Segments<'_>,
        page: &[u8],
        host: &[u8],
        path_depth: usize,
        page_hash: u64,
    ) {
        let stems = segments.host_stems().map(|stem| stem - 1);
        let labels = segments.host_stems().count() + 1;
        let hosts = stems.chain([host.len()]).take(HOST_LEVELS).enumerate();
        // After the slash of the root, a segment ends at each further one.
        let root = host.len() + 1;
        let slashes = memchr::memchr_iter(b'/', &page[root..])
            .skip(1)
            .map(|slash| root + slash)
            .chain([page.len()]);
        let paths = slashes.take(path_depth.min(PATH_LEVELS - 1));
        let below = (HOST_LEVELS..).zip([root].into_iter().chain(paths));
        self.depths.add(PagePath {
            page: page_hash,
            host: xxh64(host),
            labels,
            prefixes: &mut hosts
                .chain(below)
                .map(|(level, end)| (level, xxh64(&page[..end]))),
        });
    }

    fn add_sample(&mut self, hash: u64, host: u64, run: &Run) {
        let unseen = || Sampled {
            captures: 0,
            years: 0,
            first: NO_MONTH,
            host,
        };
        if let Some(known) = self.sample.add(hash, unseen) {
            known.captures += run.captures;
            known.years |= run.years;
            known.first = known.first.min(run.first);
        }
    }
}

/// Estimates statistics of indexes.
pub struct Estimator {
    row_filter: RowFilter,
    build_options: BuildOptions,
    out: Estimates,
}

impl Estimator {
    /// Creates an estimator. Keys retain their queries, and `by_year` has no effect. `sampled`: the minimum number of
    /// sampled URI-Rs, if not the default.
    #[must_use]
    pub fn new(row_filter: RowFilter, build_options: BuildOptions, sampled: Option<usize>) -> Self {
        let row_filter = by_uri(row_filter);
        Self {
            row_filter,
            build_options,
            out: Estimates::new(sampled.unwrap_or(SAMPLED)),
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
            take(&mut self.out, output);
            Ok(())
        };
        process_file(file, layout, (&row_filter, &build_options), progress, take)
    }

    /// Takes rows that were parsed elsewhere.
    pub fn add_rows<'a>(
        &mut self,
        rows: impl Iterator<Item = Row<'a>>,
    ) -> Result<LineStats, HoldingsError> {
        let (line_stats, output) =
            process_rows::<RunOutput>(rows, &self.row_filter, &self.build_options)?;
        take(&mut self.out, &output);
        Ok(line_stats)
    }

    /// All counts and estimates.
    #[must_use]
    pub fn finish(self) -> Estimates {
        self.out
    }
}

fn take(out: &mut Estimates, output: &RunOutput) {
    out.rows.append(&output.rows);
    for at in 0..output.runs.len() {
        let run = output.runs.get(at);
        out.add(output.runs.key(run), run);
    }
}
