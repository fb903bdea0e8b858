"""Equal requests at the same time are one: the first does the work, the others wait for it."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from unlost.errors import BusyError

T = TypeVar("T")


class CoalescedTask(Generic[T]):
    """Work that somebody waits for, or did.

    is_begun: whether it has got so far that it is finished though nobody waits; the work itself says so.
    """

    def __init__(self) -> None:
        self.is_begun = False
        self.waiters = 0
        self.task: asyncio.Task[T] | None = None


class RequestCoalescer(Generic[T]):
    """The work that is going on, by what it is for.

    Who gives up does not end the work of others. If all give up, work that has begun is finished all the same: its
    questions are on their way and have cost the archives what they cost, it takes no longer than its deadline, and who
    gave up mostly asks again. What has not begun is dropped.
    """

    def __init__(self) -> None:
        self._tasks: dict[Hashable, CoalescedTask[T]] = {}

    def __len__(self) -> int:
        """Return how much work is going on."""
        return len(self._tasks)

    def __contains__(self, key: Hashable) -> bool:
        """Return whether work is going on for something."""
        return key in self._tasks

    async def run(self, key: Hashable, work: Callable[[CoalescedTask[T]], Awaitable[T]]) -> T:
        """Return what the work for something comes to, which is begun unless it is going on. Raises what it raises."""
        run = self._tasks.get(key)
        if run is None:
            run = self._tasks[key] = CoalescedTask()
            run.task = asyncio.create_task(self._run(key, run, work))
            run.task.add_done_callback(_retrieve_exception)
        assert run.task is not None  # noqa: S101  for types
        run.waiters += 1
        try:
            return await asyncio.shield(run.task)
        except asyncio.CancelledError:
            this = asyncio.current_task()
            if run.task.cancelled() and (this is None or not this.cancelling()):
                raise BusyError("closing: nothing is looked for any more", 1.0) from None
            raise
        finally:
            run.waiters -= 1
            if not run.waiters and not run.is_begun and not run.task.done():
                run.task.cancel()
                self._forget(key, run)

    async def close(self) -> None:
        """End all work, and wait for its end."""
        tasks = [run.task for run in self._tasks.values() if run.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, key: Hashable, run: CoalescedTask[T], work: Callable[[CoalescedTask[T]], Awaitable[T]]) -> T:
        try:
            return await work(run)
        finally:
            self._forget(key, run)

    def _forget(self, key: Hashable, run: CoalescedTask[T]) -> None:
        if self._tasks.get(key) is run:
            del self._tasks[key]


def _retrieve_exception(task: asyncio.Task[T]) -> None:
    """Look at what was raised: if nobody waits any more, nobody else does."""
    if not task.cancelled():
        task.exception()
