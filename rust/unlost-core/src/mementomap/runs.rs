//! Sorted runs of entries, and their merge.

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::BufRead;
use std::ops::Range;

use super::line_format::LineFormat;
use super::merge_heads::{Keyed, SmallestFirst};
use super::spill_buffer::SpillBuffer;
use super::{Entry, Frequency, HoldingsError, Table};

/// Lines sorted by key.
pub(super) struct Run {
    pub(super) text: SpillBuffer,
    /// The last key.
    pub(super) last: Vec<u8>,
}

impl Run {
    /// Appends a part of a sorted table whose keys are larger than the last.
    pub(super) fn append(
        &mut self,
        table: &Table,
        part: Range<usize>,
        form: LineFormat,
    ) -> Result<(), HoldingsError> {
        for index in part.clone() {
            self.text
                .append(|text| form.write(&table.get(index), text))?;
        }
        if let Some(last) = part.last() {
            self.last.clear();
            self.last.extend_from_slice(table.get(last).key);
        }
        Ok(())
    }
}

/// Entries with unique keys.
pub(super) struct Sorted(Inner);

enum Inner {
    /// With the number of entries taken.
    Table(Table, usize),
    /// One run in memory, and where its next line begins.
    Text(Vec<u8>, usize, LineFormat),
    Merge(Merge),
}

impl Sorted {
    pub(super) fn of_table(table: Table) -> Self {
        Self(Inner::Table(table, 0))
    }

    pub(super) fn of_runs(mut runs: Vec<Run>, form: LineFormat) -> Result<Self, HoldingsError> {
        if let [run] = runs.as_mut_slice() {
            if let Some(text) = run.text.take_memory() {
                return Ok(Self(Inner::Text(text, 0, form)));
            }
        }
        Ok(Self(Inner::Merge(Merge::of(runs, form)?)))
    }

    pub(super) fn next_entry(&mut self) -> Result<Option<Entry<'_>>, HoldingsError> {
        match &mut self.0 {
            Inner::Table(table, next) => {
                *next += 1;
                Ok((*next <= table.len()).then(|| table.get(*next - 1)))
            }
            Inner::Text(text, next, form) => {
                let start = *next;
                let Some(length) = memchr::memchr(b'\n', &text[start..]) else {
                    return Ok(None);
                };
                *next += length + 1;
                // Runs are our own output.
                Ok(form.read(&text[start..start + length]))
            }
            Inner::Merge(merge) => merge.next_entry(),
        }
    }
}

/// Merges runs.
struct Merge {
    form: LineFormat,
    heads: BinaryHeap<SmallestFirst<Head>>,
    current: Head,
}

/// The first line of a run that was not taken yet.
struct Head {
    line: Vec<u8>,
    key_len: usize,
    frequency: Frequency,
    tail: usize,
    rest: Box<dyn BufRead + Send>,
}

impl Head {
    fn entry(&self) -> Entry<'_> {
        Entry {
            key: self.key(),
            frequency: self.frequency,
            tail: &self.line[self.tail..],
        }
    }

    /// Moves to the next line; returns whether there is one.
    fn advance(&mut self, form: LineFormat) -> Result<bool, HoldingsError> {
        self.line.clear();
        if self.rest.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(false);
        }
        self.line.pop();
        // Runs are our own output.
        if let Some(entry) = form.read(&self.line) {
            self.frequency = entry.frequency;
            self.tail = self.line.len() - entry.tail.len();
            self.key_len = entry.key.len();
        }
        Ok(true)
    }
}

impl Keyed for Head {
    fn key(&self) -> &[u8] {
        &self.line[..self.key_len]
    }
}

impl Merge {
    fn of(runs: Vec<Run>, form: LineFormat) -> Result<Self, HoldingsError> {
        let empty = |rest| Head {
            line: Vec::new(),
            key_len: 0,
            frequency: Frequency::UNKNOWN,
            tail: 0,
            rest,
        };
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for run in runs {
            let mut first = empty(run.text.into_reader()?);
            if first.advance(form)? {
                heads.push(SmallestFirst(first));
            }
        }
        Ok(Self {
            form,
            heads,
            current: empty(Box::new(std::io::empty())),
        })
    }

    fn next_entry(&mut self) -> Result<Option<Entry<'_>>, HoldingsError> {
        let Some(mut first) = self.heads.peek_mut() else {
            return Ok(None);
        };
        // The line moves to where it can be borrowed from, and its buffer is reused.
        std::mem::swap(&mut self.current.line, &mut first.0.line);
        self.current.key_len = first.0.key_len;
        self.current.frequency = first.0.frequency;
        self.current.tail = first.0.tail;
        if first.0.advance(self.form)? {
            drop(first);
        } else {
            PeekMut::pop(first);
        }
        while let Some(mut next) = self.heads.peek_mut() {
            if next.0.key() != self.current.key() {
                break;
            }
            let sum = self.current.frequency.plus(next.0.frequency);
            self.current.frequency = sum.ok_or_else(|| HoldingsError::Overflow {
                key: self.current.key().to_vec(),
            })?;
            if next.0.entry().tail != self.current.entry().tail {
                self.current.line.truncate(self.current.key_len);
                self.current.tail = self.current.key_len;
            }
            if !next.0.advance(self.form)? {
                PeekMut::pop(next);
            }
        }
        Ok(Some(self.current.entry()))
    }
}
