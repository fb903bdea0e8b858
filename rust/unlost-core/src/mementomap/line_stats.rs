//! What became of the lines of a file: counted, with the first example of each kind of problem.

use std::collections::BTreeMap;

/// Something that was wrong with lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineProblem {
    /// How many lines.
    pub count: u64,
    /// The first of them: its number, from 1.
    pub line: u64,
    /// Where it begins, in the text.
    pub offset: u64,
    /// Its beginning.
    pub example: Vec<u8>,
}

/// Counts of lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineStats {
    /// All of them.
    pub lines: u64,
    /// Those that were counted as holdings.
    pub counted: u64,
    /// Those that are no web pages: `dns:`, `warcinfo:` and the like.
    pub foreign: u64,
    /// Those that the filters leave out.
    pub filtered: u64,
    /// Those whose key column was replaced by the key of their URL.
    pub repaired: u64,
    /// Those that could not be read, by kind.
    pub problems: BTreeMap<&'static str, LineProblem>,
}

/// How much of a line is kept as an example.
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

    /// Adds the tally of the block that follows, whose lines were counted from its own beginning.
    pub(super) fn append(&mut self, next: LineStats) {
        for (kind, trouble) in next.problems {
            self.problems
                .entry(kind)
                .and_modify(|known| known.count += trouble.count)
                .or_insert(LineProblem {
                    line: self.lines + trouble.line,
                    ..trouble
                });
        }
        self.lines += next.lines;
        self.counted += next.counted;
        self.foreign += next.foreign;
        self.filtered += next.filtered;
        self.repaired += next.repaired;
    }
}
