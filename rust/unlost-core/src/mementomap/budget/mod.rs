//! Budgets: chooses which nodes of a map's tree to roll up so that it fits with the least loss.
//!
//! ```text
//! lines, in tree order ────┬─ tree_builder ─ nodes ─ query_prior (misses) ─ prune (prices) ─ choose ─ wildcards to roll up
//! queries, in tree order ──┘       └ cost (lines, or bits as deflate would write them)
//! ```

mod choose;
mod cost;
mod gzip_size;
mod nodes;
mod prune;
mod query_prior;
mod tree_builder;

use std::collections::HashSet;
use std::thread;

pub use choose::{Choice, RollupPlanner};
pub use gzip_size::gzip_size;
pub use query_prior::Prior;

use super::tree_key::split_tree_key;
use super::tree_order::{Entries, Ordered, order_in_thread};
use super::{HoldingsError, Progress};
use tree_builder::{TreeBuilder, TreeOptions};

/// Options: which nodes may be rolled up, and how they are weighted.
#[derive(Debug, Clone)]
pub struct BudgetOptions {
    /// The number of host and path levels; deeper parts count as one segment.
    pub host_depth: usize,
    /// The host's root is the first.
    pub path_depth: usize,
    /// Whether public suffixes are never rolled up.
    pub protect_suffixes: bool,
    /// Wildcard keys that are always rolled up.
    pub forced_keys: HashSet<Vec<u8>>,
    /// Whether bits of compressed text are counted instead of lines.
    pub by_compressed_size: bool,
    /// The expected distribution of misses.
    pub prior: Prior,
}

/// Weights the tree of a map, whose entries come in byte order, against a map of the queries if there is one. `fields`
/// is the number of key fields per line.
pub fn analyse_tree(
    entries: &mut (impl Entries + Send),
    query_entries: Option<&mut (impl Entries + Send)>,
    fields: usize,
    options: &BudgetOptions,
    memory: usize,
    progress: &Progress,
) -> Result<RollupPlanner, HoldingsError> {
    let mut tree_builder = TreeBuilder::new(TreeOptions {
        host_depth: options.host_depth,
        // With one level nothing has children; the walk still needs the root separate from its pages.
        path_depth: options.path_depth.max(2),
        fields,
        protect_suffixes: options.protect_suffixes,
        forced_keys: &options.forced_keys,
        by_compressed_size: options.by_compressed_size,
    });
    let (mut missed_queries, mut hit_queries) = (0, 0);
    thread::scope(|scope| {
        let mut lines = order_in_thread(scope, entries, memory, progress);
        let mut queries = query_entries
            .map(|query_entries| order_in_thread(scope, query_entries, memory, progress));
        let mut is_more = lines.advance()?;
        let mut has_query = next_query(queries.as_mut())?;
        while is_more || has_query {
            let line = is_more.then(|| split_tree_key(lines.entry().key).0);
            if line == Some(b"*") {
                is_more = lines.advance()?;
                continue;
            }
            let Some(query_walk) = queries.as_mut().filter(|_| has_query) else {
                tree_builder.add(&lines.entry());
                is_more = lines.advance()?;
                continue;
            };
            let query_entries = query_walk.entry();
            let count = query_entries.frequency.mementos.value().unwrap_or(1);
            match line {
                Some(line) if line < query_entries.key => {
                    tree_builder.add(&lines.entry());
                    is_more = lines.advance()?;
                    continue;
                }
                Some(line) if line == query_entries.key => hit_queries += count,
                _ => {
                    missed_queries += count;
                    tree_builder.add_query(query_entries.key, count);
                }
            }
            has_query = next_query(queries.as_mut())?;
        }
        Ok::<(), HoldingsError>(())
    })?;
    Ok(RollupPlanner::new(
        tree_builder.finish(),
        &options.prior,
        missed_queries,
        hit_queries,
    ))
}

/// Moves to the next query. The total of the query map is skipped.
fn next_query(queries: Option<&mut Ordered>) -> Result<bool, HoldingsError> {
    let Some(queries) = queries else {
        return Ok(false);
    };
    loop {
        if !queries.advance()? {
            return Ok(false);
        }
        if queries.entry().key != b"*" {
            return Ok(true);
        }
    }
}
