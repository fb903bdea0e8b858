//! Compaction: a wildcard replaces a subtree where a map's tree branches too much.
//!
//! Entries come in byte order. One thread converts them to tree order, host by host; another walks them with a stack of
//! open nodes, and restores the byte order of the remaining lines of each host.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Write;
use std::thread;

use super::sorter::Sorter;
use super::spill_buffer::SpillBuffer;
use super::totals::Totals;
use super::tree::Tree;
use super::tree_key::{SLASH, restore_key, split_tree_key};
use super::tree_order::{Entries, order_in_thread};
use super::{Entry, HoldingsError, Progress};
use crate::uri::Segments;

/// The maximum number of children of a node: `a · x^-k · weight`, where x grows with its depth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve {
    /// The factor of the power law.
    pub a: f64,
    /// Its exponent.
    pub k: f64,
    /// The user's multiplier; infinite for no limit.
    pub weight: f64,
    /// The number of levels; deeper parts count as one segment.
    pub depth: usize,
}

impl Curve {
    /// The cut-offs of the levels, from the first.
    fn cutoffs(&self) -> Vec<f64> {
        // There are at most 64 levels.
        #[allow(clippy::cast_precision_loss)]
        let cutoff = |level: usize| self.a * ((level + 1) as f64).powf(-self.k) * self.weight;
        (0..self.depth).map(cutoff).collect()
    }
}

/// Compaction options.
#[derive(Debug, Clone, PartialEq)]
pub struct Compaction {
    /// For host labels; the first level is the top-level domain, which is never rolled up by itself.
    pub host: Curve,
    /// For path segments; the first level is the host's root.
    pub path: Curve,
    /// Wildcard keys that are always rolled up; `*` is everything.
    pub forced_keys: HashSet<Vec<u8>>,
}

impl Compaction {
    pub(super) fn is_everything(&self) -> bool {
        self.forced_keys.contains(&b"*"[..])
    }
}

/// Statistics of a map's tree and of its compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactionStats {
    /// By host level, then by path level: nodes with children, except those below other roll-ups.
    pub parents: Vec<u64>,
    /// By level: the number of their children.
    pub children: Vec<u64>,
    /// By level: the number of roll-ups that remain.
    pub rollups: Vec<u64>,
    /// The number of host levels.
    pub host_levels: usize,
    /// Lines read.
    pub lines_in: u64,
    /// Lines written, without the total.
    pub lines_out: u64,
    /// Lines read and written at increasing intervals.
    pub trace: Vec<(u64, u64)>,
}

/// Compacts entries in byte order, and writes the result.
///
/// `fields` is the number of key fields per line. Hosts of more than about three times `memory` are sorted in temporary
/// files.
pub fn compact(
    entries: &mut (impl Entries + Send),
    fields: usize,
    compaction: &Compaction,
    memory: usize,
    out: &mut impl Write,
    progress: &Progress,
) -> Result<CompactionStats, HoldingsError> {
    let mut compactor = Compactor::new(compaction, fields, memory, out);
    thread::scope(|scope| {
        let mut ordered = order_in_thread(scope, entries, memory, progress);
        while ordered.advance()? {
            compactor.take(&ordered.entry())?;
        }
        compactor.finish()
    })
}

/// Walks entries in tree order.
struct Compactor<'a, W: Write> {
    forced_keys: &'a HashSet<Vec<u8>>,
    memory: usize,
    out: &'a mut W,
    hosts: Tree,
    paths: Tree,
    /// Whether pages of the host are being walked.
    in_host: bool,
    /// The number of key fields per line.
    fields: usize,
    /// Whether host nodes can be rolled up, so that text has to be buffered.
    buffers_hosts: bool,
    /// The sum of all entries, if everything is rolled up.
    everything: Option<Totals>,
    /// The declared total in that case.
    declared_totals: Totals,
    stats: CompactionStats,
    next_trace: u64,
}

impl<'a, W: Write> Compactor<'a, W> {
    fn new(compaction: &'a Compaction, fields: usize, memory: usize, out: &'a mut W) -> Self {
        let host = &compaction.host;
        // With one level nothing has children; the walk still needs the root separate from its pages.
        let path = match compaction.path {
            Curve { depth: 0 | 1, .. } => Curve {
                depth: 2,
                weight: f64::INFINITY,
                ..compaction.path
            },
            deeper => deeper,
        };
        let levels = host.depth + path.depth;
        let mut host_cutoffs = host.cutoffs();
        // A top-level domain is never rolled up by itself.
        host_cutoffs[0] = f64::INFINITY;
        Self {
            forced_keys: &compaction.forced_keys,
            memory,
            out,
            hosts: Tree::new(host_cutoffs, 0, b',', b",*", memory / 2),
            paths: Tree::new(path.cutoffs(), host.depth, SLASH, b"/*", memory / 2),
            in_host: false,
            fields,
            buffers_hosts: host.weight.is_finite() || !compaction.forced_keys.is_empty(),
            everything: compaction.is_everything().then(Totals::default),
            declared_totals: Totals::default(),
            stats: CompactionStats {
                parents: vec![0; levels],
                children: vec![0; levels],
                rollups: vec![0; levels],
                host_levels: host.depth,
                ..CompactionStats::default()
            },
            next_trace: 0,
        }
    }

