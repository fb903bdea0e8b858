//! Batch look-up in several threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope};

use super::results::{LookupResults, QueryKind};
use super::samples::KeyPrefix;
use super::{MemoryMap, NotSorted, TextMap, memory};
use crate::string_arena::StringArena;
use crate::uri::alternative_keys;

/// Results per group. All groups of a batch but the last are full.
pub const GROUP_SIZE: usize = 64;

/// The initial block size in queries: starting a thread costs as much as some hundred look-ups.
const MIN_BLOCK: usize = 16 * GROUP_SIZE;

/// The maximum block size in queries. The keys of a block are sorted and looked up together: in larger blocks,
/// neighbours are closer in the map; smaller ones fit the processor's cache better. Measured: blocks of 4,096 take a
/// third longer, blocks of 131,072 as long.
const MAX_BLOCK: usize = 512 * GROUP_SIZE;

/// A map in either form.
pub enum SearchableMap<B> {
    /// Its text in the file.
    Text(TextMap<B>),
    /// In memory.
    Memory(MemoryMap),
}

/// Queries a map for one page.
pub fn query_one<B: AsRef<[u8]>>(
    map: &SearchableMap<B>,
    query: &[u8],
    kind: QueryKind,
) -> Result<LookupResults, NotSorted> {
    let mut results = [LookupResults::read(std::iter::once(query), kind)];
    find(map, &mut results, &mut Buffers::default())?;
    find_alternatives(map, std::iter::once(query), kind, &mut results)?;
    let [results] = results;
    Ok(results)
}

/// Starts worker threads, which look up queries while `work` submits more.
pub fn with_workers<B: AsRef<[u8]> + Sync, T>(
    map: &SearchableMap<B>,
    kind: QueryKind,
    threads: usize,
    work: impl FnOnce(LookupPool<'_, '_, B>) -> T,
) -> T {
    thread::scope(|scope| {
        work(LookupPool {
            scope,
            map,
            kind,
            threads,
            submitted: 0,
            first_block: None,
            channels: None,
            inline_results: Ok(Vec::new()),
            buffers: Buffers::default(),
        })
    })
}

/// A block of queries for one worker.
type Block = (usize, StringArena);
type Done = (usize, Result<Vec<LookupResults>, NotSorted>);

/// Threads that look up queries. For a single block, or if only one thread is allowed, the submitting thread looks them
/// up.
pub struct LookupPool<'scope, 'env: 'scope, B> {
    scope: &'scope Scope<'scope, 'env>,
    map: &'env SearchableMap<B>,
    kind: QueryKind,
    threads: usize,
    submitted: usize,
    /// The first block, until there is a second.
    first_block: Option<Block>,
    channels: Option<WorkChannels>,
    inline_results: Result<Vec<LookupResults>, NotSorted>,
    buffers: Buffers,
}

/// Channels for blocks and results.
struct WorkChannels {
    blocks: Sender<Block>,
    done: Receiver<Done>,
    closed: CloseOnDrop,
}

