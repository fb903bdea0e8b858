//! Many threads that work on the blocks of one file. What they make of them is taken in the file's order, by whichever
//! thread makes the next in turn: handing it to another would cost more than most of it is worth.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::blocks::{Block, Blocks};
use super::inflating::Inflating;
use super::input::Input;

/// So many blocks a thread may be ahead of the one whose turn it is, or memory would grow.
const AHEAD: u64 = 4;

/// Lets threads, this one among them, `work` on all blocks that are left, and `take` what they make of each. What was
/// taken is used again. The first error ends it.
pub(crate) fn work_in_order<R, T, E>(
    blocks: &Blocks<R>,
    threads: usize,
    work: impl Fn(&Block, &mut T) -> Result<(), E> + Sync,
    take: impl FnMut(&mut T) -> Result<(), E> + Send,
) -> Result<(), E>
where
    R: Input + Send + Sync,
    T: Default + Send,
    E: From<io::Error> + Send,
{
    let threads = threads.max(1);
    let line = Line {
        turn: Mutex::new(Turn {
            next: blocks.next_index(),
            waiting: BTreeMap::new(),
            used: Vec::new(),
            take,
            result: Ok(()),
            is_over: false,
        }),
        moved: Condvar::new(),
        ahead: AHEAD * threads as u64,
    };
    let inflating = Inflating::default();
    let is_inflated = threads > 1 && blocks.is_inflated();
    let next = |block: &mut Block| {
        if is_inflated {
            inflating.next(block)
        } else {
            blocks.next(block)
        }
    };
    let work_on_all = || {
        let _closing = inflating.closing();
        line.work_on_all(&next, &work);
    };
    thread::scope(|scope| {
        // It is one of the threads: with more of them than there are processors, it would have to wait.
        let others = if is_inflated {
            scope.spawn(|| inflating.fill(blocks));
            threads - 2
        } else {
            threads - 1
        };
        for _ in 0..others {
            scope.spawn(work_on_all);
        }
        work_on_all();
    });
    let turn = line.turn.into_inner();
    turn.unwrap_or_else(PoisonError::into_inner).result
}

/// What waits for its turn, and who.
struct Line<T, E, F> {
    turn: Mutex<Turn<T, E, F>>,
    moved: Condvar,
    ahead: u64,
}

struct Turn<T, E, F> {
    /// Which block is taken next, and those behind it that are ready.
    next: u64,
    waiting: BTreeMap<u64, T>,
    used: Vec<T>,
    take: F,
    result: Result<(), E>,
    /// Whether nothing more is to be done.
    is_over: bool,
}

impl<T: Default, E: From<io::Error>, F: FnMut(&mut T) -> Result<(), E>> Line<T, E, F> {
    fn work_on_all(
        &self,
        next: &impl Fn(&mut Block) -> io::Result<bool>,
        work: &impl Fn(&Block, &mut T) -> Result<(), E>,
    ) {
        // Others wait for this thread: also one that panics must end them.
        let end = End(self);
        let mut block = Block::default();
        loop {
            let mut made = self.lock().used.pop().unwrap_or_default();
            let result = match next(&mut block) {
                Ok(false) => break,
                Ok(true) => work(&block, &mut made),
                Err(error) => Err(error.into()),
            };
            if !self.hand_in(block.index, made, result) {
                return;
            }
        }
        std::mem::forget(end);
    }

    /// Takes what was made of a block, or leaves it to whom it has to wait for. Says whether to go on.
    fn hand_in(&self, index: u64, made: T, result: Result<(), E>) -> bool {
        let mut turn = self.lock();
        while index >= turn.next + self.ahead && !turn.is_over && result.is_ok() {
            turn = self
                .moved
                .wait(turn)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if turn.is_over {
            return false;
        }
        turn.waiting.insert(index, made);
        let result = result.and_then(|()| turn.take_ready());
        self.moved.notify_all();
        if result.is_err() {
            turn.result = result;
            turn.is_over = true;
        }
        !turn.is_over
    }

    fn lock(&self) -> MutexGuard<'_, Turn<T, E, F>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, E, F: FnMut(&mut T) -> Result<(), E>> Turn<T, E, F> {
    fn take_ready(&mut self) -> Result<(), E> {
        while let Some(mut made) = self.waiting.remove(&self.next) {
            (self.take)(&mut made)?;
            self.next += 1;
            self.used.push(made);
        }
        Ok(())
    }
}

/// Ends the work of all threads when it is dropped.
struct End<'a, T, E, F>(&'a Line<T, E, F>);

