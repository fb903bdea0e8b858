//! The hosts of a synthetic index, in byte order: top-level domains, domains, and the hosts below them.

use std::io::{self, Write};

use super::labels::{Labels, push_syllables};
use super::random::Random;
use super::rows::Rows;
use super::site::{Extent, Site};
use super::tables::{HOST_BRANCHING, KEYS_PER_DOMAIN, LINES_PER_KEY_PERCENT, ROOTS};

/// The root that contains the host of a requested size.
const LARGEST_UNDER: &str = "com";

/// The maximum share of the lines in one domain or host, plus a constant that leaves small indexes unrestricted: Table
/// 8 of the second paper has a tenth for the largest domain and 0.2 % for the largest host.
const DOMAIN_PART: u64 = 10;
const HOST_PART: u64 = 100;
const ALWAYS_ALLOWED: u64 = 20_000;

pub(super) struct Hosts<W: Write> {
    random: Random,
    rows: Rows<W>,
    lines: u64,
    /// The labels from the root on.
    key: Vec<u8>,
}

impl<W: Write> Hosts<W> {
    pub(super) fn new(lines: u64, random: Random, rows: Rows<W>) -> Self {
        Self {
            random,
            rows,
            lines,
            key: Vec::new(),
        }
    }

    /// Writes all lines, with one host of `largest` keys if requested; not more keys than lines.
    pub(super) fn write(mut self, largest: Option<u64>) -> io::Result<()> {
        let largest = largest.map(|keys| self.largest_extent(keys));
        let shared = self.lines - largest.map_or(0, |extent| extent.lines);
        let all: u64 = ROOTS.iter().map(|(_, share)| share).sum();
        let part = |share: u64| u128::from(shared) * u128::from(share) / u128::from(all);
        let mut before = 0;
        for (root, share) in ROOTS {
            // As a difference of sums, so that nothing is lost by rounding.
            let lines = part(before + share) - part(before);
            before += share;
            let mut lines = u64::try_from(lines).unwrap_or(u64::MAX);
            self.key.clear();
            self.key.extend_from_slice(root.as_bytes());
            let largest = largest.filter(|_| root == LARGEST_UNDER);
            lines += largest.map_or(0, |extent| extent.lines);
            self.root(lines, largest)?;
        }
        self.rows.finish()
    }

    /// The number of lines by the papers' shares, unless that leaves less than a quarter for the other hosts.
    fn largest_extent(&self, keys: u64) -> Extent {
        let natural = (keys.saturating_mul(LINES_PER_KEY_PERCENT) / 100).max(keys + 1);
        let lines = natural.min(self.lines / 4 * 3).max(keys);
        #[allow(clippy::cast_precision_loss)] // a share
        let density = (lines - keys) as f64 / (natural - keys) as f64;
        Extent {
            lines,
            keys: Some(keys),
            density,
        }
    }

    /// Writes `lines` lines under a root.
    fn root(&mut self, lines: u64, mut largest: Option<Extent>) -> io::Result<()> {
        let mut labels = Labels::words(lines);
        let mut left = lines;
        let start = self.key.len();
        while left > 0 {
            let lines_per_domain = KEYS_PER_DOMAIN * LINES_PER_KEY_PERCENT / 100;
            // The distribution is skewed: most domains are smaller than the mean.
            let expected = left / lines_per_domain + 8;
            self.key.push(b',');
            labels.push(expected, left, &mut self.random, &mut self.key);
            self.lengthen();
            left -= match largest.take() {
                Some(extent) => self.site(0, extent)?,
                None => self.node(0, left.min(self.lines / DOMAIN_PART + ALWAYS_ALLOWED))?,
            };
            self.key.truncate(start);
        }
        Ok(())
    }

    fn lengthen(&mut self) {
        let bits = self.random.bits();
        match bits & 7 {
            0 | 1 => {
                self.key.push(b'-');
                push_syllables(bits >> 32, 2, &mut self.key);
            }
            2..=4 => push_syllables(bits >> 32, 1, &mut self.key),
            _ => {}
        }
    }

    /// Writes a host and those below it, at most `lines` lines; returns the number. Depth 0 is a domain.
    fn node(&mut self, depth: usize, lines: u64) -> io::Result<u64> {
        let parent = HOST_BRANCHING
            .get(depth)
            .filter(|branching| self.random.chance(branching.parents));
        let mut left = lines;
        if parent.is_none_or(|branching| self.random.chance(branching.own)) {
            let lines = left.min(self.lines / HOST_PART + ALWAYS_ALLOWED);
            let extent = Extent {
                lines,
                keys: None,
                density: 1.0,
            };
            left -= self.site(depth, extent)?;
        }
        if let Some(branching) = parent {
            let count = self.random.draw(branching.children);
            let mut labels = Labels::words(count);
            let start = self.key.len();
            for siblings in (1..=count).rev() {
                if left == 0 {
                    break;
                }
                self.key.push(b',');
                labels.push(siblings, siblings, &mut self.random, &mut self.key);
                self.lengthen();
                left -= self.node(depth + 1, left)?;
                self.key.truncate(start);
            }
        }
        Ok(lines - left)
    }

    /// Writes the pages of the current host; returns the number of lines.
    fn site(&mut self, depth: usize, extent: Extent) -> io::Result<u64> {
        let labels: Vec<&[u8]> = self.key.split(|&byte| byte == b',').rev().collect();
        let mut authority = String::from_utf8_lossy(&labels.join(&b'.')).into_owned();
        // Half of the domains, few hosts below them.
        if self.random.below(if depth == 0 { 2 } else { 16 }) == 0 {
            authority.insert_str(0, "www.");
        }
        let length = self.key.len();
        self.key.push(b')');
        let site = Site::new(
            &mut self.key,
            &authority,
            extent,
            &mut self.random,
            &mut self.rows,
        );
        let written = site.write()?;
        self.key.truncate(length);
        Ok(written)
    }
}
