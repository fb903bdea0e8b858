//! Processes the blocks of one file in many threads and consumes the results in file order. The thread that completes
//! the next result in order consumes it: handing it to another thread would cost more than most results are worth.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::blocks::{Block, Blocks};
use super::inflate_thread::InflateThread;
use super::random_access::Input;

/// How many blocks per thread may be ahead of the next block in order. Bounds memory.
const MAX_AHEAD: u64 = 4;

/// Runs `work` on all remaining blocks in several threads, this one included, and passes each result to `take` in
/// order. Results are reused after `take`. The first error stops all threads.
pub(crate) fn process_in_order<R, T, E>(
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
    let line = OrderedQueue {
        state: Mutex::new(QueueState {
            next: blocks.next_index(),
            pending: BTreeMap::new(),
            recycled: Vec::new(),
            take,
            result: Ok(()),
            is_over: false,
        }),
        changed: Condvar::new(),
        max_ahead: MAX_AHEAD * threads as u64,
    };
    let inflating = InflateThread::default();
    let is_inflated = threads > 1 && blocks.is_inflated();
    let next = |block: &mut Block| {
        if is_inflated {
            inflating.next(block)
        } else {
            blocks.next(block)
        }
    };
    let run_worker = || {
        let _closing = inflating.close_on_drop();
        line.run_worker(&next, &work);
    };
    thread::scope(|scope| {
        // This thread is one of the workers: with more workers than processors, it would have to wait.
        let others = if is_inflated {
            scope.spawn(|| inflating.fill(blocks));
            threads - 2
        } else {
            threads - 1
        };
        for _ in 0..others {
            scope.spawn(run_worker);
        }
        run_worker();
    });
    let state = line.state.into_inner();
    state.unwrap_or_else(PoisonError::into_inner).result
}

/// Results that are ready before earlier ones.
struct OrderedQueue<T, E, F> {
    state: Mutex<QueueState<T, E, F>>,
    changed: Condvar,
    max_ahead: u64,
}

struct QueueState<T, E, F> {
    /// The index of the next block to take, and the results after it that are ready.
    next: u64,
    pending: BTreeMap<u64, T>,
    recycled: Vec<T>,
    take: F,
    result: Result<(), E>,
    /// Whether the work has ended.
    is_over: bool,
}

impl<T: Default, E: From<io::Error>, F: FnMut(&mut T) -> Result<(), E>> OrderedQueue<T, E, F> {
    fn run_worker(
        &self,
        next: &impl Fn(&mut Block) -> io::Result<bool>,
        work: &impl Fn(&Block, &mut T) -> Result<(), E>,
    ) {
        // Other threads wait for this one, so a panic must also release them.
        let end = StopOnDrop(self);
        let mut block = Block::default();
        loop {
            let mut output = self.lock().recycled.pop().unwrap_or_default();
            let result = match next(&mut block) {
                Ok(false) => break,
                Ok(true) => work(&block, &mut output),
                Err(error) => Err(error.into()),
            };
            if !self.submit(block.index, output, result) {
                return;
            }
        }
        std::mem::forget(end);
    }

    /// Takes the result of a block, or leaves it to the thread with an earlier block. Returns whether to continue.
    fn submit(&self, index: u64, output: T, result: Result<(), E>) -> bool {
        let mut state = self.lock();
        while index >= state.next + self.max_ahead && !state.is_over && result.is_ok() {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_over {
            return false;
        }
        state.pending.insert(index, output);
        let result = result.and_then(|()| state.drain_ready());
        self.changed.notify_all();
        if result.is_err() {
            state.result = result;
            state.is_over = true;
        }
        !state.is_over
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T, E, F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, E, F: FnMut(&mut T) -> Result<(), E>> QueueState<T, E, F> {
    fn drain_ready(&mut self) -> Result<(), E> {
        while let Some(mut output) = self.pending.remove(&self.next) {
            (self.take)(&mut output)?;
            self.next += 1;
            self.recycled.push(output);
        }
        Ok(())
    }
}

/// Stops all threads when dropped.
struct StopOnDrop<'a, T, E, F>(&'a OrderedQueue<T, E, F>);

impl<T, E, F> Drop for StopOnDrop<'_, T, E, F> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_over = true;
        self.0.changed.notify_all();
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
    fn blocks_are_taken_in_file_order() {
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
            process_in_order(&blocks, threads, work, take).expect("memory");
            assert_eq!(whole, text, "{threads}");
        }
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(text).expect("memory");
        packer.finish().expect("memory")
    }

    #[test]
    fn inflated_blocks_are_taken_in_file_order() {
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
            process_in_order(&blocks, threads, work, take).expect("memory");
            assert!(whole == text, "{threads}");
            assert_eq!(blocks.damage(), None);
        }
    }

    #[test]
    fn error_or_panic_stops_the_inflate_thread() {
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
            let error = process_in_order(&blocks, 2, fails, |()| Ok(())).expect_err("fails");
            assert_eq!(error.to_string(), "block");
            let blocks = Blocks::new(Cursor::new(&packed), 100, 1000).expect("memory");
            let panics = |block: &Block, (): &mut ()| -> io::Result<()> {
                assert_ne!(block.index, 9);
                Ok(())
            };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                process_in_order(&blocks, 2, panics, |()| Ok(()))
            }));
            assert!(outcome.is_err());
        }
    }

    #[test]
    fn error_stops_all_workers() {
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
        let error = process_in_order(&blocks(), 3, fails(9), |()| Ok(())).expect_err("fails");
        assert_eq!(error.to_string(), "block");
        let take = |(): &mut ()| Err(io::Error::other("take"));
        let error = process_in_order(&blocks(), 3, fails(u64::MAX), take).expect_err("fails");
        assert_eq!(error.to_string(), "take");
    }

    #[test]
    fn panic_releases_waiting_workers() {
        let text = numbers(100_000);
        let blocks = Blocks::new(Cursor::new(&text), 100, 50).expect("memory");
        let work = |block: &Block, (): &mut ()| {
            assert_ne!(block.index, 3, "as intended");
            Ok::<(), io::Error>(())
        };
        let run = || process_in_order(&blocks, 4, work, |()| Ok(()));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    }
}
