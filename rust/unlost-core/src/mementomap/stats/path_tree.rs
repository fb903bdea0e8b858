//! The pages of one host as a tree: pages per prefix, and children per node.

use std::cmp::Ordering;
use std::ops::Range;

use super::runs::{NO_MONTH, Run, Runs, host_of};
use super::statistics::{PATH_LEVELS, PathCounts};
use super::top::{BusyPage, truncated_key};
use crate::mementomap::tree_key::{common_len, tree_byte};

/// The totals of a host.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HostTotals {
    pub(super) captures: u64,
    pub(super) uris: u64,
    pub(super) pages: u64,
}

/// Memory that is reused for each host.
#[derive(Debug, Default)]
pub(super) struct PathTree {
    /// The ranges of pages in the runs, before they are in tree order.
    pages: Vec<(usize, usize)>,
}

impl PathTree {
    /// Counts the runs of one host.
    pub(super) fn count(
        &mut self,
        runs: &mut Runs,
        part: Range<usize>,
        out: &mut PathCounts,
    ) -> HostTotals {
        let start = part.start;
        let end = start + runs.merge_sorted(part);
        let host_len = host_of(runs.key(runs.get(start))).len();
        let mut totals = HostTotals::default();
        self.pages.clear();
        let mut is_ordered = true;
        let mut last: &[u8] = b"";
        for at in start..end {
            let run = runs.get(at);
            let tail = &runs.key(run)[host_len..];
            let path = &tail[..memchr::memchr(b'?', tail).unwrap_or(tail.len())];
            totals.captures += run.captures;
            totals.uris += 1;
            out.add(run, path, tail);
            if path == last && !self.pages.is_empty() {
                continue;
            }
            is_ordered &= self.pages.is_empty() || tree_order(last, path) == Ordering::Less;
            self.pages.push((at, path.len()));
            last = path;
        }
        let path_of =
            |&(at, len): &(usize, usize)| &runs.key(runs.get(at))[host_len..host_len + len];
        if !is_ordered {
            self.pages
                .sort_unstable_by(|a, b| tree_order(path_of(a), path_of(b)));
            self.pages.dedup_by(|a, b| path_of(a) == path_of(b));
        }
        totals.pages = self.pages.len() as u64;
        walk(self.pages.iter().map(path_of), out);
        for at in start..end {
            let run = runs.get(at);
            out.top.add(run.captures, || BusyPage {
                key: truncated_key(runs.key(run)),
                captures: run.captures,
                host_captures: totals.captures,
                host_uris: totals.uris,
            });
        }
        totals
    }
}

/// An order in which the subtree of a folder follows it.
fn tree_order(a: &[u8], b: &[u8]) -> Ordering {
    let common = common_len(a, b);
    let next = |path: &[u8]| path.get(common).copied().map(tree_byte);
    next(a).cmp(&next(b))
}

/// The number of segments of a path. Normalized paths have no empty segments.
pub(super) fn depth(path: &[u8]) -> usize {
    match path {
        b"" | b"/" => 0,
        _ => memchr::memchr_iter(b'/', path).count(),
    }
}

/// The number of common segments of two different paths.
fn common_depth(a: &[u8], b: &[u8]) -> usize {
    let common = common_len(a, b);
    if common == 0 {
        return 0;
    }
    let whole = memchr::memchr_iter(b'/', &a[1..common]).count();
    let ends = |path: &[u8]| path.get(common).is_none_or(|&byte| byte == b'/');
    // A slash at the end of the common prefix has ended its segment already.
    whole + usize::from(common > 1 && a[common - 1] != b'/' && ends(a) && ends(b))
}

/// Walks unique pages in tree order.
fn walk<'a>(pages: impl Iterator<Item = &'a [u8]>, out: &mut PathCounts) {
    let mut walk = Walk::default();
    let mut last: &[u8] = b"";
    for path in pages {
        walk.step(last, path, out);
        last = path;
    }
    walk.finish(out);
}

/// The path from the root of a host to its last page.
#[derive(Default)]
pub(super) struct Walk {
    below: [u64; PATH_LEVELS],
    children: [u64; PATH_LEVELS],
    /// The depth of the last page, if there was one.
    last: Option<usize>,
}

impl Walk {
    /// Moves from the last page to the next.
    pub(super) fn step(&mut self, last: &[u8], path: &[u8], out: &mut PathCounts) {
        let level = depth(path).min(PATH_LEVELS - 1);
        out.page_depths[level] += 1;
        let shared = match self.last {
            None => 0,
            Some(at) => {
                let shared = common_depth(last, path).min(PATH_LEVELS - 1);
                close(at, shared, &mut self.below, &mut self.children, out);
                shared
            }
        };
        for opened in shared + 1..=level {
            self.children[opened - 1] += 1;
        }
        self.below[level] += 1;
        self.last = Some(level);
    }

    /// Called after the last page.
    pub(super) fn finish(&mut self, out: &mut PathCounts) {
        if let Some(at) = self.last {
            close(at, 0, &mut self.below, &mut self.children, out);
            out.prefixes[0].add(self.below[0], 1);
            if self.children[0] > 0 {
                out.children[1].add(self.children[0], 1);
            }
        }
    }
}

/// Closes the nodes between two levels; the upper one stays open.
fn close(
    from: usize,
    shared: usize,
    below: &mut [u64; PATH_LEVELS],
    children: &mut [u64; PATH_LEVELS],
    out: &mut PathCounts,
) {
    for level in (shared + 1..=from).rev() {
        let count = std::mem::take(&mut below[level]);
        out.prefixes[level].add(count, 1);
        below[level - 1] += count;
        let own = std::mem::take(&mut children[level]);
        if own > 0 {
            out.children[level + 1].add(own, 1);
        }
    }
}

impl PathCounts {
    /// Counts one URI-R.
    pub(super) fn add(&mut self, run: &Run, path: &[u8], tail: &[u8]) {
        self.captures.add(run.captures, 1);
        let mut years = run.years;
        while years > 0 {
            self.year_uris[years.trailing_zeros() as usize] += 1;
            years &= years - 1;
        }
        if run.first != NO_MONTH {
            self.new_uris[usize::from(run.first)] += 1;
        }
        self.path_query[shape_of(path, tail)] += run.captures;
    }
}

/// Segments and parameters, five and more together, as one number.
pub(super) fn shape_of(path: &[u8], tail: &[u8]) -> usize {
    let parameters = match tail.len() - path.len() {
        0 | 1 => 0,
        _ => 1 + memchr::memchr_iter(b'&', &tail[path.len()..]).count(),
    };
    depth(path).min(5) * 6 + parameters.min(5)
}