/// Stops the threads when dropped.
struct CloseOnDrop(Arc<AtomicBool>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<B: AsRef<[u8]> + Sync> LookupPool<'_, '_, B> {
    /// The recommended size of the next block in queries. Blocks grow, so that work starts early.
    #[must_use]
    pub fn block(&self) -> usize {
        MAX_BLOCK.min(MIN_BLOCK << self.submitted.min(16))
    }

    /// Submits the next queries: as many as `block` returned, or fewer if they are the last.
    pub fn submit(&mut self, queries: StringArena) {
        let block = (self.submitted, queries);
        self.submitted += 1;
        if self.threads <= 1 {
            self.run_inline(&block);
        } else if let Some(channels) = &self.channels {
            send_block(&channels.blocks, block);
        } else if let Some(first) = self.first_block.take() {
            let channels = self.start_workers();
            send_block(&channels.blocks, first);
            send_block(&channels.blocks, block);
            self.channels = Some(channels);
        } else {
            self.first_block = Some(block);
        }
    }

    fn run_inline(&mut self, (_, queries): &Block) {
        if let Ok(results) = &mut self.inline_results {
            match look_up_block(self.map, queries, self.kind, &mut self.buffers) {
                Ok(more) => results.extend(more),
                Err(error) => self.inline_results = Err(error),
            }
        }
    }

    /// Waits for all results. They are in groups, in query order.
    pub fn finish(mut self) -> Result<Vec<LookupResults>, NotSorted> {
        if let Some(block) = self.first_block.take() {
            self.run_inline(&block);
        }
        let Some(channels) = self.channels else {
            return self.inline_results;
        };
        drop(channels.blocks);
        let mut blocks: Vec<Vec<LookupResults>> = Vec::new();
        blocks.resize_with(self.submitted, Vec::new);
        for (i, results) in &channels.done {
            blocks[i] = results?;
        }
        drop(channels.closed);
        Ok(blocks.into_iter().flatten().collect())
    }

    fn start_workers(&self) -> WorkChannels {
        let (blocks, taken) = channel::<Block>();
        let (sender, done) = channel();
        let closed = CloseOnDrop(Arc::new(AtomicBool::new(false)));
        let taken = Arc::new(Mutex::new(taken));
        for _ in 0..self.threads {
            let (map, kind) = (self.map, self.kind);
            let (taken, sender) = (Arc::clone(&taken), sender.clone());
            let closed = Arc::clone(&closed.0);
            self.scope.spawn(move || {
                let mut buffers = Buffers::default();
                loop {
                    let next = {
                        let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
                        taken.recv()
                    };
                    let Ok((i, queries)) = next else { break };
                    if closed.load(Ordering::Relaxed) {
                        break;
                    }
                    let results = look_up_block(map, &queries, kind, &mut buffers);
                    if sender.send((i, results)).is_err() {
                        break;
                    }
                }
            });
        }
        WorkChannels {
            blocks,
            done,
            closed,
        }
    }
}

/// Sending fails only if the threads have stopped, and they stop only when the sender is dropped.
fn send_block(blocks: &Sender<Block>, block: Block) {
    let _ = blocks.send(block);
}

fn look_up_block<B: AsRef<[u8]>>(
    map: &SearchableMap<B>,
    queries: &StringArena,
    kind: QueryKind,
    buffers: &mut Buffers,
) -> Result<Vec<LookupResults>, NotSorted> {
    let mut rest = queries.iter();
    let mut groups = Vec::with_capacity(queries.len().div_ceil(GROUP_SIZE));
    while rest.len() > 0 {
        groups.push(LookupResults::read(rest.by_ref().take(GROUP_SIZE), kind));
    }
    find(map, &mut groups, buffers)?;
    find_alternatives(map, queries.iter(), kind, &mut groups)?;
    Ok(groups)
}

/// Tries the keys that other tools derive for a URL, if the map does not hold the URL's own key.
fn find_alternatives<'a, B: AsRef<[u8]>>(
    map: &SearchableMap<B>,
    queries: impl Iterator<Item = &'a [u8]>,
    kind: QueryKind,
    groups: &mut [LookupResults],
) -> Result<(), NotSorted> {
    let QueryKind::Uris(rules) = kind else {
        return Ok(());
    };
    for (index, query) in queries.enumerate() {
        let (group, i) = (&mut groups[index / GROUP_SIZE], index % GROUP_SIZE);
        if group.is_held(i) {
            continue;
        }
        for key in alternative_keys(query, rules) {
            let other = query_one(map, &key, QueryKind::Keys)?;
            if other.is_held(0) {
                group.replace(i, &other);
                break;
            }
        }
    }
    Ok(())
}

/// Reused memory of a thread.
#[derive(Default)]
struct Buffers {
    search: memory::Buffers,
    matched: Vec<u8>,
    order: Vec<(KeyPrefix, usize)>,
    sorted: Vec<u8>,
    ends: Vec<usize>,
}

/// Looks up all keys of a block.
fn find<B: AsRef<[u8]>>(
    map: &SearchableMap<B>,
    groups: &mut [LookupResults],
    buffers: &mut Buffers,
) -> Result<(), NotSorted> {
    let memory = match map {
        SearchableMap::Text(map) => {
            let count = groups.iter().map(LookupResults::len).sum();
            match map.loaded(count) {
                None => return find_sorted(map, groups, buffers),
                Some(memory) => memory,
            }
        }
        SearchableMap::Memory(map) => map,
    };
    find_each(memory, groups, buffers);
    Ok(())
}

fn find_each(map: &MemoryMap, groups: &mut [LookupResults], buffers: &mut Buffers) {
    let Buffers {
        search, matched, ..
    } = buffers;
    for group in groups {
        for i in 0..group.len() {
            let Some(key) = group.key(i) else { continue };
            matched.clear();
            if let Some(frequency) = map.seek_in(search, key, matched) {
                group.set_found(i, matched, frequency);
            }
        }
    }
}

/// In key order, so that neighbours are searched together, and a file is read in one direction.
fn find_sorted<B: AsRef<[u8]>>(
    map: &TextMap<B>,
    groups: &mut [LookupResults],
    buffers: &mut Buffers,
) -> Result<(), NotSorted> {
    let Buffers {
        matched,
        order,
        sorted,
        ends,
        ..
    } = buffers;
    order.clear();
    for (g, group) in groups.iter().enumerate() {
        let keys = (0..group.len()).filter_map(|i| Some((i, group.key(i)?)));
        order.extend(keys.map(|(i, key)| (KeyPrefix::of(key), g * GROUP_SIZE + i)));
    }
    let key = |index: usize| {
        groups[index / GROUP_SIZE]
            .key(index % GROUP_SIZE)
            .unwrap_or(b"")
    };
    order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(key(b.1))));
    // Copies keys in query order, so that they are in the cache when they are read again.
    sorted.clear();
    ends.clear();
    for &(_, index) in order.iter() {
        sorted.extend_from_slice(key(index));
        ends.push(sorted.len());
    }
    let mut seeker = map.seeker(order.len())?;
    let mut start = 0;
    for (&(_, index), &end) in order.iter().zip(ends.iter()) {
        matched.clear();
        if let Some(frequency) = seeker.seek(&sorted[start..end], matched)? {
            groups[index / GROUP_SIZE].set_found(index % GROUP_SIZE, matched, frequency);
        }
        start = end;
    }
    Ok(())
}
