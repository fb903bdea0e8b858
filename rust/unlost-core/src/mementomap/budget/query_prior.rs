//! Estimates where queries for pages that are not held occur.

use super::nodes::{NONE, Nodes, Traits};

/// The expected distribution of misses, before and after observing queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prior {
    /// A node of n keys counts as `n - page_discount`, from 0 to 1: the higher, the fewer other pages are expected
    /// below nodes of few keys.
    pub page_discount: f64,
    /// The same for nodes of n hosts with a single page.
    pub host_discount: f64,
    /// The weight of a host with a single page where unknown hosts are expected, relative to the average holdings of a
    /// host of this map.
    pub host: f64,
    /// The number of expected unknown hosts, in keys, per key of known hosts.
    pub extra_hosts: f64,
    /// The number of queries at a node that weigh as much as the prior.
    pub strength: f64,
}

/// The share of all misses at or below each node.
///
/// Without queries, misses are distributed like holdings. With queries, each node distributes its misses to its
/// children like the queries or, where there are few, like the prior.
pub(super) fn query_priors(nodes: &Nodes, hosts: u64, prior: &Prior, query_count: f64) -> Vec<f64> {
    let all = &nodes.all;
    let tops = || {
        all.iter()
            .enumerate()
            .filter(|(_, node)| node.parent == NONE)
    };
    let keys: f64 = tops().map(|(_, node)| f64::from(node.keys)).sum();
    // Exact for all realistic numbers of hosts.
    #[allow(clippy::cast_precision_loss)]
    let host = prior.host * keys / hosts.max(1) as f64;
    let expected: Vec<f64> = all
        .iter()
        .map(|node| {
            let less = |count: f64, discount: f64| (count - discount).max(0.0);
            let keys = f64::from(node.keys);
            let hosts = if node.traits.has(Traits::HOST) {
                host * less(node.hosts, prior.host_discount) + prior.extra_hosts * keys
            } else {
                0.0
            };
            less(keys, prior.page_discount) + hosts
        })
        .collect();
    let everywhere: f64 = tops().map(|(at, _)| expected[at]).sum();
    let mut query_priors: Vec<f64> = Vec::with_capacity(all.len());
    for (node, &share) in all.iter().zip(&expected) {
        let (parent_share, whole, queries) = match all.get(node.parent as usize) {
            None => (1.0, everywhere, query_count),
            Some(parent) => (
                query_priors[node.parent as usize],
                expected[node.parent as usize],
                parent.query_count,
            ),
        };
        let share = if whole > 0.0 { share / whole } else { 0.0 };
        query_priors.push(
            parent_share * (node.query_count + prior.strength * share) / (queries + prior.strength),
        );
    }
    query_priors
}
