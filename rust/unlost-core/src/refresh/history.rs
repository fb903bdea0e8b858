//! All pairs of a log, by host and time.

use super::hosts::{Host, Hosts};
use super::visit_pairs::{VisitStats, threads};

/// Further properties of a pair, in bits that cell numbers do not use.
pub(super) mod bit {
    /// The bytes of the body changed.
    pub const CHANGED: u16 = 1 << 11;
    /// The text is known on both visits.
    pub const TEXT_KNOWN: u16 = 1 << 12;
    /// The text changed.
    pub const TEXT_CHANGED: u16 = 1 << 13;
}

/// Two consecutive visits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pair {
    pub host: u32,
    /// Seconds since 1970, of the second visit.
    pub time: u32,
    /// Seconds between the visits.
    pub interval: u32,
    pub weight: u16,
    /// The cell, and in the highest bits those of `bit`: there are tens of millions of pairs.
    pub bits: u16,
}

impl Pair {
    /// Its cell.
    pub(super) fn cell(&self) -> u16 {
        self.bits % bit::CHANGED
    }

    /// The sort key: host and time, then the other fields, so that the order is deterministic. A single number, which
    /// is compared at once.
    fn key(&self) -> u128 {
        let [host, time, interval] = [self.host, self.time, self.interval].map(u128::from);
        let [weight, bits] = [self.weight, self.bits].map(u128::from);
        host << 96 | time << 64 | interval << 32 | weight << 16 | bits
    }

    /// Whether the page changed: its bytes, or its text if that is requested and known.
    pub(super) fn changed(&self, by_text: bool) -> bool {
        if by_text && self.bits & bit::TEXT_KNOWN != 0 {
            self.bits & bit::TEXT_CHANGED != 0
        } else {
            self.bits & bit::CHANGED != 0
        }
    }
}

/// Sorts pairs, both halves in parallel if there are many.
fn sort(pairs: &mut [Pair]) {
    const MANY: usize = 1 << 17;
    if pairs.len() < MANY || threads() < 2 {
        pairs.sort_unstable_by_key(Pair::key);
        return;
    }
    let middle = pairs.len() / 2;
    pairs.select_nth_unstable_by_key(middle, Pair::key);
    let (low, high) = pairs.split_at_mut(middle);
    std::thread::scope(|scope| {
        scope.spawn(|| low.sort_unstable_by_key(Pair::key));
        high.sort_unstable_by_key(Pair::key);
    });
}

/// All pairs of a log with its hosts.
#[derive(Debug)]
pub struct History {
    pub(super) pairs: Vec<Pair>,
    /// Where the pairs of each host begin; one more at the end.
    starts: Vec<usize>,
    hosts: Hosts,
    visit_stats: VisitStats,
}

impl History {
    pub(super) fn new(mut pairs: Vec<Pair>, hosts: Hosts, visit_stats: VisitStats) -> Self {
        sort(&mut pairs);
        let mut starts = Vec::with_capacity(hosts.all.len() + 1);
        let mut at = 0;
        for host in 0..hosts.all.len() {
            starts.push(at);
            while pairs.get(at).is_some_and(|pair| pair.host as usize == host) {
                at += 1;
            }
        }
        starts.push(at);
        Self {
            pairs,
            starts,
            hosts,
            visit_stats,
        }
    }

    /// The visit statistics.
    #[must_use]
    pub fn visit_stats(&self) -> VisitStats {
        self.visit_stats
    }

    /// All visited hosts; their numbers are their indexes.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts.all
    }

    /// The names of server software.
    #[must_use]
    pub fn servers(&self) -> &[Box<str>] {
        &self.hosts.servers
    }

    /// The number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there are no pairs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(super) fn pairs_of(&self, host: usize) -> &[Pair] {
        &self.pairs[self.starts[host]..self.starts[host + 1]]
    }

    /// How often bytes and text changed: neither, bytes alone, text alone, both; only pairs with known text.
    #[must_use]
    pub fn bytes_and_text(&self) -> [u64; 4] {
        let mut counts = [0; 4];
        for pair in &self.pairs {
            if pair.bits & bit::TEXT_KNOWN != 0 {
                let index = usize::from(pair.changed(false)) + 2 * usize::from(pair.changed(true));
                counts[index] += u64::from(pair.weight);
            }
        }
        counts
    }

    /// The times that cut the log into parts with equal numbers of pairs, in seconds since 1970.
    #[must_use]
    pub fn splits(&self, parts: usize) -> Vec<u32> {
        let mut times: Vec<u32> = self.pairs.iter().map(|pair| pair.time).collect();
        let mut first = 0;
        (1..parts)
            .map(|part| {
                let index = times.len() * part / parts;
                let rest = times.get_mut(first..).unwrap_or_default();
                if rest.is_empty() {
                    return 0;
                }
                // Earlier pairs are in a part already.
                let split = *rest.select_nth_unstable(index - first).1;
                first = index;
                split
            })
            .collect()
    }

    /// Seconds between visits, and whether the page had changed, for each pair of a host.
    #[must_use]
    pub fn intervals(&self, host: usize, by_text: bool) -> Vec<(u32, bool)> {
        let pairs = self.pairs_of(host).iter();
        pairs
            .map(|pair| (pair.interval, pair.changed(by_text)))
            .collect()
    }
}
