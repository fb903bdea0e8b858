//! The depths of the tree of pages, of which rows come in any order: what sketches and samples tell of them.
//!
//! How many prefixes a depth has, pages that reach it and parents, sketches tell. How many pages the prefix in the middle
//! has is told by a sample of prefixes, each with a sketch of its own. It hardly ever has those few in it that have most
//! pages: these, and so how far prefixes lie apart, are told by a sample of pages, of which most lie below such prefixes.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::samples::BottomSample;
use super::sketches::DistinctCounter;
use super::statistics::{HOST_LEVELS, PATH_LEVELS};

pub(super) const LEVELS: usize = HOST_LEVELS + PATH_LEVELS;

/// Registers of the sketch of one prefix: the standard error is 3 %, and small numbers are exact.
const PREFIX_REGISTERS_LOG: u8 = 10;

/// A prefix with fewer pages in the sample has nothing told of it: with so many the standard error is a fifth.
const MIN_PAGES: u64 = 25;

/// With fewer pairs of pages below one prefix deviations are those of the sample of prefixes: with so many that of the
/// sum of squares is a tenth.
const MIN_PAIRS: u64 = 100;

/// One depth of the tree.
struct LevelSketch {
    prefixes: DistinctCounter,
    /// Pages that reach this depth.
    pages: DistinctCounter,
    /// Nodes above with children.
    parents: DistinctCounter,
    /// Pages of some prefixes.
    sample: BottomSample<DistinctCounter>,
}

/// What is told of a depth. What is not known is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelEstimate {
    /// `H2`, `P3`.
    pub name: String,
    /// Prefixes, pages that reach this depth, nodes above with children.
    pub prefixes: u64,
    /// See above.
    pub pages: u64,
    /// See above.
    pub parents: u64,
    /// Pages of the prefix with most of them.
    pub max: Option<u64>,
    /// Pages of the prefix in the middle.
    pub median: f64,
    /// How far pages of prefixes lie from their mean.
    pub deviation: f64,
}

/// A page of the sample: the hashes of its prefixes by depth, and how many labels its host has.
struct Page {
    prefix_hashes: Vec<(usize, u64)>,
    labels: usize,
}

/// All depths.
pub struct Depths {
    levels: Vec<LevelSketch>,
    pages: BottomSample<Page>,
    /// Labels of some hosts.
    hosts: BottomSample<usize>,
    prefix_hashes: Vec<(usize, u64)>,
}

/// Where a page lies: its prefixes from the first label on, and how many labels its host has.
pub(super) struct PagePath<'a> {
    pub(super) page: u64,
    pub(super) host: u64,
    pub(super) labels: usize,
    pub(super) prefixes: &'a mut dyn Iterator<Item = (usize, u64)>,
}

impl Depths {
    /// With a sample of so many pages, and half as many hosts; of prefixes a 32nd of that for each depth.
    pub(super) fn new(pages: usize) -> Self {
        let level = || LevelSketch {
            prefixes: DistinctCounter::default(),
            pages: DistinctCounter::default(),
            parents: DistinctCounter::default(),
            sample: BottomSample::new((pages / 32).max(16)),
        };
        Self {
            levels: (0..LEVELS).map(|_| level()).collect(),
            pages: BottomSample::new(pages),
            hosts: BottomSample::new((pages / 2).max(16)),
            prefix_hashes: Vec::with_capacity(LEVELS),
        }
    }

    pub(super) fn add(&mut self, page_path: PagePath<'_>) {
        self.prefix_hashes.clear();
        self.prefix_hashes.extend(page_path.prefixes);
        let mut above = 0;
        for &(level, hash) in &self.prefix_hashes {
            let sketch = &mut self.levels[level];
            sketch.prefixes.add(hash);
            sketch.pages.add(page_path.page);
            sketch.parents.add(above);
            let counted = sketch
                .sample
                .add(hash, || DistinctCounter::small(PREFIX_REGISTERS_LOG));
            if let Some(pages) = counted {
                pages.add(page_path.page);
            }
            above = hash;
        }
        self.hosts.add(page_path.host, || page_path.labels);
        self.pages.add(page_path.page, || Page {
            prefix_hashes: self.prefix_hashes.clone(),
            labels: page_path.labels,
        });
    }