    /// Takes the next entry, whose key is in tree order.
    fn take(&mut self, entry: &Entry<'_>) -> Result<(), HoldingsError> {
        let (surt, extra) = match self.fields {
            1 => (entry.key, Cow::Borrowed(&b""[..])),
            _ => split_tree_key(entry.key),
        };
        let extra = &*extra;
        if surt == b"*" {
            return self.take_total(entry);
        }
        self.stats.lines_in += 1;
        if let Some(everything) = &mut self.everything {
            return everything.add(extra, entry.frequency);
        }
        if self.in_host && self.paths.add_below_rolled(surt, entry, extra)? {
            return Ok(());
        }
        let Some(host_end) = memchr::memchr(b')', surt) else {
            self.end_pages()?;
            if self.hosts.add_below_rolled(surt, entry, extra)? {
                return Ok(());
            }
            self.move_to_host(surt.strip_suffix(b",*").unwrap_or(surt))?;
            return self.hosts.add(entry, extra);
        };
        let host = &surt[..host_end];
        if !self.in_host || self.hosts.key != host {
            self.end_pages()?;
            if self.hosts.add_below_rolled(host, entry, extra)? {
                return Ok(());
            }
            self.move_to_host(host)?;
            self.in_host = true;
        }
        let root = host_end + 1;
        // A wildcard is a line of its parent node, not a child; the root page is a line of the root.
        let node = match surt {
            [node @ .., SLASH, b'*'] => node,
            [node @ .., SLASH] if node.len() == root => node,
            page => page,
        };
        let levels = self.paths.levels();
        self.paths.close_until(node, levels, &mut self.stats)?;
        self.paths.enter(node, root, levels, self.forced_keys);
        self.paths.add(entry, extra)
    }

    /// Takes a total, which is unchanged, also if everything is rolled up into it.
    fn take_total(&mut self, entry: &Entry<'_>) -> Result<(), HoldingsError> {
        if self.everything.is_some() {
            let (_, extra) = split_tree_key(entry.key);
            return self.declared_totals.add(&extra, entry.frequency);
        }
        self.close_all()?;
        let mut line = Vec::new();
        entry.write(&mut line);
        restore_key(&mut line[..entry.key.len()]);
        Ok(self.out.write_all(&line)?)
    }

    fn move_to_host(&mut self, host: &[u8]) -> Result<(), HoldingsError> {
        // The roll-up of a number among IP addresses would sort before lines that are not below it.
        let is_outside_domains = Segments::of(host).is_outside_domains();
        let levels = if is_outside_domains {
            1
        } else {
            self.hosts.levels()
        };
        self.hosts.close_until(host, levels, &mut self.stats)?;
        // A top-level domain is not rolled up by itself: no text has to wait for its end.
        if !self.buffers_hosts || self.hosts.is_at_top() {
            self.write_out()?;
        }
        self.hosts.enter(host, 0, levels, self.forced_keys);
        Ok(())
    }

    fn write_out(&mut self) -> Result<(), HoldingsError> {
        let mut counter = LineCounter {
            out: &mut *self.out,
            lines: &mut self.stats.lines_out,
        };
        self.hosts.spool.drain_to(&mut counter)?;
        self.hosts.flush_text(&mut self.stats);
        if self.stats.lines_in >= self.next_trace {
            self.stats
                .trace
                .push((self.stats.lines_in, self.stats.lines_out));
            self.next_trace = self.stats.lines_in + self.stats.lines_in / 64 + 1;
        }
        Ok(())
    }

    /// Closes the pages of the current host.
    fn end_pages(&mut self) -> Result<(), HoldingsError> {
        if !self.in_host {
            return Ok(());
        }
        self.in_host = false;
        while self.paths.is_open() {
            self.paths.close(&mut self.stats)?;
        }
        self.hosts.add_below(&mut self.paths)?;
        self.flush_pages()
    }

    /// Moves the remaining pages of a host to the text of its hosts, in byte order.
    fn flush_pages(&mut self) -> Result<(), HoldingsError> {
        if self.hosts.is_rolled() {
            return self.paths.spool.truncate(0).map_err(HoldingsError::from);
        }
        if let Some(text) = self.paths.spool.memory() {
            let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
            // Space sorts below every byte of a key, so lines sort like their keys.
            lines.sort_unstable();
            self.hosts.spool.append(|out| {
                for line in lines {
                    out.extend_from_slice(line);
                }
            })?;
            return self.paths.spool.truncate(0).map_err(HoldingsError::from);
        }
        let text = std::mem::replace(&mut self.paths.spool, SpillBuffer::new(self.memory / 2));
        let mut back = Sorter::new(self.fields, self.memory);
        let mut reader = text.into_reader()?;
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            line.pop();
            if let Some((entry, _)) = Entry::read(&line, self.fields) {
                back.push(&entry)?;
            }
            line.clear();
        }
        let mut sorted = back.finish()?;
        while let Some(entry) = sorted.next_entry()? {
            self.hosts.spool.append(|out| entry.write(out))?;
        }
        Ok(())
    }

    fn close_all(&mut self) -> Result<(), HoldingsError> {
        self.end_pages()?;
        while self.hosts.is_open() {
            self.hosts.close(&mut self.stats)?;
        }
        self.write_out()
    }

    /// Closes all nodes. Returns the statistics.
    fn finish(mut self) -> Result<CompactionStats, HoldingsError> {
        self.close_all()?;
        if let Some(everything) = &self.everything {
            // Earlier roll-ups are only in the total.
            let declared_totals = self.declared_totals.text();
            let text = if declared_totals.is_empty() {
                everything.text()
            } else {
                declared_totals
            };
            self.out.write_all(&text)?;
        }
        let end = (self.stats.lines_in, self.stats.lines_out);
        if self.stats.trace.last() != Some(&end) {
            self.stats.trace.push(end);
        }
        Ok(self.stats)
    }
}

/// Counts written lines.
struct LineCounter<'a, W> {
    out: &'a mut W,
    lines: &'a mut u64,
}

impl<W: Write> Write for LineCounter<'_, W> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(buffer)?;
        *self.lines += memchr::memchr_iter(b'\n', &buffer[..written]).count() as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
