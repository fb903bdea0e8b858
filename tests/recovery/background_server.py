"""Runs a test server in a background thread, so that commands in other processes can send requests to it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def run_in_background(server: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Enter an async context manager in the event loop of another thread, and yield its value.

    The value's data may be read at any time; its coroutines must not be called from this thread.
    """
    ready, loop = threading.Event(), asyncio.new_event_loop()
    ended, yielded, errors = asyncio.Event(), [], []

    async def run() -> None:
        async with server as value:
            yielded.append(value)
            ready.set()
            await ended.wait()

    def work() -> None:
        try:
            loop.run_until_complete(run())
        except BaseException as error:  # noqa: BLE001  it is raised at the end of the block
            errors.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        if yielded:
            yield yielded[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()
    if errors:
        raise errors[0]