    /// The share of pages that is in the sample.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.pages.share()
    }

    /// Hosts by labels, pages by labels of their host, pages by segments of their path; about, of so many.
    #[must_use]
    pub fn exact(&self, hosts: u64, pages: u64) -> [Vec<u64>; 3] {
        let mut counts = [
            vec![0; HOST_LEVELS + 2],
            vec![0; HOST_LEVELS + 2],
            vec![0; PATH_LEVELS],
        ];
        for &labels in self.hosts.values() {
            counts[0][labels.min(HOST_LEVELS + 1)] += 1;
        }
        for page in self.pages.values() {
            counts[1][page.labels.min(HOST_LEVELS + 1)] += 1;
            let segments = page
                .prefix_hashes
                .last()
                .map_or(0, |page_path| page_path.0 - HOST_LEVELS);
            counts[2][segments] += 1;
        }
        let totals = [hosts, pages, pages];
        for (counts, total) in counts.iter_mut().zip(totals) {
            let all: u64 = counts.iter().sum();
            for count in counts.iter_mut() {
                *count = scaled(*count, total, all.max(1));
            }
        }
        counts
    }

    /// What is told of each depth, H1 to H10, then P0 to P11.
    #[must_use]
    pub fn levels(&self) -> Vec<LevelEstimate> {
        let mut by_prefix: Vec<HashMap<u64, u64, FixedState>> = vec![HashMap::default(); LEVELS];
        for page in self.pages.values() {
            for &(level, hash) in &page.prefix_hashes {
                *by_prefix[level].entry(hash).or_default() += 1;
            }
        }
        let share = self.pages.share();
        let levels = self.levels.iter().zip(by_prefix).enumerate();
        levels
            .map(|(at, (level, pages))| level.estimate(name_of(at), &pages, share))
            .collect()
    }
}

impl LevelSketch {
    /// `sampled`: how many pages of the sample each prefix has.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    fn estimate(
        &self,
        name: String,
        sampled: &HashMap<u64, u64, FixedState>,
        share: f64,
    ) -> LevelEstimate {
        let is_whole = share >= 1.0;
        // While all pages are in the sample, it says all that there is to say.
        let (prefixes, pages, mut sizes) = if is_whole {
            let sizes: Vec<u64> = sampled.values().copied().collect();
            (sizes.len() as u64, sizes.iter().sum(), sizes)
        } else {
            let prefixes = self.prefixes.estimate().0;
            let sizes = self.sample.values().map(|pages| pages.estimate().0.max(1));
            (
                prefixes,
                self.pages.estimate().0.max(prefixes),
                sizes.collect(),
            )
        };
        sizes.sort_unstable();
        let count = sizes.len();
        let median = match count {
            0 => 0.0,
            _ => (sizes[(count - 1) / 2] + sizes[count / 2]) as f64 / 2.0,
        };
        let largest = sampled.values().copied().max().unwrap_or(0);
        let tells = is_whole || largest >= MIN_PAGES;
        let max = tells.then(|| (largest as f64 / share).round() as u64);
        let pairs: u64 = sampled.values().map(|many| many * (many - 1) / 2).sum();
        let mean = pages as f64 / prefixes.max(1) as f64;
        let squares = if is_whole || pairs >= MIN_PAIRS {
            // Two pages of one prefix are both in the sample as often as its share squared.
            let of_pairs = 2.0 * pairs as f64 / (share * share) + pages as f64;
            of_pairs / prefixes.max(1) as f64
        } else {
            let sum: f64 = sizes.iter().map(|&size| (size as f64).powi(2)).sum();
            sum / count.max(1) as f64
        };
        LevelEstimate {
            name,
            prefixes,
            pages,
            parents: self.parents.estimate().0,
            max,
            median,
            deviation: (squares - mean * mean).max(0.0).sqrt(),
        }
    }
}

fn scaled(count: u64, total: u64, all: u64) -> u64 {
    let product = u128::from(count) * u128::from(total) + u128::from(all / 2);
    u64::try_from(product / u128::from(all)).unwrap_or(u64::MAX)
}

/// The name of a depth.
fn name_of(level: usize) -> String {
    if level < HOST_LEVELS {
        format!("H{}", level + 1)
    } else {
        format!("P{}", level - HOST_LEVELS)
    }
}
