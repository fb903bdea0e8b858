"""An event loop in its own thread, for synchronous callers, including those inside another event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from functools import wraps
from threading import Event, Thread
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

import uvloop

_Result = TypeVar("_Result")
_Parameters = ParamSpec("_Parameters")
_START_SECONDS = 1.0  # within which a started thread begins to run, even on a busy machine


class LoopThread:
    """An event loop thread. Use it as a context manager; several threads may run coroutines in it concurrently.

    >>> async def work() -> str:
    ...     return "done"
    >>> with LoopThread("example") as loop:
    ...     loop.run(work())
    'done'
    """

    def __init__(self, name: str) -> None:
        # The loop is created in its thread, where no KeyboardInterrupt is raised; one raised here would leak it.
        self._loop_future: Future[asyncio.AbstractEventLoop] = Future()
        self._loop: asyncio.AbstractEventLoop
        self._ended = Event()
        self._thread = Thread(target=_run_loop, args=(self._loop_future, self._ended), name=name, daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        try:
            self._thread.start()
            self._loop = self._loop_future.result()
        except BaseException:
            # KeyboardInterrupt during the start: the thread may still begin to run, and must then stop.
            self._loop_future.add_done_callback(
                lambda future: future.result().call_soon_threadsafe(future.result().stop)
            )
            self._ended.wait(_START_SECONDS)
            raise
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        """Cancel all tasks and stop the thread."""
        try:
            self.run(_cancel_all_tasks())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def run(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine and return its result.

        KeyboardInterrupt cancels it and is raised after it has cleaned up.
        """
        result: Future[_Result] = Future()
        tasks: list[asyncio.Task[_Result]] = []

        def create_task() -> None:
            task = self._loop.create_task(coroutine)
            tasks.append(task)
            task.add_done_callback(lambda done_task: _copy_result(done_task, result))

        self._loop.call_soon_threadsafe(create_task)
        try:
            return result.result()
        except BaseException:
            if not result.done():
                # Runs after `create_task`, so the task exists.
                self._loop.call_soon_threadsafe(lambda: [each.cancel() for each in tasks])
                wait([result])
            raise


def in_own_thread(
    function: Callable[_Parameters, Coroutine[Any, Any, _Result]],
) -> Callable[_Parameters, _Result]:
    """Return the synchronous form of a coroutine function `NAME_async`, with the same signature and documentation.

    >>> async def work_async(number: int) -> int:
    ...     return number + 1
    >>> work = in_own_thread(work_async)
    >>> work.__name__, work(1)
    ('work', 2)
    """
    name = function.__name__.removesuffix("_async")

    @wraps(function)
    def run_in_thread(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        with LoopThread(f"unlost.{name}") as loop:
            return loop.run(function(*args, **kwargs))

    run_in_thread.__name__ = run_in_thread.__qualname__ = name
    return run_in_thread


def _run_loop(loop_future: Future[asyncio.AbstractEventLoop], stopped: Event) -> None:
    loop = uvloop.new_event_loop()
    try:
        loop_future.set_result(loop)
        loop.run_forever()
    finally:
        loop.close()
        stopped.set()


def _copy_result(task: "asyncio.Task[_Result]", result: "Future[_Result]") -> None:
    if task.cancelled():
        result.set_exception(CancelledError())
    elif (error := task.exception()) is not None:
        result.set_exception(error)
    else:
        result.set_result(task.result())


async def _cancel_all_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
