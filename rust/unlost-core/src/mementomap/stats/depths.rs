//! Statistics of the tree of pages by depth, from rows in any order, with sketches and samples.
//!
//! The numbers of prefixes, pages and parents of a depth come from sketches. The median of pages per prefix comes from
//! a sample of prefixes, each with its own sketch. That sample rarely contains the few prefixes with most pages. These,
//! and the deviation, come from a sample of pages, most of which are below such prefixes.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::samples::BottomSample;
use super::sketches::DistinctCounter;
use super::statistics::{HOST_LEVELS, PATH_LEVELS};

pub(super) const LEVELS: usize = HOST_LEVELS + PATH_LEVELS;

/// Registers of the sketch of one prefix: the standard error is 3 %, and small numbers are exact.
const PREFIX_REGISTERS_LOG: u8 = 10;

/// The minimum number of sampled pages for an estimate about a prefix: the standard error is then 20 % (1 / √25).
const MIN_PAGES: u64 = 25;

/// The minimum number of pairs of pages below one prefix to estimate deviations from the sample of pages: the standard
/// error of the sum of squares is then 10 % (1 / √100). With fewer, the sample of prefixes is used.
const MIN_PAIRS: u64 = 100;

/// One depth of the tree.
struct LevelSketch {
    prefixes: DistinctCounter,
    /// Pages that reach this depth.
    pages: DistinctCounter,
    /// Parent nodes.
    parents: DistinctCounter,
    /// Pages of some prefixes.
    sample: BottomSample<DistinctCounter>,
}

/// The estimates of a depth. Unknown values are `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelEstimate {
    /// `H2`, `P3`.
    pub name: String,
    /// Distinct prefixes.
    pub prefixes: u64,
    /// See above.
    pub pages: u64,
    /// See above.
    pub parents: u64,
    /// Pages of the largest prefix.
    pub max: Option<u64>,
    /// The median of pages per prefix.
    pub median: f64,
    /// The standard deviation of pages per prefix.
    pub deviation: f64,
}

/// A sampled page: the hashes of its prefixes by depth, and the number of labels of its host.
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

/// A page's position: its prefixes from the first label on, and the number of labels of its host.
pub(super) struct PagePath<'a> {
    pub(super) page: u64,
    pub(super) host: u64,
    pub(super) labels: usize,
    pub(super) prefixes: &'a mut dyn Iterator<Item = (usize, u64)>,
}

impl Depths {
    /// With a sample of `pages` pages, half as many hosts, and a 32nd as many prefixes per depth.
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

    /// The sampled share of pages.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.pages.share()
    }

    /// Hosts by labels, pages by labels of their host, and pages by path segments; estimated from the totals.
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

    /// The estimates of each depth, H1 to H10, then P0 to P11.
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
    /// `sampled`: the number of sampled pages per prefix.
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
        // While all pages are sampled, the sample is exact.
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
            // The probability that two pages of one prefix are both sampled is the share squared.
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
