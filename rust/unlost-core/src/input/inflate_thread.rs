//! A thread that only inflates, so that workers find their next blocks ready.
//!
//! Inflating takes longest and is sequential. If each worker inflated its own block, the next block would start only
//! after another thread has woken up.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::blocks::{Block, Blocks};
use super::random_access::Input;

/// The maximum number of filled blocks in the queue. More would evict each other from the processor's caches.
const MAX_READY: usize = 3;

/// Blocks between the thread that fills them and the workers.
#[derive(Default)]
pub(super) struct InflateThread {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<Block>,
    empty: Vec<Block>,
    failure: Option<io::Error>,
    /// Whether no more blocks come, and whether no more are needed.
    has_ended: bool,
    is_closed: bool,
}

impl InflateThread {
    /// Fills blocks until the file ends or the queue is closed.
    pub(super) fn fill<R: Input>(&self, blocks: &Blocks<R>) {
        // Workers must not wait for a thread that panicked.
        let _end = OnDrop(|| self.lock().has_ended = true, &self.changed);
        loop {
            let mut queue = self.lock();
            while queue.ready.len() >= MAX_READY && !queue.is_closed {
                queue = self.wait(queue);
            }
            if queue.is_closed {
                return;
            }
            let mut block = queue.empty.pop().unwrap_or_default();
            drop(queue);
            match blocks.next(&mut block) {
                Ok(true) => self.lock().ready.push_back(block),
                Ok(false) => return,
                Err(error) => {
                    self.lock().failure = Some(error);
                    return;
                }
            }
            self.changed.notify_one();
        }
    }

    /// Exchanges a block for the next one. Returns false at the end.
    pub(super) fn next(&self, block: &mut Block) -> io::Result<bool> {
        let mut queue = self.lock();
        loop {
            if let Some(filled) = queue.ready.pop_front() {
                let was_full = queue.ready.len() + 1 >= MAX_READY;
                queue.empty.push(std::mem::replace(block, filled));
                drop(queue);
                if was_full {
                    self.changed.notify_all();
                }
                return Ok(true);
            }
            if let Some(error) = queue.failure.take() {
                return Err(error);
            }
            if queue.has_ended {
                return Ok(false);
            }
            queue = self.wait(queue);
        }
    }

    /// Returns a guard that stops the filling when dropped.
    pub(super) fn close_on_drop(&self) -> impl Drop + '_ {
        OnDrop(|| self.lock().is_closed = true, &self.changed)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.changed
            .wait(queue)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls a function when dropped, and wakes all waiting threads.
struct OnDrop<'a, F: Fn()>(F, &'a Condvar);

impl<F: Fn()> Drop for OnDrop<'_, F> {
    fn drop(&mut self) {
        (self.0)();
        self.1.notify_all();
    }
}
