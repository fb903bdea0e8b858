//! The order in which rolling up nodes is worthwhile.
//!
//! With a price of λ per unit of cost, the best pruning minimises loss + λ · cost. That can be solved exactly from the
//! bottom up: a subtree is rolled up if that is cheaper than its best parts. As λ grows, prunings only lose lines, so
//! each node has one price from which on it is rolled up, the weakest link first. One pass finds all prices, with a
//! heap of the prices below each node that is melded into that of its parent.

use super::nodes::{NONE, Nodes, Traits};

/// Cost in lines or bits, loss as the share of misses that get a wrong result.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct CostLoss {
    pub(super) cost: f64,
    pub(super) loss: f64,
}

/// The price from which on each node is rolled up; infinite for never, negative for always.
pub(super) fn prices(nodes: &Nodes, rolled_cost: &[CostLoss], own: &[CostLoss]) -> Vec<f64> {
    let count = nodes.all.len();
    let mut prices = vec![f64::INFINITY; count];
    // The subtree of each node with everything worthwhile rolled up, at any price.
    let mut best: Vec<CostLoss> = own.to_vec();
    let mut heaps = Heaps::new(count);
    for at in (0..count).rev() {
        let node = &nodes.all[at];
        let leaf = rolled_cost[at];
        if node.traits.has(Traits::FORCED) {
            prices[at] = f64::NEG_INFINITY;
            best[at] = leaf;
            heaps.clear(at);
        } else if node.traits.has(Traits::COLLAPSIBLE) && leaf.cost < best[at].cost {
            let price = loop {
                let saved = best[at].cost - leaf.cost;
                let lost = (leaf.loss - best[at].loss).max(0.0);
                let price = lost / saved;
                match heaps.top(at) {
                    // More expensive than the whole node: not worthwhile before the node is.
                    Some((dearer, step)) if dearer > price => {
                        best[at].cost += step.cost;
                        best[at].loss -= step.loss;
                        heaps.pop(at);
                    }
                    _ => break price,
                }
            };
            prices[at] = price;
            let step = CostLoss {
                cost: best[at].cost - leaf.cost,
                loss: leaf.loss - best[at].loss,
            };
            heaps.push(at, price, step);
            best[at] = leaf;
        }
        if node.parent != NONE {
            let parent = node.parent as usize;
            let part = best[at];
            best[parent].cost += part.cost;
            best[parent].loss += part.loss;
            heaps.meld_into(at, parent);
        }
    }
    prices
}

/// For each node, a skew heap of the roll-ups below it, the most expensive on top.
struct Heaps {
    /// The top of each node's heap.
    tops: Vec<u32>,
    left: Vec<u32>,
    right: Vec<u32>,
    prices: Vec<f64>,
    /// The cost that the roll-up saves, and its loss.
    steps: Vec<CostLoss>,
}

impl Heaps {
    fn new(count: usize) -> Self {
        Self {
            tops: vec![NONE; count],
            left: vec![NONE; count],
            right: vec![NONE; count],
            prices: vec![0.0; count],
            steps: vec![CostLoss::default(); count],
        }
    }

    fn top(&self, at: usize) -> Option<(f64, CostLoss)> {
        let top = self.tops[at] as usize;
        Some((*self.prices.get(top)?, self.steps[top]))
    }

    fn clear(&mut self, at: usize) {
        self.tops[at] = NONE;
    }

    fn pop(&mut self, at: usize) {
        let top = self.tops[at] as usize;
        self.tops[at] = self.meld(self.left[top], self.right[top]);
    }

    /// Adds a node to its own heap.
    fn push(&mut self, at: usize, price: f64, step: CostLoss) {
        self.prices[at] = price;
        self.steps[at] = step;
        self.left[at] = NONE;
        self.right[at] = NONE;
        self.tops[at] = self.meld(super::nodes::index(at), self.tops[at]);
    }

    fn meld_into(&mut self, at: usize, parent: usize) {
        self.tops[parent] = self.meld(self.tops[at], self.tops[parent]);
    }

    /// Walks down both right spines, and moves each node's left tree to its right. Iterative, since spines may be long.
    fn meld(&mut self, a: u32, b: u32) -> u32 {
        let (mut a, mut b) = (a, b);
        let mut top = NONE;
        let mut last = NONE;
        while a != NONE && b != NONE {
            if self.prices[a as usize] < self.prices[b as usize] {
                std::mem::swap(&mut a, &mut b);
            }
            let next = self.right[a as usize];
            self.right[a as usize] = self.left[a as usize];
            self.hang(&mut top, last, a);
            last = a;
            a = next;
        }
        let rest = if a == NONE { b } else { a };
        self.hang(&mut top, last, rest);
        top
    }

    fn hang(&mut self, top: &mut u32, last: u32, node: u32) {
        if last == NONE {
            *top = node;
        } else {
            self.left[last as usize] = node;
        }
    }
}
