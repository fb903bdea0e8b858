//! Chooses which nodes to roll up within a limit.

use std::collections::HashSet;

use super::nodes::{NONE, Node, Nodes, Traits};
use super::prune::{CostLoss, prices};
use super::query_prior::{Prior, query_priors};

/// A set of roll-ups, with the cost and the loss of the resulting map.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// The keys of the wildcards.
    pub rollups: HashSet<Vec<u8>>,
    /// In lines, or in estimated bits of compressed text.
    pub cost: f64,
    /// The share of misses that get a wrong result.
    pub loss: f64,
    /// Whether only forced keys are rolled up.
    pub is_complete: bool,
}

/// A weighted map tree: the cost that each roll-up saves, and its loss.
pub struct RollupPlanner {
    nodes: Nodes,
    /// The state in which every node that may be rolled up is rolled up.
    minimum: CostLoss,
    /// The nodes to write out instead of a wildcard, best first: the node, its additional cost, and the loss that it
    /// avoids. Steps that are only worthwhile together are adjacent.
    steps: Vec<(u32, CostLoss)>,
    /// For each node, the node of the last step at or above it. Nodes below a wildcard are written out after it.
    expansion_roots: Vec<u32>,
    /// Keys with holdings.
    pub keys: u64,
    /// Nodes whose whole subtree the map declares as held.
    pub wildcards: u64,
    /// Queries for pages that no line of the map covers.
    pub missed_queries: u64,
    /// Queries for pages that are lines of the map.
    pub hit_queries: u64,
}

impl RollupPlanner {
    pub(super) fn new(
        (nodes, hosts): (Nodes, u64),
        prior: &Prior,
        missed_queries: u64,
        hit_queries: u64,
    ) -> Self {
        // Exact for all realistic numbers of queries.
        #[allow(clippy::cast_precision_loss)]
        let query_priors = query_priors(&nodes, hosts, prior, missed_queries as f64);
        let (rolled_cost, own) = points(&nodes, &query_priors);
        drop(query_priors);
        let prices = prices(&nodes, &rolled_cost, &own);
        let keys = nodes
            .all
            .iter()
            .filter(|node| node.parent == NONE)
            .map(|node| u64::from(node.keys))
            .sum();
        let is_covered = |node: &&Node| node.traits.has(Traits::COVERED);
        let wildcards = nodes.all.iter().filter(is_covered).count() as u64;
        let expansion_roots = expansion_roots(&nodes, &prices);
        let (minimum, steps) = steps(&nodes, &prices, &expansion_roots, &rolled_cost, own);
        Self {
            nodes,
            minimum,
            steps,
            expansion_roots,
            keys,
            wildcards,
            missed_queries,
            hit_queries,
        }
    }

    /// Cost and loss of the smallest map, in which every node that may be rolled up is.
    #[must_use]
    pub fn smallest(&self) -> (f64, f64) {
        (self.minimum.cost, self.minimum.loss)
    }

    /// Cost and loss of the best map within a limit.
    #[must_use]
    pub fn evaluate(&self, limit: f64) -> (f64, f64) {
        let (point, _) = self.expand(limit);
        (point.cost, point.loss)
    }

    /// The roll-ups with the least loss. Lines that cannot be rolled up may exceed the limit.
    #[must_use]
    pub fn choose(&self, limit: f64) -> Choice {
        let (point, expanded) = self.expand(limit);
        let is_open = |node: u32| node == NONE || expanded[node as usize];
        let mut choice = Choice {
            cost: point.cost,
            loss: point.loss,
            is_complete: true,
            ..Choice::default()
        };
        for (at, node) in self.nodes.all.iter().enumerate() {
            let head = self.expansion_roots[at];
            if head as usize != at || is_open(head) {
                continue;
            }
            let above = match node.parent {
                NONE => NONE,
                parent => self.expansion_roots[parent as usize],
            };
            if is_open(above) {
                choice.is_complete &= node.traits.has(Traits::FORCED);
                choice.rollups.insert(self.nodes.wildcard(head));
            }
        }
        choice
    }