impl<T, E, F> Drop for End<'_, T, E, F> {
    fn drop(&mut self) {
        let mut turn = self.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
        turn.is_over = true;
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn numbers(count: u64) -> Vec<u8> {
        (0..count)
            .flat_map(|i| format!("{i}\n").into_bytes())
            .collect()
    }

    #[test]
    fn blocks_are_taken_in_their_order() {
        let text = numbers(5000);
        for threads in [0, 1, 5] {
            let blocks = Blocks::new(Cursor::new(&text), 100, 50).expect("memory");
            let mut first = Block::default();
            assert!(blocks.next(&mut first).expect("memory"));
            let mut whole = first.text().to_vec();
            let work = |block: &Block, out: &mut Vec<u8>| {
                out.clear();
                out.extend_from_slice(block.text());
                Ok::<(), io::Error>(())
            };
            let take = |part: &mut Vec<u8>| {
                whole.extend_from_slice(part);
                Ok(())
            };
            work_in_order(&blocks, threads, work, take).expect("memory");
            assert_eq!(whole, text, "{threads}");
        }
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(text).expect("memory");
        packer.finish().expect("memory")
    }

    #[test]
    fn what_is_inflated_by_a_thread_of_its_own_comes_in_order_too() {
        let text = numbers(200_000);
        let packed = packed(&text);
        for threads in [1, 2, 5] {
            let blocks = Blocks::new(Cursor::new(&packed), 100, 1000).expect("memory");
            let mut whole = Vec::new();
            let work = |block: &Block, out: &mut Vec<u8>| {
                out.clear();
                out.extend_from_slice(block.text());
                Ok::<(), io::Error>(())
            };
            let take = |part: &mut Vec<u8>| {
                whole.extend_from_slice(part);
                Ok(())
            };
            work_in_order(&blocks, threads, work, take).expect("memory");
            assert!(whole == text, "{threads}");
            assert_eq!(blocks.damage(), None);
        }
    }

    #[test]
    fn an_error_or_a_panic_ends_the_inflating_too() {
        let packed = packed(&numbers(200_000));
        for _ in 0..20 {
            let blocks = Blocks::new(Cursor::new(&packed), 100, 1000).expect("memory");
            let fails = |block: &Block, (): &mut ()| {
                if block.index == 9 {
                    Err(io::Error::other("block"))
                } else {
                    Ok(())
                }
            };
            let error = work_in_order(&blocks, 2, fails, |()| Ok(())).expect_err("fails");
            assert_eq!(error.to_string(), "block");
            let blocks = Blocks::new(Cursor::new(&packed), 100, 1000).expect("memory");
            let panics = |block: &Block, (): &mut ()| -> io::Result<()> {
                assert_ne!(block.index, 9);
                Ok(())
            };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                work_in_order(&blocks, 2, panics, |()| Ok(()))
            }));
            assert!(outcome.is_err());
        }
    }

    #[test]
    fn an_error_ends_it() {
        let text = numbers(100_000);
        let fails = |at: u64| {
            move |block: &Block, (): &mut ()| {
                if block.index == at {
                    Err(io::Error::other("block"))
                } else {
                    Ok(())
                }
            }
        };
        let blocks = || Blocks::new(Cursor::new(&text), 100, 50).expect("memory");
        let error = work_in_order(&blocks(), 3, fails(9), |()| Ok(())).expect_err("fails");
        assert_eq!(error.to_string(), "block");
        let take = |(): &mut ()| Err(io::Error::other("take"));
        let error = work_in_order(&blocks(), 3, fails(u64::MAX), take).expect_err("fails");
        assert_eq!(error.to_string(), "take");
    }

    #[test]
    fn a_panic_leaves_nobody_waiting() {
        let text = numbers(100_000);
        let blocks = Blocks::new(Cursor::new(&text), 100, 50).expect("memory");
        let work = |block: &Block, (): &mut ()| {
            assert_ne!(block.index, 3, "as intended");
            Ok::<(), io::Error>(())
        };
        let run = || work_in_order(&blocks, 4, work, |()| Ok(()));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    }
}
