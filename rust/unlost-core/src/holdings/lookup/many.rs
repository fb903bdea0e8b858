//! Many questions at once, on several threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use super::super::Frequency;
use super::samples::Head;
use super::{MemoryMap, NotSorted, TextMap, memory};
use crate::uri::{RuleSet, Segments, UriError, key_of_uri};

/// Keys that are sorted and looked up together: more of them would be nearer to each other in the map, fewer would stay
/// in the processor's cache. Measured: 4,096 take a third longer, 131,072 as long.
const MAX_BLOCK: usize = 32_768;

/// Answers that share one piece of memory.
const GROUP: usize = 64;

/// Bytes of text for an answer, so that few groups need more: its key, and the key that matched.
const TEXT: usize = 96;

/// A thread's start costs as much as some hundred look-ups: fewer than these are not worth one.
const MIN_BLOCK: usize = 512;

/// A map in either form.
pub enum Form<B> {
    /// Its text, where it lies.
    Text(TextMap<B>),
    /// In memory.
    Memory(MemoryMap),
}

/// What questions are asked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Addresses, or SURTs in their place, read by these rules.
    Uris(RuleSet),
    /// Normal keys, with or without query.
    Keys,
}

/// What a map says about one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The page's key, without query.
    pub key: &'a [u8],
    /// The key of the map that answers, and what it says; `None` if the map says nothing.
    pub found: Option<(&'a [u8], Frequency)>,
}

/// Where in a group's text: from here to there.
#[derive(Debug, Clone, Copy)]
struct Piece(usize, usize);

#[derive(Debug)]
struct Kept {
    key: Piece,
    found: Option<(Piece, Frequency)>,
}

/// Some answers with their text in one piece of memory: whoever keeps one of them keeps the few beside it, and nobody
/// needs memory for each.
#[derive(Debug, Default)]
pub struct Answers {
    text: Vec<u8>,
    kept: Vec<Result<Kept, UriError>>,
}

impl Answers {
    /// One answer that is there already.
    #[must_use]
    pub fn of(answer: Answer<'_>) -> Self {
        let mut answers = Self::default();
        let key = answers.append(answer.key);
        let found = answer.found;
        let found = found.map(|(matched, frequency)| (answers.append(matched), frequency));
        answers.kept.push(Ok(Kept { key, found }));
        answers
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The answer to a question, or why it is none.
    pub fn get(&self, i: usize) -> Result<Answer<'_>, &UriError> {
        let kept = self.kept[i].as_ref()?;
        Ok(Answer {
            key: self.piece(kept.key),
            found: kept
                .found
                .map(|(matched, frequency)| (self.piece(matched), frequency)),
        })
    }

    fn piece(&self, Piece(start, end): Piece) -> &[u8] {
        &self.text[start..end]
    }

    fn append(&mut self, text: &[u8]) -> Piece {
        let start = self.text.len();
        self.text.extend_from_slice(text);
        self.since(start)
    }

    fn since(&self, start: usize) -> Piece {
        Piece(start, self.text.len())
    }

    /// The keys of some questions.
    fn read<Q: AsRef<[u8]>>(questions: &[Q], asked: Asked) -> Self {
        let mut answers = Self {
            text: Vec::with_capacity(questions.len() * TEXT),
            kept: Vec::with_capacity(questions.len()),
        };
        for question in questions {
            let start = answers.text.len();
            let read = write_key(question.as_ref(), asked, &mut answers.text);
            if read.is_err() {
                answers.text.truncate(start);
            }
            let key = answers.since(start);
            answers.kept.push(read.map(|()| Kept { key, found: None }));
        }
        answers
    }
}

/// Asks a map about one page.
pub fn ask_one<B: AsRef<[u8]> + Sync>(
    map: &Form<B>,
    question: &[u8],
    asked: Asked,
) -> Result<Answers, NotSorted> {
    let mut answers = [Answers::read(&[question], asked)];
    find(map, &mut answers, &mut Room::default())?;
    let [answers] = answers;
    Ok(answers)
}

