"""Workers in processes of their own, which are started again when they end, and end when we do."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from unlost.service.going_on import background_task

_MIN_RESTART_PAUSE, _MAX_RESTART_PAUSE = (
    1.0,
    60.0,
)  # seconds before a worker that ended is started again: doubled each time
_STABLE_SECONDS = 60.0  # after which its end counts as the first one
_GRACE_SECONDS = 20.0  # to give its jobs back
_log = logging.getLogger(__name__)


@asynccontextmanager
async def run_worker_processes(
    count: int, arguments: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[None]:
    """Keep so many workers running until the block ends. arguments: behind `unlost`, with `--with-parent` among them.

    Their standard input is a pipe of ours on which nothing is ever said: however this process ends, it is closed then,
    and they end, too.
    """
    async with AsyncExitStack() as stack:
        for _ in range(count):
            await stack.enter_async_context(background_task(_supervise(arguments, environment)))
        yield


async def _supervise(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    loop = asyncio.get_running_loop()
    pause = _MIN_RESTART_PAUSE
    while True:
        begun = loop.time()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "unlost.cli.start", *arguments, stdin=asyncio.subprocess.PIPE, env=environment,
            start_new_session=True,  # Ctrl-C is for us alone: we tell them
        )  # fmt: skip
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            await _stop_process(process)
            raise
        pause = _MIN_RESTART_PAUSE if loop.time() - begun > _STABLE_SECONDS else min(2 * pause, _MAX_RESTART_PAUSE)
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
