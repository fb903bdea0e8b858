//! All counts of statistics, before they are arranged in tables.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::histogram::Histogram;
use super::rows::{MONTHS, RowCounts, YEARS};
use super::top::{BusyHost, BusyPage, TopItems};

/// Host depths with a level of their own, H1 to H10: deeper ones count at the last.
pub(super) const HOST_LEVELS: usize = 10;

/// Path depths, P0 to P11.
pub(super) const PATH_LEVELS: usize = 12;

/// The maximum number of top-level domains that are counted separately. The root zone has fewer than 2,000.
const MAX_DOMAINS: usize = 50_000;

/// A top-level domain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Domain {
    /// Its label.
    pub name: Vec<u8>,
    /// Captures in the domain.
    pub captures: u64,
    /// URI-Rs.
    pub uris: u64,
    /// Pages: URI-Rs without their queries.
    pub pages: u64,
    /// Hosts.
    pub hosts: u64,
    /// Second-level domains.
    pub children: u64,
}

/// One depth of the tree: the pages of each prefix, and the children of each parent.
#[derive(Debug, Clone)]
pub struct Level<'a> {
    /// `H2`, `P3`.
    pub name: String,
    /// Pages by prefix.
    pub prefixes: &'a Histogram,
    /// Children by parent.
    pub children: &'a Histogram,
}

/// Counts within hosts, which can be added up.
#[derive(Debug, Clone)]
pub(super) struct PathCounts {
    /// URI-Rs by captures.
    pub(super) captures: Histogram,
    /// URI-Rs with captures of a year.
    pub(super) year_uris: Vec<u64>,
    /// URI-Rs whose first capture is of a month.
    pub(super) new_uris: Vec<u64>,
    /// Captures by segments of the path and parameters.
    pub(super) path_query: [u64; 36],
    /// Pages by depth.
    pub(super) page_depths: [u64; PATH_LEVELS],
    pub(super) prefixes: Vec<Histogram>,
    /// One more than the levels: the last stays empty.
    pub(super) children: Vec<Histogram>,
    pub(super) top: TopItems<BusyPage>,
}

impl Default for PathCounts {
    fn default() -> Self {
        Self {
            captures: Histogram::default(),
            year_uris: vec![0; YEARS],
            new_uris: vec![0; MONTHS],
            path_query: [0; 36],
            page_depths: [0; PATH_LEVELS],
            prefixes: vec![Histogram::default(); PATH_LEVELS],
            children: vec![Histogram::default(); PATH_LEVELS + 1],
            top: TopItems::default(),
        }
    }
}

impl PathCounts {
    pub(super) fn clear(&mut self) {
        self.captures.clear();
        self.year_uris.fill(0);
        self.new_uris.fill(0);
        self.path_query.fill(0);
        self.page_depths.fill(0);
        for histogram in self.prefixes.iter_mut().chain(&mut self.children) {
            histogram.clear();
        }
        self.top.clear();
    }

    pub(super) fn append(&mut self, other: &mut Self) {
        self.captures.append(&other.captures);
        let sums = [
            (&mut self.year_uris[..], &other.year_uris[..]),
            (&mut self.new_uris, &other.new_uris),
            (&mut self.path_query, &other.path_query),
            (&mut self.page_depths, &other.page_depths),
        ];
        for (into, more) in sums {
            for (into, more) in into.iter_mut().zip(more) {
                *into += more;
            }
        }
        let histograms = self.prefixes.iter_mut().chain(&mut self.children);
        for (into, more) in histograms.zip(other.prefixes.iter().chain(&other.children)) {
            into.append(more);
        }
        self.top.append(&mut other.top);
    }
}

