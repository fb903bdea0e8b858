//! A map in memory, for those who ask all day: an automaton that shares what keys have in common.

use fst::raw::{Builder, Fst, Node, Output};

use super::candidates::{Candidate, list, other_spelling};
use super::row::{Layout, frequency, key, key_start, without_mark};
use super::{Frequency, NotSorted, add};

/// Maps keys to frequencies. Most are plain counts and stand in the automaton; the others beside it.
pub struct MemoryMap {
    keys: Fst<Vec<u8>>,
    others: Vec<Frequency>,
    rolled_up: bool,
}

impl MemoryMap {
    /// What the map says about a normal key without query, if anything; appends the key that says so.
    pub fn seek(&self, key: &[u8], matched: &mut Vec<u8>) -> Option<Frequency> {
        self.seek_spelling(key, matched)
            .or_else(|| self.seek_spelling(&other_spelling(key)?, matched))
    }

    /// How many different keys it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn seek_spelling(&self, key: &[u8], matched: &mut Vec<u8>) -> Option<Frequency> {
        let mut candidates = Vec::with_capacity(16);
        list(key, self.rolled_up, &mut candidates);
        let mut walk = Walk {
            keys: &self.keys,
            at: 0,
            here: State {
                node: self.keys.root(),
                output: Output::zero(),
            },
            before: None,
        };
        let mut best: Option<(Candidate, Frequency)> = None;
        for candidate in candidates {
            let Some(value) = walk.value(key, &candidate) else {
                continue;
            };
            let frequency = self.unpack(value);
            if frequency.is_held() || !candidate.is_own {
                best = Some((candidate, frequency));
            }
        }
        let (candidate, frequency) = best?;
        candidate.write(key, matched);
        Some(frequency)
    }

    fn unpack(&self, value: u64) -> Frequency {
        let count = value >> 1;
        if value & 1 == 0 {
            Frequency::of(count)
        } else {
            let place = usize::try_from(count).unwrap_or(usize::MAX);
            // Only the builder makes the automaton, and it put it there.
            self.others[place]
        }
    }
}

#[derive(Clone, Copy)]
struct State<'a> {
    node: Node<'a>,
    output: Output,
}

impl<'a> State<'a> {
    fn step(&self, keys: &'a Fst<Vec<u8>>, byte: u8) -> Option<State<'a>> {
        let transition = self.node.transition(self.node.find_input(byte)?);
        Some(State {
            node: keys.node(transition.addr),
            output: self.output.cat(transition.out),
        })
    }
}

/// One walk along a key's bytes, from which candidates branch off.
struct Walk<'a> {
    keys: &'a Fst<Vec<u8>>,
    at: usize,
    here: State<'a>,
    /// Where it was before the key's last byte: the other spelling of a host's root branches off there.
    before: Option<State<'a>>,
}

impl Walk<'_> {
    /// The value of a candidate, if the map has it. Candidates come by their stems, but for the one of `before`.
    fn value(&mut self, key: &[u8], candidate: &Candidate) -> Option<u64> {
        while self.at < candidate.stem {
            let next = self.here.step(self.keys, key[self.at])?;
            self.at += 1;
            if self.at == key.len() {
                self.before = Some(self.here);
            }
            self.here = next;
        }
        let mut state = if self.at > candidate.stem {
            self.before?
        } else {
            self.here
        };
        for &byte in candidate.tail {
            state = state.step(self.keys, byte)?;
        }
        let is_there = state.node.is_final();
        is_there.then(|| state.output.cat(state.node.final_output()).value())
    }
}

/// Takes a map's rows, one after the other.
pub struct MemoryMapBuilder {
    keys: Builder<Vec<u8>>,
    others: Vec<Frequency>,
    layout: Layout,
    /// The last key, whose rows may not have ended, and their sum.
    key: Vec<u8>,
    sum: Option<Frequency>,
}

impl MemoryMapBuilder {
    /// For rows that are laid out so.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self {
            keys: Builder::memory(),
            others: Vec::new(),
            layout,
            key: Vec::new(),
            sum: None,
        }
    }

    /// Takes one line, which begins at `offset`. Blank ones and headers are passed over.
    pub fn push(&mut self, line: &[u8], offset: u64) -> Result<(), NotSorted> {
        let line = if offset == 0 {
            without_mark(line)
        } else {
            line
        };
        let Some(start) = key_start(line) else {
            return Ok(());
        };
        let row = &line[start..];
        let key = key(row);
        let frequency = frequency(&row[key.len()..], self.layout);
        match self.sum {
            Some(sum) if key == self.key => self.sum = Some(add(sum, frequency)),
            Some(_) if key < self.key.as_slice() => return Err(NotSorted { offset }),
            _ => {
                self.add_last();
                self.key.clear();
                self.key.extend_from_slice(key);
                self.sum = Some(frequency);
            }
        }
        Ok(())
    }

    fn add_last(&mut self) {
        let Some(sum) = self.sum.take() else {
            return;
        };
        let value = match sum.mementos.value() {
            Some(count) if sum == Frequency::of(count) => count << 1,
            _ => {
                self.others.push(sum);
                (self.others.len() as u64 - 1) << 1 | 1
            }
        };
        // It fails for keys that are not sorted, which were refused, and when writing does, which memory does not.
        let inserted = self.keys.insert(&self.key, value);
        debug_assert!(inserted.is_ok());
    }

    /// The map of all rows that were taken.
    #[must_use]
    pub fn finish(mut self) -> MemoryMap {
        self.add_last();
        MemoryMap {
            keys: self.keys.into_fst(),
            others: self.others,
            rolled_up: self.layout.rolled_up,
        }
    }
}
