"""An event loop in a thread of its own, for who does not write `async`: also inside of somebody else's event loop."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future, wait
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self, TypeVar

import uvloop

_Result = TypeVar("_Result")
_START_SECONDS = 1.0  # in which a thread begins that was started, on a busy machine too


class LoopThread:
    """The thread. Use it as a context manager; several threads may run something in it at once.

    >>> async def work() -> str:
    ...     return "done"
    >>> with LoopThread("example") as loop:
    ...     loop.run(work())
    'done'
    """

    def __init__(self, name: str) -> None:
        # It is made in its thread, where no Ctrl-C is raised: one between making and keeping it would leave it open.
        self._loop_future: Future[asyncio.AbstractEventLoop] = Future()
        self._loop: asyncio.AbstractEventLoop
        self._ended = Event()
        self._thread = Thread(target=_run_loop, args=(self._loop_future, self._ended), name=name, daemon=True)

    def __enter__(self) -> Self:
        """Start it."""
        try:
            self._thread.start()
            self._loop = self._loop_future.result()
        except BaseException:
            # Ctrl-C came while it began: it may be on its way all the same, and ends then.
            self._loop_future.add_done_callback(lambda made: made.result().call_soon_threadsafe(made.result().stop))
            self._ended.wait(_START_SECONDS)
            raise
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        """End it, and what still runs in it."""
        try:
            self.run(_cancel_all_tasks())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Return what comes of something. Ctrl-C cancels it, waits until it has put its things away, and is raised."""
        result: Future[_Result] = Future()
        tasks: list[asyncio.Task[_Result]] = []

        def begin() -> None:
            task = self._loop.create_task(work)
            tasks.append(task)
            task.add_done_callback(lambda ended: _copy_result(ended, result))

        self._loop.call_soon_threadsafe(begin)
        try:
            return result.result()
        except BaseException:
            if not result.done():
                # It runs behind `begin`, so the task is there by then.
                self._loop.call_soon_threadsafe(lambda: [each.cancel() for each in tasks])
                wait([result])
            raise


def _run_loop(made: Future[asyncio.AbstractEventLoop], ended: Event) -> None:
    loop = uvloop.new_event_loop()
    try:
        made.set_result(loop)
        loop.run_forever()
    finally:
        loop.close()
        ended.set()


def _copy_result(ended: "asyncio.Task[_Result]", result: "Future[_Result]") -> None:
    if ended.cancelled():
        result.set_exception(CancelledError())
    elif (error := ended.exception()) is not None:
        result.set_exception(error)
    else:
        result.set_result(ended.result())


async def _cancel_all_tasks() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for each in others:
        each.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
