//! Many questions at once, on several threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope};

use super::answers::{Answers, Asked};
use super::samples::Head;
use super::{MemoryMap, NotSorted, TextMap, memory};
use crate::texts::Texts;
use crate::uri::alternative_keys;

/// Answers that share one piece of memory. All groups of a batch but the last are full.
pub const GROUP: usize = 64;

/// Questions that are handed over together at first: a thread's start costs as much as some hundred look-ups.
const MIN_BLOCK: usize = 16 * GROUP;

/// The most of them. Their keys are sorted and looked up together: more would be nearer to each other in the map, fewer
/// would stay in the processor's cache. Measured: 4,096 take a third longer, 131,072 as long.
const MAX_BLOCK: usize = 512 * GROUP;

/// A map in either form.
pub enum Form<B> {
    /// Its text, where it lies.
    Text(TextMap<B>),
    /// In memory.
    Memory(MemoryMap),
}

/// Asks a map about one page.
pub fn ask_one<B: AsRef<[u8]>>(
    map: &Form<B>,
    question: &[u8],
    asked: Asked,
) -> Result<Answers, NotSorted> {
    let mut answers = [Answers::read(std::iter::once(question), asked)];
    find(map, &mut answers, &mut Room::default())?;
    find_alternatives(map, std::iter::once(question), asked, &mut answers)?;
    let [answers] = answers;
    Ok(answers)
}

/// Lets some threads answer what they are given, while whoever gives it to them looks for more.
pub fn with_crew<B: AsRef<[u8]> + Sync, T>(
    map: &Form<B>,
    asked: Asked,
    threads: usize,
    work: impl FnOnce(Crew<'_, '_, B>) -> T,
) -> T {
    thread::scope(|scope| {
        work(Crew {
            scope,
            map,
            asked,
            threads,
            given: 0,
            waiting: None,
            desk: None,
            alone: Ok(Vec::new()),
            room: Room::default(),
        })
    })
}

/// What can be answered at once, by one who asks nothing else.
type Block = (usize, Texts);
type Done = (usize, Result<Vec<Answers>, NotSorted>);

/// Threads that answer questions about a map. None is started for what one block holds, nor if there may be but one:
/// then whoever gives the questions answers them.
pub struct Crew<'scope, 'env: 'scope, B> {
    scope: &'scope Scope<'scope, 'env>,
    map: &'env Form<B>,
    asked: Asked,
    threads: usize,
    given: usize,
    /// The first block, as long as there is no second.
    waiting: Option<Block>,
    desk: Option<Desk>,
    alone: Result<Vec<Answers>, NotSorted>,
    room: Room,
}

/// Where blocks are handed out and answers handed in.
struct Desk {
    blocks: Sender<Block>,
    done: Receiver<Done>,
    closed: Closed,
}

/// Tells the threads to stop when nobody waits for them any more.
struct Closed(Arc<AtomicBool>);

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<B: AsRef<[u8]> + Sync> Crew<'_, '_, B> {
    /// How many questions the next block should have. They grow, so that work begins at once, and ends up large.
    #[must_use]
    pub fn block(&self) -> usize {
        MAX_BLOCK.min(MIN_BLOCK << self.given.min(16))
    }

    /// Gives them the next questions: as many as `block` said, or fewer if they are the last.
    pub fn give(&mut self, questions: Texts) {
        let block = (self.given, questions);
        self.given += 1;
        if self.threads <= 1 {
            self.answer_alone(&block);
        } else if let Some(desk) = &self.desk {
            hand_over(&desk.blocks, block);
        } else if let Some(first) = self.waiting.take() {
            let desk = self.open_desk();
            hand_over(&desk.blocks, first);
            hand_over(&desk.blocks, block);
            self.desk = Some(desk);
        } else {
            self.waiting = Some(block);
        }
    }

    fn answer_alone(&mut self, (_, questions): &Block) {
        if let Ok(answers) = &mut self.alone {
            match answer(self.map, questions, self.asked, &mut self.room) {
                Ok(more) => answers.extend(more),
                Err(error) => self.alone = Err(error),
            }
        }
    }

    /// Waits for all answers. They are in groups, in the order of the questions.
    pub fn finish(mut self) -> Result<Vec<Answers>, NotSorted> {
        if let Some(block) = self.waiting.take() {
            self.answer_alone(&block);
        }
        let Some(desk) = self.desk else {
            return self.alone;
        };
        drop(desk.blocks);
        let mut blocks: Vec<Vec<Answers>> = Vec::new();
        blocks.resize_with(self.given, Vec::new);
        for (i, answers) in &desk.done {
            blocks[i] = answers?;
        }
        drop(desk.closed);
        Ok(blocks.into_iter().flatten().collect())
    }

    fn open_desk(&self) -> Desk {
        let (blocks, taken) = channel::<Block>();
        let (sender, done) = channel();
        let closed = Closed(Arc::new(AtomicBool::new(false)));
        let taken = Arc::new(Mutex::new(taken));
        for _ in 0..self.threads {
            let (map, asked) = (self.map, self.asked);
            let (taken, sender) = (Arc::clone(&taken), sender.clone());
            let closed = Arc::clone(&closed.0);
            self.scope.spawn(move || {
                let mut room = Room::default();
                loop {
                    let next = {
                        let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
                        taken.recv()
                    };
                    let Ok((i, questions)) = next else { break };
                    if closed.load(Ordering::Relaxed) {
                        break;
                    }
                    let answers = answer(map, &questions, asked, &mut room);
                    if sender.send((i, answers)).is_err() {
                        break;
                    }
                }
            });
        }
        Desk {
            blocks,
            done,
            closed,
        }
    }
}

/// Threads leave only when nobody gives them anything any more.
fn hand_over(blocks: &Sender<Block>, block: Block) {
    let _ = blocks.send(block);
}

fn answer<B: AsRef<[u8]>>(
    map: &Form<B>,
    questions: &Texts,
    asked: Asked,
    room: &mut Room,
) -> Result<Vec<Answers>, NotSorted> {
    let mut rest = questions.iter();
    let mut groups = Vec::with_capacity(questions.len().div_ceil(GROUP));
    while rest.len() > 0 {
        groups.push(Answers::read(rest.by_ref().take(GROUP), asked));
    }
    find(map, &mut groups, room)?;
    find_alternatives(map, questions.iter(), asked, &mut groups)?;
    Ok(groups)
}

/// Tries the keys that other tools give a URL, where the map does not hold the URL's own.
fn find_alternatives<'a, B: AsRef<[u8]>>(
    map: &Form<B>,
    questions: impl Iterator<Item = &'a [u8]>,
    asked: Asked,
    groups: &mut [Answers],
) -> Result<(), NotSorted> {
    let Asked::Uris(rules) = asked else {
        return Ok(());
    };
    for (place, question) in questions.enumerate() {
        let (group, i) = (&mut groups[place / GROUP], place % GROUP);
        if group.is_held(i) {
            continue;
        }
        for key in alternative_keys(question, rules) {
            let other = ask_one(map, &key, Asked::Keys)?;
            if other.is_held(0) {
                group.replace(i, &other);
                break;
            }
        }
    }
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
            let Some(key) = group.key(i) else { continue };
            matched.clear();
            if let Some(frequency) = map.seek_in(search, key, matched) {
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
        let keys = (0..group.len()).filter_map(|i| Some((i, group.key(i)?)));
        order.extend(keys.map(|(i, key)| (Head::of(key), g * GROUP + i)));
    }
    let key = |place: usize| groups[place / GROUP].key(place % GROUP).unwrap_or(b"");
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
