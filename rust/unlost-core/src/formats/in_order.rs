//! Many threads that work on the blocks of one file, and one that takes what they make of them, in the file's order.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::blocks::{Block, Blocks};

/// Lets threads `work` on all blocks that are left, and gives what they make of each to `take`, with this thread. What
/// was taken is used again, so memory does not grow with the file. The first error ends it.
pub(crate) fn work_in_order<R, T, E>(
    blocks: &Blocks<R>,
    threads: usize,
    work: impl Fn(&Block, &mut T) -> Result<(), E> + Sync,
    take: impl FnMut(&mut T) -> Result<(), E>,
) -> Result<(), E>
where
    R: Read + Send,
    T: Default + Send,
    E: From<io::Error> + Send,
{
    let threads = threads.max(1);
    let first = blocks.next_index();
    let (give, free) = channel();
    // So many results are under way at most, however unevenly the threads work.
    for _ in 0..threads * 4 {
        // Cannot fail: the other end is in this function.
        let _ = give.send(T::default());
    }
    let free = Mutex::new(free);
    let (send, results) = channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (free, send, work) = (&free, send.clone(), &work);
            scope.spawn(move || work_on_all(blocks, work, free, &send));
        }
        drop(send);
        let result = take_all(&results, &give, first, take);
        // Without it, threads would wait for results to come back that nobody takes any more.
        drop(give);
        result
    })
}

fn work_on_all<R: Read, T, E: From<io::Error>>(
    blocks: &Blocks<R>,
    work: &impl Fn(&Block, &mut T) -> Result<(), E>,
    free: &Mutex<Receiver<T>>,
    send: &Sender<Result<(u64, T), E>>,
) {
    let mut block = Block::default();
    loop {
        let next = free.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut made) = next else {
            return;
        };
        let message = match blocks.next(&mut block) {
            Ok(false) => return,
            Ok(true) => work(&block, &mut made).map(|()| (block.index, made)),
            Err(error) => Err(error.into()),
        };
        let failed = message.is_err();
        if send.send(message).is_err() || failed {
            return;
        }
    }
}

fn take_all<T, E>(
    results: &Receiver<Result<(u64, T), E>>,
    give: &Sender<T>,
    mut next: u64,
    mut take: impl FnMut(&mut T) -> Result<(), E>,
) -> Result<(), E> {
    let mut waiting = BTreeMap::new();
    for result in results {
        let (index, made) = result?;
        waiting.insert(index, made);
        while let Some(mut made) = waiting.remove(&next) {
            take(&mut made)?;
            next += 1;
            // If all threads have ended, nobody needs it.
            let _ = give.send(made);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Source;
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
            let blocks = Blocks::new(Source::new(&text[..]).expect("memory"), 100, 50);
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
        let blocks = || Blocks::new(Source::new(&text[..]).expect("memory"), 100, 50);
        let error = work_in_order(&blocks(), 3, fails(9), |()| Ok(())).expect_err("fails");
        assert_eq!(error.to_string(), "block");
        let take = |(): &mut ()| Err(io::Error::other("take"));
        let error = work_in_order(&blocks(), 3, fails(u64::MAX), take).expect_err("fails");
        assert_eq!(error.to_string(), "take");
    }
}
