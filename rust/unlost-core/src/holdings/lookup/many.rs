//! Many questions at once, on several threads.

use std::ops::Range;
use std::thread;

use super::super::Frequency;
use super::{MemoryMap, NotSorted, TextMap};
use crate::uri::{RuleSet, Segments, UriError, key_of_uri};

/// A thread's start costs as much as some hundred look-ups: fewer than these are not worth one.
const MIN_PER_THREAD: usize = 512;

/// Keys that are sorted and looked up together. What they and their answers take fits a processor's own cache, which
/// matters more than that neighbours among more of them would be nearer.
const BLOCK: usize = 32768;

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

    fn get(&self, i: usize) -> &[u8] {
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

/// Asks a map about pages, on at most so many threads; the answers in the order of the questions.
pub fn ask_many<B: AsRef<[u8]> + Sync>(
    map: &Form<B>,
    questions: &Questions,
    asked: Asked,
    threads: usize,
) -> Result<Vec<Answers>, NotSorted> {
    let threads = threads.clamp(1, questions.len() / MIN_PER_THREAD + 1);
    let share = questions.len().div_ceil(threads).max(1);
    let part = |i: usize| i * share..((i + 1) * share).min(questions.len());
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|i| scope.spawn(move || ask(map, questions, part(i), asked)))
            .collect();
        let mut answers = ask(map, questions, part(0), asked)?;
        for other in others {
            let joined = other.join();
            answers.extend(joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(answers)
    })
}

fn ask<B: AsRef<[u8]>>(
    map: &Form<B>,
    questions: &Questions,
    part: Range<usize>,
    asked: Asked,
) -> Result<Vec<Answers>, NotSorted> {
    part.clone()
        .step_by(BLOCK)
        .map(|start| {
            let block = start..(start + BLOCK).min(part.end);
            ask_block(map, questions, block, asked)
        })
        .collect()
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
        let mut order: Vec<(u128, usize)> = Vec::with_capacity(self.kept.len());
        for (i, kept) in self.kept.iter().enumerate() {
            if let Ok(kept) = kept {
                order.push((beginning(&self.text[kept.key.start..kept.key.end]), i));
            }
        }
        let key = |i: usize| {
            let piece = self.kept[i].as_ref().map(|kept| kept.key);
            piece.map_or(&b""[..], |key| &self.text[key.start..key.end])
        };
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(key(b.1))));
        let mut seeker = map.seeker();
        let mut matched = Vec::new();
        for (_, i) in order {
            let Ok(kept) = &mut self.kept[i] else {
                continue;
            };
            matched.clear();
            let key = &self.text[kept.key.start..kept.key.end];
            let found = seeker.seek(key, &mut matched)?;
            kept.found = found.map(|frequency| (append(&mut self.text, &matched), frequency));
        }
        Ok(())
    }
}

fn append(text: &mut Vec<u8>, matched: &[u8]) -> Piece {
    let start = text.len();
    text.extend_from_slice(matched);
    Piece {
        start,
        end: text.len(),
    }
}

/// The first bytes of a key as a number, in the order of keys: most comparisons need no more.
fn beginning(key: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let length = key.len().min(16);
    bytes[..length].copy_from_slice(&key[..length]);
    u128::from_be_bytes(bytes)
}
