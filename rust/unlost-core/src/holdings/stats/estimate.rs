//! The same of indexes in any order: what needs every URI-R's rows together is estimated.
//!
//! Rows are counted as ever. Different things are counted by sketches. What is told of URI-Rs is told of a sample: those
//! whose hashes are lowest, all of whose rows are seen, wherever they stand.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::path_tree::{depth, shape_of};
use super::reading::{harvested, of_uris};
use super::rows::RowCounts;
use super::runs::{NO_MONTH, Run, RunHarvest, host_of};
use super::sketches::{Distinct, Frequent};
use super::statistics::{HOST_LEVELS, PATH_LEVELS};
use crate::formats::{Damage, Input, Layout, Row};
use crate::holdings::collect::tally_file;
use crate::holdings::filter::xxh64;
use crate::holdings::scan::Wanted;
use crate::holdings::{Effort, HoldingsError, Progress, Tally};
use crate::uri::Segments;

/// So many URI-Rs are in the sample at least, once there are so many.
const SAMPLED: usize = 1 << 16;

/// How many keys are remembered to find the most frequent ones.
const REMEMBERED: usize = 1 << 16;

/// More top-level domains than these are not told apart.
const MOST_DOMAINS: usize = 50_000;

const LEVELS: usize = HOST_LEVELS + PATH_LEVELS;

/// A URI-R of the sample.
#[derive(Debug, Clone, Copy)]
pub struct Sampled {
    /// Its captures.
    pub captures: u64,
    /// Their years, a bit each.
    pub years: u64,
    /// The month of the first.
    pub first: u16,
}

/// One depth of the tree.
#[derive(Clone, Default)]
pub struct LevelSketch {
    /// Prefixes, pages that reach this depth, nodes above with children.
    pub prefixes: Distinct,
    /// See above.
    pub pages: Distinct,
    /// See above.
    pub parents: Distinct,
}

/// What was counted, and what was estimated.
pub struct Estimates {
    /// By row.
    pub rows: RowCounts,
    /// URI-Rs, pages and hosts.
    pub uris: Distinct,
    /// See above.
    pub pages: Distinct,
    /// See above.
    pub hosts: Distinct,
    /// Hosts that are IP addresses.
    pub ips: Distinct,
    /// Captures of them.
    pub ip_captures: u64,
    /// Captures by top-level domain.
    pub domains: HashMap<Vec<u8>, u64, FixedState>,
    /// Captures by segments and parameters.
    pub path_query: [u64; 36],
    /// The most archived URI-Rs and hosts.
    pub top_uris: Frequent,
    /// See above.
    pub top_hosts: Frequent,
    /// H1 to H10, then P0 to P11.
    pub levels: Vec<LevelSketch>,
    sample: HashMap<u64, Sampled, FixedState>,
    /// Only URI-Rs whose hash is lower are in the sample.
    below: u64,
}

impl Default for Estimates {
    fn default() -> Self {
        Self {
            rows: RowCounts::default(),
            uris: Distinct::default(),
            pages: Distinct::default(),
            hosts: Distinct::default(),
            ips: Distinct::default(),
            ip_captures: 0,
            domains: HashMap::default(),
            path_query: [0; 36],
            top_uris: Frequent::new(REMEMBERED),
            top_hosts: Frequent::new(REMEMBERED),
            levels: vec![LevelSketch::default(); LEVELS],
            sample: HashMap::default(),
            below: u64::MAX,
        }
    }
}

impl Estimates {
    /// The share of URI-Rs that is in the sample, and these.
    #[allow(clippy::cast_precision_loss)]
    pub fn sample(&self) -> (f64, impl Iterator<Item = &Sampled>) {
        (self.below as f64 / u64::MAX as f64, self.sample.values())
    }

    /// Names of the levels, in their order.
    pub fn level_names() -> impl Iterator<Item = String> {
        let hosts = (1..=HOST_LEVELS).map(|level| format!("H{level}"));
        hosts.chain((0..PATH_LEVELS).map(|level| format!("P{level}")))
    }

