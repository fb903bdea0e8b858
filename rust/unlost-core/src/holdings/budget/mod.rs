//! Budgets: which nodes of a map's tree to roll up so that it fits, and loses as little as can be.
//!
//! ```text
//! lines, in the order of the tree ─┬─ grow ─ nodes ─ mass (misses) ─ prune (prices) ─ choose ─ wildcards to roll up
//! questions, in the same order ────┘   └ cost (lines, or bits as deflate would write them)
//! ```

mod choose;
mod cost;
mod grow;
mod mass;
mod nodes;
mod prune;
mod published;

use std::collections::HashSet;
use std::thread;

pub use choose::{Choice, Scale};
pub use mass::Prior;
pub use published::gzip_size;

use super::order::split_tree_key;
use super::tree_order::{Entries, Ordered, order_apart};
use super::{HoldingsError, Progress};
use grow::{Grower, Growth};

/// What may be rolled up, and how it is weighed.
#[derive(Debug, Clone)]
pub struct Terms {
    /// How many levels hosts and paths have; what lies deeper counts as one segment.
    pub host_depth: usize,
    /// The host's root is the first.
    pub path_depth: usize,
    /// Whether public suffixes are never rolled up.
    pub protects: bool,
    /// Wildcard keys that are rolled up in any case.
    pub forced: HashSet<Vec<u8>>,
    /// Whether bits of compressed text are counted, not lines.
    pub weighs: bool,
    /// Where misses are expected.
    pub prior: Prior,
}

/// Weighs the tree of a map, whose entries come in the order of their bytes, against the questions that were asked, if
/// they are known: the entries of a map of them. `fields` is how many fields of a line are keys.
pub fn weigh(
    entries: &mut (impl Entries + Send),
    asked: Option<&mut (impl Entries + Send)>,
    fields: usize,
    terms: &Terms,
    memory: usize,
    progress: &Progress,
) -> Result<Scale, HoldingsError> {
    let mut grower = Grower::new(Growth {
        host_depth: terms.host_depth,
        // With one level nothing has children; the walk needs the root apart from its pages all the same.
        path_depth: terms.path_depth.max(2),
        fields,
        protects: terms.protects,
        forced: &terms.forced,
        weighs: terms.weighs,
    });
    let (mut missed, mut hit) = (0, 0);
    thread::scope(|scope| {
        let mut lines = order_apart(scope, entries, memory, progress);
        let mut questions = asked.map(|asked| order_apart(scope, asked, memory, progress));
        let mut is_more = lines.advance()?;
        let mut is_asked = next_page(questions.as_mut())?;
        while is_more || is_asked {
            let line = is_more.then(|| split_tree_key(lines.entry().key).0);
            if line == Some(b"*") {
                is_more = lines.advance()?;
                continue;
            }
            let Some(question) = questions.as_mut().filter(|_| is_asked) else {
                grower.add(&lines.entry());
                is_more = lines.advance()?;
                continue;
            };
            let asked = question.entry();
            let count = asked.frequency.mementos.value().unwrap_or(1);
            match line {
                Some(line) if line < asked.key => {
                    grower.add(&lines.entry());
                    is_more = lines.advance()?;
                    continue;
                }
                Some(line) if line == asked.key => hit += count,
                _ => {
                    missed += count;
                    grower.ask(asked.key, count);
                }
            }
            is_asked = next_page(questions.as_mut())?;
        }
        Ok::<(), HoldingsError>(())
    })?;
    Ok(Scale::new(grower.finish(), &terms.prior, missed, hit))
}

/// Moves to the next question. The total of a map of questions is none.
fn next_page(questions: Option<&mut Ordered>) -> Result<bool, HoldingsError> {
    let Some(questions) = questions else {
        return Ok(false);
    };
    loop {
        if !questions.advance()? {
            return Ok(false);
        }
        if questions.entry().key != b"*" {
            return Ok(true);
        }
    }
}
