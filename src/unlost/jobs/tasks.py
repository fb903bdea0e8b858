"""A bounded thread pool, and supervised worker processes."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import ParamSpec, TypeVar

from unlost.background_task import background_task
from unlost.errors import BusyError

P = ParamSpec("P")
T = TypeVar("T")
_MIN_RESTART_PAUSE, _MAX_RESTART_PAUSE = 1.0, 60.0  # seconds before a worker is restarted, doubled each time
_STABLE_SECONDS = 60.0  # after which the pause starts again at its minimum
_GRACE_SECONDS = 20.0  # for a worker to release its jobs
_log = logging.getLogger(__name__)


class BoundedThreadPool:
    """A thread pool with a bounded queue. Calls beyond its capacity are rejected immediately.

    Args:
        threads: Number of threads.
        queue_size: Number of calls that may wait.
        name: Prefix of the thread names.
        retry_after: Seconds to report with `BusyError`.
    """

    def __init__(self, threads: int, queue_size: int, name: str, retry_after: float = 5.0) -> None:
        self._threads = ThreadPoolExecutor(threads, name)
        self._free_slots = threads + queue_size
        self._retry_after = retry_after

    async def run(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a function in a thread and return its result. All calls must come from the same event loop.

        Raises:
            BusyError: The queue is full.
        """
        if not self._free_slots:
            raise BusyError("too many requests wait", self._retry_after)
        self._free_slots -= 1
        # The call occupies its slot until it ends, even if the caller is cancelled.
        running = asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *arguments, **named))
        running.add_done_callback(self._release)
        return await asyncio.shield(running)

    def _release(self, _: "asyncio.Future[T]") -> None:
        self._free_slots += 1

    def shutdown(self) -> None:
        """Finish running calls and cancel waiting ones."""
        self._threads.shutdown(cancel_futures=True)


@asynccontextmanager
async def run_worker_processes(
    count: int, arguments: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[None]:
    """Run `count` supervised worker processes until the block ends.

    Their standard input is a pipe that is never written to. It is closed when this process ends for any reason, which
    ends the workers, too.

    Args:
        count: Number of processes.
        arguments: Command-line arguments of `unlost`, including `--with-parent`.
        environment: Environment variables.
    """
    async with AsyncExitStack() as stack:
        for _ in range(count):
            await stack.enter_async_context(background_task(_supervise(arguments, environment)))
        yield


async def _supervise(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    loop = asyncio.get_running_loop()
    pause = _MIN_RESTART_PAUSE
    while True:
        started_at = loop.time()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "unlost.cli.start", *arguments, stdin=asyncio.subprocess.PIPE, env=environment,
            start_new_session=True,  # Ctrl-C goes to this process only, which stops the workers
        )  # fmt: skip
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            await _stop_process(process)
            raise
        pause = _MIN_RESTART_PAUSE if loop.time() - started_at > _STABLE_SECONDS else min(2 * pause, _MAX_RESTART_PAUSE)
        _log.warning("a worker ended (%s): another one is started in %g s", code, pause)
        await asyncio.sleep(pause)


async def _stop_process(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_GRACE_SECONDS):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