    /// Writes out the best nodes as long as they fit. A node that does not fit is skipped in favour of smaller ones.
    fn expand(&self, limit: f64) -> (CostLoss, Vec<bool>) {
        let mut expanded = vec![false; self.nodes.all.len()];
        let mut sum = self.minimum;
        for &(node, step) in &self.steps {
            let above = match self.nodes.all[node as usize].parent {
                NONE => NONE,
                parent => self.expansion_roots[parent as usize],
            };
            let is_shown = above == NONE || expanded[above as usize];
            if is_shown && sum.cost + step.cost <= limit {
                sum.cost += step.cost;
                sum.loss -= step.loss;
                expanded[node as usize] = true;
            }
        }
        (sum, expanded)
    }
}

/// For each node: cost and loss if it is rolled up, and the cost and loss of its own lines if it is not.
fn points(nodes: &Nodes, query_priors: &[f64]) -> (Vec<CostLoss>, Vec<CostLoss>) {
    let all = &nodes.all;
    let rolled_cost = all
        .iter()
        .zip(query_priors)
        .map(|(node, &loss)| CostLoss {
            cost: node.rolled_cost,
            loss,
        })
        .collect();
    let mut own: Vec<CostLoss> = all
        .iter()
        .zip(query_priors)
        .map(|(node, &loss)| CostLoss {
            cost: node.own,
            loss,
        })
        .collect();
    let mut is_covered = vec![false; all.len()];
    for (at, node) in all.iter().enumerate() {
        let above = node.parent as usize;
        is_covered[at] = match node.traits {
            traits if traits.has(Traits::COVERED) => true,
            traits if traits.has(Traits::EXCLUDED) => false,
            _ => is_covered.get(above).copied().unwrap_or(false),
        };
        if let Some(parent) = own.get_mut(above) {
            parent.loss -= query_priors[at];
        }
    }
    for (point, is_covered) in own.iter_mut().zip(is_covered) {
        // Pages that no line covers get a correct result.
        point.loss = if is_covered { point.loss.max(0.0) } else { 0.0 };
    }
    (rolled_cost, own)
}

/// For each node, the node at or above it together with which it is written out. A node whose price is not below that
/// of its parent is not rolled up where its parent is written out.
fn expansion_roots(nodes: &Nodes, prices: &[f64]) -> Vec<u32> {
    let mut expansion_roots: Vec<u32> = Vec::with_capacity(prices.len());
    for (at, node) in nodes.all.iter().enumerate() {
        let above = match node.parent {
            NONE => NONE,
            parent => expansion_roots[parent as usize],
        };
        let price = prices.get(above as usize).copied();
        let is_head = prices[at] < price.unwrap_or(f64::INFINITY);
        expansion_roots.push(if is_head {
            super::nodes::index(at)
        } else {
            above
        });
    }
    expansion_roots
}

/// The state with everything rolled up, and the steps from there, best first.
fn steps(
    nodes: &Nodes,
    prices: &[f64],
    expansion_roots: &[u32],
    rolled_cost: &[CostLoss],
    own: Vec<CostLoss>,
) -> (CostLoss, Vec<(u32, CostLoss)>) {
    // The cost and loss of a node that is written out, with all groups below it still rolled up.
    let mut shown = own;
    let mut minimum = CostLoss::default();
    let mut order = Vec::new();
    for at in (0..nodes.all.len()).rev() {
        let is_head = expansion_roots[at] as usize == at;
        if is_head && prices[at] >= 0.0 {
            order.push(super::nodes::index(at));
        }
        let part = if is_head { rolled_cost[at] } else { shown[at] };
        let above = match nodes.all[at].parent {
            NONE => &mut minimum,
            parent => &mut shown[parent as usize],
        };
        above.cost += part.cost;
        above.loss += part.loss;
    }
    // Nodes further up have higher prices, and lower numbers where prices are equal.
    order.sort_unstable_by(|&a, &b| {
        prices[b as usize]
            .total_cmp(&prices[a as usize])
            .then(a.cmp(&b))
    });
    let step = |node: u32| {
        let (open, closed) = (shown[node as usize], rolled_cost[node as usize]);
        let step = CostLoss {
            cost: open.cost - closed.cost,
            loss: closed.loss - open.loss,
        };
        (node, step)
    };
    (minimum, order.into_iter().map(step).collect())
}
