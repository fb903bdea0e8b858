"""Threads for expensive work, with a bound on how much of it waits."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from unlost.errors import BusyError

P = ParamSpec("P")
T = TypeVar("T")


class BoundedThreadPool:
    """Runs functions in a few threads. What does not fit into its queue is refused at once."""

    def __init__(self, threads: int, queue_size: int, name: str, retry_after: float = 5.0) -> None:
        """Make a pool.

        Args:
            threads: How many functions run at a time.
            waiting: How many more may wait.
            name: Of the threads.
            retry_after: Seconds, for `BusyError`.
        """
        self._threads = ThreadPoolExecutor(threads, name)
        self._free_places = threads + queue_size
        self._retry_after = retry_after

    async def run(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a function in a thread and return its result. To be called in one event loop.

        Raises:
            BusyError: Too many wait already.
        """
        if not self._free_places:
            raise BusyError("too many requests wait", self._retry_after)
        self._free_places -= 1
        # It has its place until it ends, also if the client does not wait for it.
        running = asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *arguments, **named))
        running.add_done_callback(self._release)
        return await asyncio.shield(running)

    def _release(self, _: "asyncio.Future[T]") -> None:
        self._free_places += 1

    def shutdown(self) -> None:
        """Finish what runs, and drop what waits."""
        self._threads.shutdown(cancel_futures=True)