/// The statistics of indexes.
#[derive(Debug, Clone)]
pub struct Statistics {
    /// Counts by row.
    pub rows: RowCounts,
    /// Distinct URI-Rs.
    pub uris: u64,
    /// See above.
    pub pages: u64,
    /// See above.
    pub hosts: u64,
    /// Hosts that are IP addresses, all together.
    pub ip: Domain,
    /// Hosts by number of labels; index 0 is empty, and the last is for more than there are levels.
    pub hosts_by_depth: Vec<u64>,
    /// Pages by number of labels of their host.
    pub pages_by_host_depth: Vec<u64>,
    pub(super) paths: PathCounts,
    pub(super) domains: HashMap<Vec<u8>, Domain, FixedState>,
    pub(super) host_prefixes: Vec<Histogram>,
    pub(super) host_children: Vec<Histogram>,
    pub(super) top_hosts: TopItems<BusyHost>,
}

impl Default for Statistics {
    fn default() -> Self {
        Self {
            rows: RowCounts::default(),
            uris: 0,
            pages: 0,
            hosts: 0,
            ip: Domain::default(),
            hosts_by_depth: vec![0; HOST_LEVELS + 2],
            pages_by_host_depth: vec![0; HOST_LEVELS + 2],
            paths: PathCounts::default(),
            domains: HashMap::default(),
            host_prefixes: vec![Histogram::default(); HOST_LEVELS + 2],
            host_children: vec![Histogram::default(); HOST_LEVELS + 2],
            top_hosts: TopItems::default(),
        }
    }
}

impl Statistics {
    pub(super) fn add_domain(&mut self, domain: &Domain) {
        let is_full = self.domains.len() >= MAX_DOMAINS;
        let name = if is_full && !self.domains.contains_key(&domain.name) {
            "…".as_bytes().to_vec()
        } else {
            domain.name.clone()
        };
        let known = self.domains.entry(name.clone()).or_default();
        known.name = name;
        known.captures += domain.captures;
        known.uris += domain.uris;
        known.pages += domain.pages;
        known.hosts += domain.hosts;
        known.children += domain.children;
    }

    /// Top-level domains by name.
    #[must_use]
    pub fn domains(&self) -> Vec<&Domain> {
        let mut domains: Vec<&Domain> = self.domains.values().collect();
        domains.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        domains
    }

    /// All depths, H1 to H10 and P0 to P11. H1 contains only IP addresses: the others are in the list of top-level
    /// domains.
    #[must_use]
    pub fn levels(&self) -> Vec<Level<'_>> {
        let hosts = (1..=HOST_LEVELS).map(|level| Level {
            name: format!("H{level}"),
            prefixes: &self.host_prefixes[level],
            children: &self.host_children[level],
        });
        let paths = (0..PATH_LEVELS).map(|level| Level {
            name: format!("P{level}"),
            prefixes: &self.paths.prefixes[level],
            children: &self.paths.children[level],
        });
        hosts.chain(paths).collect()
    }

    /// URI-Rs by number of captures.
    #[must_use]
    pub fn captures(&self) -> &Histogram {
        &self.paths.captures
    }

    /// URI-Rs with captures of each year.
    #[must_use]
    pub fn year_uris(&self) -> &[u64] {
        &self.paths.year_uris
    }

    /// URI-Rs whose first capture is of each month.
    #[must_use]
    pub fn new_uris(&self) -> &[u64] {
        &self.paths.new_uris
    }

    /// Captures by segments of the path (from 0, five and more together) and, for each of these, by parameters.
    #[must_use]
    pub fn path_query(&self) -> &[u64] {
        &self.paths.path_query
    }

    /// Pages by depth of the path, eleven and more together.
    #[must_use]
    pub fn page_depths(&self) -> &[u64] {
        &self.paths.page_depths
    }

    /// The most archived URI-Rs.
    #[must_use]
    pub fn busy_pages(&self) -> Vec<BusyPage> {
        self.paths.top.first()
    }

    /// The most archived hosts.
    #[must_use]
    pub fn busy_hosts(&self) -> Vec<BusyHost> {
        self.top_hosts.first()
    }
}