    fn see(&mut self, key: &[u8], run: &Run) {
        let hash = xxh64(key);
        self.uris.see(hash);
        self.draw(hash, run);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.top_uris
            .see(text(&key[..key.len().min(500)]), run.captures);
        let host = host_of(key);
        let tail = &key[host.len()..];
        let path = &tail[..memchr::memchr(b'?', tail).unwrap_or(tail.len())];
        self.path_query[shape_of(path, tail)] += run.captures;
        let name = host.strip_suffix(b")").unwrap_or(host);
        self.top_hosts.see(text(name), run.captures);
        self.hosts.see(xxh64(name));
        let page = &key[..host.len() + path.len()];
        let page_hash = xxh64(page);
        self.pages.see(page_hash);
        let segments = Segments::of(page);
        if segments.is_ip() {
            self.ips.see(xxh64(name));
            self.ip_captures += run.captures;
        } else {
            let top = &name[..memchr::memchr(b',', name).unwrap_or(name.len())];
            if let Some(count) = self.domains.get_mut(top) {
                *count += run.captures;
            } else {
                let is_full = self.domains.len() >= MOST_DOMAINS;
                let top = if is_full { "…".as_bytes() } else { top };
                *self.domains.entry(top.to_vec()).or_default() += run.captures;
            }
        }
        self.see_tree(&segments, page, name.len(), depth(path), page_hash);
    }

    /// Counts all prefixes of a page. Children of a node make it a parent.
    fn see_tree(
        &mut self,
        segments: &Segments<'_>,
        page: &[u8],
        host_len: usize,
        path_depth: usize,
        page_hash: u64,
    ) {
        let stems = segments.host_stems().map(|stem| stem - 1);
        let mut above = 0;
        for (level, end) in stems.chain([host_len]).take(HOST_LEVELS).enumerate() {
            above = self.see_level(level, &page[..end], above, page_hash);
        }
        // Behind the slash of the root, a segment ends at each further one.
        let root = host_len + 1;
        above = self.see_level(HOST_LEVELS, &page[..root], above, page_hash);
        let slashes = memchr::memchr_iter(b'/', &page[root..])
            .skip(1)
            .map(|slash| root + slash)
            .chain([page.len()]);
        for (level, end) in slashes.take(path_depth.min(PATH_LEVELS - 1)).enumerate() {
            above = self.see_level(HOST_LEVELS + 1 + level, &page[..end], above, page_hash);
        }
    }

    fn see_level(&mut self, level: usize, prefix: &[u8], above: u64, page: u64) -> u64 {
        let hash = xxh64(prefix);
        let sketch = &mut self.levels[level];
        sketch.prefixes.see(hash);
        sketch.pages.see(page);
        sketch.parents.see(above);
        hash
    }

    fn draw(&mut self, hash: u64, run: &Run) {
        if hash >= self.below {
            return;
        }
        let known = self.sample.entry(hash).or_insert(Sampled {
            captures: 0,
            years: 0,
            first: NO_MONTH,
        });
        known.captures += run.captures;
        known.years |= run.years;
        known.first = known.first.min(run.first);
        if self.sample.len() >= 2 * SAMPLED {
            let mut hashes: Vec<u64> = self.sample.keys().copied().collect();
            let (_, middle, _) = hashes.select_nth_unstable(SAMPLED);
            self.below = *middle;
            let below = self.below;
            self.sample.retain(|hash, _| *hash < below);
        }
    }
}

/// Estimates what is told of indexes.
pub struct Estimator {
    wanted: Wanted,
    effort: Effort,
    out: Estimates,
}

impl Estimator {
    /// Begins. Keys keep their queries, and years make no difference to them.
    #[must_use]
    pub fn new(wanted: Wanted, effort: Effort) -> Self {
        let wanted = of_uris(wanted);
        Self {
            wanted,
            effort,
            out: Estimates::default(),
        }
    }

    /// Takes the rows of a file, whatever their order. Without a layout it is told by the first lines.
    pub fn add_file<R: Input + Send + Sync>(
        &mut self,
        file: R,
        layout: Option<Layout>,
        progress: &Progress,
    ) -> Result<(Tally, Option<Damage>), HoldingsError> {
        let (wanted, effort) = (self.wanted.clone(), self.effort.clone());
        let take = |harvest: &mut RunHarvest| {
            take(&mut self.out, harvest);
            Ok(())
        };
        tally_file(file, layout, (&wanted, &effort), progress, take)
    }

    /// Takes rows that were read elsewhere.
    pub fn add_rows<'a>(
        &mut self,
        rows: impl Iterator<Item = Row<'a>>,
    ) -> Result<Tally, HoldingsError> {
        let (tally, harvest) = harvested::<RunHarvest>(rows, &self.wanted, &self.effort)?;
        take(&mut self.out, &harvest);
        Ok(tally)
    }

    /// Everything that was counted and estimated.
    #[must_use]
    pub fn finish(self) -> Estimates {
        self.out
    }
}

fn take(out: &mut Estimates, harvest: &RunHarvest) {
    out.rows.append(&harvest.rows);
    for at in 0..harvest.runs.len() {
        let run = harvest.runs.get(at);
        out.see(harvest.runs.key(run), run);
    }
}
