//! Where pages lie that are asked for and not held.

use super::nodes::{NONE, Nodes, Traits};

/// How much is expected where, before and after looking at what was asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prior {
    /// A node of n keys is taken for one of `n - page_discount`, from 0 to 1: the more, the less are nodes of few keys
    /// expected to have others below them.
    pub page_discount: f64,
    /// The same for nodes of n hosts with a single page.
    pub host_discount: f64,
    /// How much such a host counts for, where hosts are expected that nobody has heard of: as a part of what the hosts of
    /// this map hold on average.
    pub host: f64,
    /// So many hosts, in keys, are expected beside the known ones for each key that they have.
    pub extra_hosts: f64,
    /// So many questions weigh as much as the prior, at each node by itself.
    pub strength: f64,
}

/// The share of all misses that lies below each node, itself included.
///
/// Without questions: misses lie where holdings lie. With questions, each node shares its misses out to those below it as
/// the questions do, and where there are few, as the prior does.
pub(super) fn query_priors(nodes: &Nodes, hosts: u64, prior: &Prior, query_count: f64) -> Vec<f64> {
    let all = &nodes.all;
    let tops = || {
        all.iter()
            .enumerate()
            .filter(|(_, node)| node.parent == NONE)
    };
    let keys: f64 = tops().map(|(_, node)| f64::from(node.keys)).sum();
    // Exact up to far more hosts than there are.
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
        let (mass, whole, queries) = match all.get(node.parent as usize) {
            None => (1.0, everywhere, query_count),
            Some(parent) => (
                query_priors[node.parent as usize],
                expected[node.parent as usize],
                parent.query_count,
            ),
        };
        let share = if whole > 0.0 { share / whole } else { 0.0 };
        query_priors
            .push(mass * (node.query_count + prior.strength * share) / (queries + prior.strength));
    }
    query_priors
}
