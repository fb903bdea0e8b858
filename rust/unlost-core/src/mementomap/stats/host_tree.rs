//! The tree of hosts, from one entry per host in order.

use foldhash::fast::FixedState;
use hashbrown::HashSet;

use super::path_tree::HostTotals;
use super::statistics::{Domain, HOST_LEVELS, Statistics};
use super::top::{BusyHost, truncated_key};
use crate::uri::Segments;

/// The maximum number of IP addresses that are stored to detect repeated ones, which their order does not reveal.
const MAX_IPS: usize = 1_000_000;

/// The path from the root to the last host.
#[derive(Debug, Default)]
pub(super) struct HostTree {
    /// The last host that is a name, with its `)`.
    last: Vec<u8>,
    labels: usize,
    below: [u64; HOST_LEVELS + 1],
    children: [u64; HOST_LEVELS + 1],
    domain: Domain,
    ips: HashSet<Vec<u8>, FixedState>,
}

impl HostTree {
    /// Takes the next host; returns whether it sorts after all earlier ones.
    pub(super) fn push(&mut self, host: &[u8], totals: HostTotals, out: &mut Statistics) -> bool {
        let key = host;
        let host = key.strip_suffix(b")").unwrap_or(key);
        let segments = Segments::of(key);
        if segments.is_ip() {
            let is_new = self.ips.len() >= MAX_IPS || self.ips.insert(host.to_vec());
            push_ip(totals, out);
            add_host(host, totals, out);
            return is_new;
        }
        if key <= self.last.as_slice() {
            return false;
        }
        let labels: Vec<&[u8]> = segments.host_labels().collect();
        let depth = labels.len().min(HOST_LEVELS);
        let shared = if self.last.is_empty() {
            0
        } else {
            let last = Segments::of(&self.last);
            let same = last.host_labels().zip(&labels).take_while(|(a, b)| a == *b);
            same.count().min(HOST_LEVELS)
        };
        self.close(shared, out);
        if shared == 0 {
            self.domain.name = truncated_key(labels.first().copied().unwrap_or_default());
        }
        for level in shared + 1..=depth {
            self.children[level - 1] += 1;
        }
        self.below[depth] += totals.pages;
        self.domain.captures += totals.captures;
        self.domain.uris += totals.uris;
        self.domain.pages += totals.pages;
        self.domain.hosts += 1;
        self.last.clear();
        self.last.extend_from_slice(key);
        self.labels = depth;
        out.hosts_by_depth[labels.len().min(HOST_LEVELS + 1)] += 1;
        out.pages_by_host_depth[labels.len().min(HOST_LEVELS + 1)] += totals.pages;
        add_host(host, totals, out);
        true
    }

    /// Closes the nodes below a level; a top-level domain becomes a row of its own.
    fn close(&mut self, shared: usize, out: &mut Statistics) {
        for level in (shared + 1..=self.labels).rev() {
            let count = std::mem::take(&mut self.below[level]);
            self.below[level - 1] += count;
            let own = std::mem::take(&mut self.children[level]);
            if level == 1 {
                self.domain.children = own;
                out.add_domain(&std::mem::take(&mut self.domain));
                self.below[0] = 0;
                self.children[0] = 0;
            } else {
                out.host_prefixes[level].add(count, 1);
                if own > 0 {
                    out.host_children[level + 1].add(own, 1);
                }
            }
        }
        self.labels = self.labels.min(shared);
    }

    /// Called after the last host.
    pub(super) fn finish(&mut self, out: &mut Statistics) {
        self.close(0, out);
        self.last.clear();
    }
}

/// An IP address is one label, which is its own top-level domain: in the list of those, all are one row.
fn push_ip(totals: HostTotals, out: &mut Statistics) {
    out.ip.captures += totals.captures;
    out.ip.uris += totals.uris;
    out.ip.pages += totals.pages;
    out.ip.hosts += 1;
    out.host_prefixes[1].add(totals.pages, 1);
    out.hosts_by_depth[1] += 1;
    out.pages_by_host_depth[1] += totals.pages;
}

fn add_host(host: &[u8], totals: HostTotals, out: &mut Statistics) {
    out.hosts += 1;
    out.uris += totals.uris;
    out.pages += totals.pages;
    out.top_hosts.add(totals.captures, || BusyHost {
        host: truncated_key(host),
        captures: totals.captures,
        uris: totals.uris,
    });
}
