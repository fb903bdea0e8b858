"""Many hosts at the same time, each by one task, whose work is never left half done."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence


async def run_host_tasks(
    hosts: Callable[[], Sequence[str]],
    run_host: Callable[[str], Coroutine[None, None, None]],
    max_parallel: int,
    tasks: dict[str, asyncio.Task[None]],
    wake_up: asyncio.Event,
) -> None:
    """Have each host visited by one task, as many at once as are allowed, until there is none to visit.

    hosts: gives those on which something is to be visited; is asked again whenever a task ends, or `more` is set.
    tasks: gets the hosts that are being visited. Raises what a task raises, once all others have ended.
    """
    try:
        while True:
            wake_up.clear()
            for host in hosts():
                if len(tasks) >= max(1, max_parallel):
                    break
                if host not in tasks:
                    tasks[host] = asyncio.create_task(run_host(host))
            if not tasks:
                return
            waiting = asyncio.create_task(wake_up.wait())
            await asyncio.wait({*tasks.values(), waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            for host, task in list(tasks.items()):
                if task.done():
                    del tasks[host]
                    task.result()
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


async def run_shielded(work: Coroutine[None, None, None]) -> None:
    """Do something that must not be left half done, also if somebody wants to end everything meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
