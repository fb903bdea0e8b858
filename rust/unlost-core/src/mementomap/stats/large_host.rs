//! A host whose URI-Rs do not fit in memory: sorted parts in temporary files, which are merged at the end.

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{BufRead, Read};

use super::path_tree::{HostTotals, PathTree, Walk};
use super::runs::{Run, Runs};
use super::statistics::PathCounts;
use super::top::{BusyPage, TopItems, truncated_key};
use crate::mementomap::HoldingsError;
use crate::mementomap::merge_heads::{Keyed, SmallestFirst};
use crate::mementomap::spill_buffer::SpillBuffer;
use crate::mementomap::tree_key::{restore_key, write_tree_key};

/// Ends the path in the key of a part, so that a page sorts before its subtree. No normalized key contains it.
const PATH_END: u8 = 0;

/// The size of a run without its key: captures, years, first month.
const RUN_NUMBER_BYTES: usize = 8 + 8 + 2;

/// The parts of one host.
#[derive(Default)]
pub(super) struct LargeHost {
    parts: Vec<SpillBuffer>,
}

impl LargeHost {
    /// Writes runs of the host to a file and drops them. The host's name, with the `)`, has `host_len` bytes.
    pub(super) fn spill(&mut self, runs: &mut Runs, host_len: usize) -> Result<(), HoldingsError> {
        let mut keys = Vec::with_capacity(runs.size());
        let mut spans = Vec::with_capacity(runs.len());
        for at in 0..runs.len() {
            let start = keys.len();
            write_part_key(&runs.key(runs.get(at))[host_len..], &mut keys);
            spans.push((start, keys.len(), at));
        }
        spans.sort_unstable_by(|a, b| keys[a.0..a.1].cmp(&keys[b.0..b.1]));
        let mut part = SpillBuffer::new(0);
        for (start, end, at) in spans {
            let run = runs.get(at);
            part.append(|out| {
                out.extend_from_slice(&(end - start).to_le_bytes());
                out.extend_from_slice(&keys[start..end]);
                out.extend_from_slice(&run.captures.to_le_bytes());
                out.extend_from_slice(&run.years.to_le_bytes());
                out.extend_from_slice(&run.first.to_le_bytes());
            })?;
        }
        part.release_memory()?;
        self.parts.push(part);
        runs.clear();
        Ok(())
    }

    /// Counts a host after its last runs, which are then dropped.
    pub(super) fn end_host(
        &mut self,
        host: &[u8],
        last: &mut Runs,
        tree: &mut PathTree,
        out: &mut PathCounts,
    ) -> Result<HostTotals, HoldingsError> {
        let totals = if self.parts.is_empty() {
            tree.count(last, 0..last.len(), out)
        } else {
            self.spill(last, host.len())?;
            self.count(host, out)?
        };
        last.clear();
        Ok(totals)
    }

    /// Counts all runs, and is empty then.
    fn count(&mut self, host: &[u8], out: &mut PathCounts) -> Result<HostTotals, HoldingsError> {
        let mut heads = BinaryHeap::new();
        for part in self.parts.drain(..) {
            let mut head = Head {
                key: Vec::new(),
                run: Run::default(),
                rest: part.into_reader()?,
            };
            if head.advance()? {
                heads.push(SmallestFirst(head));
            }
        }
        let mut counting = UriCounter {
            host,
            totals: HostTotals::default(),
            walk: Walk::default(),
            top: TopItems::default(),
            page: Vec::new(),
        };
        let mut key: Vec<u8> = Vec::new();
        let mut run = Run::default();
        while let Some(mut head) = heads.peek_mut() {
            if head.0.key == key {
                run.add(&head.0.run);
            } else {
                counting.take(&key, &run, out);
                key.clone_from(&head.0.key);
                run = head.0.run;
            }
            if !head.0.advance()? {
                PeekMut::pop(head);
            }
        }
        counting.take(&key, &run, out);
        Ok(counting.finish(out))
    }
}

/// Appends a path with its query in tree order.
fn write_part_key(tail: &[u8], out: &mut Vec<u8>) {
    let path_len = memchr::memchr(b'?', tail).unwrap_or(tail.len());
    let start = out.len();
    out.extend_from_slice(&tail[..path_len]);
    write_tree_key(&mut out[start..]);
    out.push(PATH_END);
    out.extend_from_slice(&tail[path_len..]);
}

/// The first run of a part that was not taken yet.
struct Head {
    key: Vec<u8>,
    run: Run,
    rest: Box<dyn BufRead + Send>,
}

impl Keyed for Head {
    fn key(&self) -> &[u8] {
        &self.key
    }
}

impl Head {
    /// Moves to the next run; returns whether there is one.
    fn advance(&mut self) -> Result<bool, HoldingsError> {
        if self.rest.fill_buf()?.is_empty() {
            return Ok(false);
        }
        let mut length = [0; size_of::<usize>()];
        self.rest.read_exact(&mut length)?;
        self.key.resize(usize::from_le_bytes(length), 0);
        self.rest.read_exact(&mut self.key)?;
        let mut numbers = [0; RUN_NUMBER_BYTES];
        self.rest.read_exact(&mut numbers)?;
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&numbers[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        let first = u16::from_le_bytes([numbers[16], numbers[17]]);
        self.run = Run::of(number(0), number(8), first);
        Ok(true)
    }
}

/// Counts a large host, URI-R by URI-R.
struct UriCounter<'a> {
    host: &'a [u8],
    totals: HostTotals,
    walk: Walk,
    top: TopItems<BusyPage>,
    /// The path of the last page.
    page: Vec<u8>,
}

impl UriCounter<'_> {
    fn take(&mut self, key: &[u8], run: &Run, out: &mut PathCounts) {
        let Some(path_len) = memchr::memchr(PATH_END, key) else {
            return; // before the first
        };
        let mut path = key[..path_len].to_vec();
        restore_key(&mut path);
        let tail = [&path, &key[path_len + 1..]].concat();
        if self.totals.uris == 0 || path != self.page {
            self.walk.step(&self.page, &path, out);
            self.totals.pages += 1;
            self.page.clone_from(&path);
        }
        self.totals.captures += run.captures;
        self.totals.uris += 1;
        out.add(run, &path, &tail);
        self.top.add(run.captures, || BusyPage {
            key: truncated_key(&[self.host, &tail].concat()),
            captures: run.captures,
            host_captures: 0,
            host_uris: 0,
        });
    }

    /// The totals of the host are known only now.
    fn finish(mut self, out: &mut PathCounts) -> HostTotals {
        self.walk.finish(out);
        for page in self.top.first() {
            out.top.add(page.captures, || BusyPage {
                host_captures: self.totals.captures,
                host_uris: self.totals.uris,
                ..page
            });
        }
        self.totals
    }
}
