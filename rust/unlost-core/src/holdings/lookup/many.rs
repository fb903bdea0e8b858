//! Many questions at once, on several threads.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use super::super::Frequency;
use super::samples::Head;
use super::{MemoryMap, NotSorted, TextMap};
use crate::uri::{RuleSet, Segments, UriError, key_of_uri};

/// Keys that are sorted and looked up together: more of them would be nearer to each other in the map, fewer would stay
/// in the processor's cache. Measured: 4,096 take a third longer, 131,072 as long.
const MAX_BLOCK: usize = 32_768;

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

/// Texts in one piece of memory.
#[derive(Debug, Default)]
pub struct Questions {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Questions {
    /// Adds one.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(in crate::holdings) fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }
}

/// What a map says about one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The page's key, without query.
    pub key: &'a [u8],
    /// The key of the map that answers, and what it says; `None` if the map says nothing.
    pub found: Option<(&'a [u8], Frequency)>,
}

/// Where in the text.
#[derive(Clone, Copy)]
struct Piece {
    start: usize,
    end: usize,
}

struct Kept {
    key: Piece,
    found: Option<(Piece, Frequency)>,
}

/// The answers to some questions that follow each other, in their order.
pub struct Answers {
    text: Vec<u8>,
    kept: Vec<Result<Kept, UriError>>,
}

impl Answers {
    /// One for each question, or why it is none.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<Answer<'_>, &UriError>> {
        let piece = |piece: Piece| &self.text[piece.start..piece.end];
        self.kept.iter().map(move |kept| {
            kept.as_ref().map(|kept| Answer {
                key: piece(kept.key),
                found: kept
                    .found
                    .map(|(matched, frequency)| (piece(matched), frequency)),
            })
        })
    }
}

/// Asks a map about one page.
pub fn ask_one<B: AsRef<[u8]> + Sync>(
    map: &Form<B>,
    question: &[u8],
    asked: Asked,
) -> Result<Answers, NotSorted> {
    let mut questions = Questions::default();
    questions.push(question);
    ask_block(map, &questions, 0..1, asked)
}

/// Asks a map about pages, on at most so many threads beside the caller's own, which is given the answers, some at a
/// time and in the order of the questions, as soon as they are there.
pub fn ask_many<B: AsRef<[u8]> + Sync, E: From<NotSorted>>(
    map: &Form<B>,
    questions: &Questions,
    asked: Asked,
    threads: usize,
    mut take: impl FnMut(Answers) -> Result<(), E>,
) -> Result<(), E> {
    let share = questions.len().div_ceil(threads.max(1));
    let size = share.clamp(MIN_BLOCK, MAX_BLOCK);
    let blocks = questions.len().div_ceil(size);
    let block = |i: usize| {
        let part = i * size..((i + 1) * size).min(questions.len());
        ask_block(map, questions, part, asked)
    };
    if blocks <= 1 || threads <= 1 {
        return (0..blocks).try_for_each(|i| take(block(i)?));
    }
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        // Room for some, so that nobody waits for the one whose turn it is, and not for all, so that memory is used again.
        let (sender, receiver) = sync_channel(threads * 2);
        for _ in 0..threads.min(blocks) {
            let (sender, next, block) = (sender.clone(), &next, &block);
            scope.spawn(move || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    // Nobody listens any more once there was an error.
                    if i >= blocks || sender.send((i, block(i))).is_err() {
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

fn ask_block<B: AsRef<[u8]>>(
    map: &Form<B>,
    questions: &Questions,
    part: Range<usize>,
    asked: Asked,
) -> Result<Answers, NotSorted> {
    let mut answers = Answers {
        text: Vec::with_capacity(part.len() * 64),
        kept: Vec::with_capacity(part.len()),
    };
    for i in part {
        let start = answers.text.len();
        let read = write_key(questions.get(i), asked, &mut answers.text);
        answers.kept.push(read.map(|()| Kept {
            key: Piece {
                start,
                end: answers.text.len(),
            },
            found: None,
        }));
    }
    match map {
        Form::Text(map) => answers.find_sorted(map)?,
        Form::Memory(map) => answers.find(map),
    }
    Ok(answers)
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

impl Answers {
    fn find(&mut self, map: &MemoryMap) {
        let mut matched = Vec::new();
        for kept in self.kept.iter_mut().flatten() {
            matched.clear();
            let key = &self.text[kept.key.start..kept.key.end];
            let found = map.seek(key, &mut matched);
            kept.found = found.map(|frequency| (append(&mut self.text, &matched), frequency));
        }
    }

    /// In the order of the keys, so that neighbours are found together, and a file is read in one direction.
    fn find_sorted<B: AsRef<[u8]>>(&mut self, map: &TextMap<B>) -> Result<(), NotSorted> {
        let key = |i: usize| match &self.kept[i] {
            Ok(kept) => &self.text[kept.key.start..kept.key.end],
            Err(_) => &[],
        };
        let mut order: Vec<(Head, usize)> = (0..self.kept.len())
            .filter(|&i| self.kept[i].is_ok())
            .map(|i| (Head::of(key(i)), i))
            .collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(key(b.1))));
        // Keys that lie in the order in which they are asked for are in the cache when they are.
        let mut sorted = Vec::with_capacity(self.text.len() * 2);
        let pieces: Vec<Piece> = order
            .iter()
            .map(|&(_, i)| append(&mut sorted, key(i)))
            .collect();
        self.text = sorted;
        let mut seeker = map.seeker(order.len())?;
        let mut matched = Vec::new();
        for ((_, i), key) in order.into_iter().zip(pieces) {
            matched.clear();
            let found = seeker.seek(&self.text[key.start..key.end], &mut matched)?;
            let found = found.map(|frequency| (append(&mut self.text, &matched), frequency));
            self.kept[i] = Ok(Kept { key, found });
        }
        Ok(())
    }
}

fn append(text: &mut Vec<u8>, piece: &[u8]) -> Piece {
    let start = text.len();
    text.extend_from_slice(piece);
    Piece {
        start,
        end: text.len(),
    }
}