/// Asks a map about pages, on at most so many threads beside the caller's own, which is given the answers, some at a
/// time and in the order of the questions, as soon as they are there.
pub fn ask_many<B: AsRef<[u8]> + Sync, Q: AsRef<[u8]> + Sync, E: From<NotSorted>>(
    map: &Form<B>,
    questions: &[Q],
    asked: Asked,
    threads: usize,
    mut take: impl FnMut(Vec<Answers>) -> Result<(), E>,
) -> Result<(), E> {
    let share = questions.len().div_ceil(threads.max(1));
    let size = share.clamp(MIN_BLOCK, MAX_BLOCK);
    let blocks: Vec<&[Q]> = questions.chunks(size).collect();
    let answer = |block: &[Q], room: &mut Room| {
        let groups = block.chunks(GROUP);
        let mut answers: Vec<Answers> = groups.map(|group| Answers::read(group, asked)).collect();
        find(map, &mut answers, room).map(|()| answers)
    };
    if blocks.len() <= 1 || threads <= 1 {
        let mut room = Room::default();
        return blocks
            .iter()
            .try_for_each(|block| take(answer(block, &mut room)?));
    }
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        // Room for some, so that nobody waits for the one whose turn it is, and not for all, so that memory is used again.
        let (sender, receiver) = sync_channel(threads * 2);
        for _ in 0..threads.min(blocks.len()) {
            let (sender, next, blocks, answer) = (sender.clone(), &next, &blocks, &answer);
            scope.spawn(move || {
                let mut room = Room::default();
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(block) = blocks.get(i) else { break };
                    // Nobody listens any more once there was an error.
                    if sender.send((i, answer(block, &mut room))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut turn = 0;
        for (i, answers) in receiver {
            early.insert(i, answers?);
            while let Some(answers) = early.remove(&turn) {
                take(answers)?;
                turn += 1;
            }
        }
        Ok(())
    })
}

/// Appends the key to look up: normal, without query.
fn write_key(question: &[u8], asked: Asked, out: &mut Vec<u8>) -> Result<(), UriError> {
    let start = out.len();
    match asked {
        Asked::Uris(rules) => key_of_uri(question, rules, out)?,
        Asked::Keys => {
            // No key has white space in it, and rows end theirs there.
            let end = question.iter().position(|&byte| byte <= b' ');
            out.extend_from_slice(&question[..end.unwrap_or(question.len())]);
        }
    }
    let length = Segments::of(&out[start..]).path_end();
    out.truncate(start + length);
    Ok(())
}

/// Memory that a thread uses again and again.
#[derive(Default)]
struct Room {
    search: memory::Room,
    matched: Vec<u8>,
    order: Vec<(Head, usize)>,
    sorted: Vec<u8>,
    ends: Vec<usize>,
}

/// Looks up all keys of a block.
fn find<B: AsRef<[u8]>>(
    map: &Form<B>,
    groups: &mut [Answers],
    room: &mut Room,
) -> Result<(), NotSorted> {
    let memory = match map {
        Form::Text(map) => {
            let count = groups.iter().map(Answers::len).sum();
            match map.loaded(count) {
                None => return find_sorted(map, groups, room),
                Some(memory) => memory,
            }
        }
        Form::Memory(map) => map,
    };
    find_each(memory, groups, room);
    Ok(())
}

fn find_each(map: &MemoryMap, groups: &mut [Answers], room: &mut Room) {
    let Room {
        search, matched, ..
    } = room;
    for group in groups {
        for i in 0..group.len() {
            let Ok(kept) = &group.kept[i] else { continue };
            matched.clear();
            if let Some(frequency) = map.seek_in(search, group.piece(kept.key), matched) {
                group.keep(i, matched, frequency);
            }
        }
    }
}

/// In the order of the keys, so that neighbours are found together, and a file is read in one direction.
fn find_sorted<B: AsRef<[u8]>>(
    map: &TextMap<B>,
    groups: &mut [Answers],
    room: &mut Room,
) -> Result<(), NotSorted> {
    let Room {
        matched,
        order,
        sorted,
        ends,
        ..
    } = room;
    order.clear();
    for (g, group) in groups.iter().enumerate() {
        for (i, kept) in group.kept.iter().enumerate() {
            if let Ok(kept) = kept {
                order.push((Head::of(group.piece(kept.key)), g * GROUP + i));
            }
        }
    }
    let key = |place: usize| {
        let group = &groups[place / GROUP];
        match &group.kept[place % GROUP] {
            Ok(kept) => group.piece(kept.key),
            Err(_) => &[],
        }
    };
    order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(key(b.1))));
    // Keys that lie in the order in which they are asked for are in the cache when they are.
    sorted.clear();
    ends.clear();
    for &(_, place) in order.iter() {
        sorted.extend_from_slice(key(place));
        ends.push(sorted.len());
    }
    let mut seeker = map.seeker(order.len())?;
    let mut start = 0;
    for (&(_, place), &end) in order.iter().zip(ends.iter()) {
        matched.clear();
        if let Some(frequency) = seeker.seek(&sorted[start..end], matched)? {
            groups[place / GROUP].keep(place % GROUP, matched, frequency);
        }
        start = end;
    }
    Ok(())
}

impl Answers {
    fn keep(&mut self, i: usize, matched: &[u8], frequency: Frequency) {
        let piece = self.append(matched);
        if let Ok(kept) = &mut self.kept[i] {
            kept.found = Some((piece, frequency));
        }
    }
}
