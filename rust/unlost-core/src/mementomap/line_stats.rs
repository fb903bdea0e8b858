//! Line statistics of a file: counts, with the first example of each kind of problem.

use std::collections::BTreeMap;

/// The count and the first example of a kind of problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineProblem {
    /// The number of lines.
    pub count: u64,
    /// The number of the first one, from 1.
    pub line: u64,
    /// Its offset in the text.
    pub offset: u64,
    /// Its beginning.
    pub example: Vec<u8>,
}

/// Counts of lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineStats {
    /// All lines.
    pub lines: u64,
    /// Lines that were counted as holdings.
    pub counted: u64,
    /// Lines that are not web pages: `dns:`, `warcinfo:` and the like.
    pub foreign: u64,
    /// Lines that the filter excludes.
    pub filtered: u64,
    /// Lines whose key column was replaced by the key of their URL.
    pub repaired: u64,
    /// Lines that could not be parsed, by kind.
    pub problems: BTreeMap<&'static str, LineProblem>,
}

/// The maximum length of an example.
const EXAMPLE_BYTES: usize = 100;

impl LineStats {
    pub(super) fn add_problem(&mut self, kind: &'static str, offset: u64, line: &[u8]) {
        let number = self.lines;
        self.problems
            .entry(kind)
            .or_insert_with(|| LineProblem {
                count: 0,
                line: number,
                offset,
                example: line[..line.len().min(EXAMPLE_BYTES)].to_vec(),
            })
            .count += 1;
    }

    /// Adds the statistics of the next block, whose lines are numbered from its own beginning.
    pub(super) fn append(&mut self, next: LineStats) {
        for (kind, problem) in next.problems {
            self.problems
                .entry(kind)
                .and_modify(|known| known.count += problem.count)
                .or_insert(LineProblem {
                    line: self.lines + problem.line,
                    ..problem
                });
        }
        self.lines += next.lines;
        self.counted += next.counted;
        self.foreign += next.foreign;
        self.filtered += next.filtered;
        self.repaired += next.repaired;
    }
}
