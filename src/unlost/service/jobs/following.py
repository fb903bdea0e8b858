"""How jobs get on, for everybody who watches one: one look at the database for all of them."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from unlost.errors import BusyError, DatabaseError
from unlost.service.jobs.job import UNFINISHED, Job
from unlost.service.jobs.store import Jobs

_LOOK_SECONDS = 1.0
_MAX_WATCHERS = 1_000
_SILENT_LOOKS = 15  # after which a line is sent that says nothing: proxies close what is silent for half a minute
_log = logging.getLogger(__name__)

Tell = Callable[[Job, int | None], dict[str, object]]
"""Makes what is told of a job and its place in the queue."""


class Following:
    """Looks for all watched jobs at once, as long as anybody watches. look: seconds between two looks."""

    def __init__(self, jobs: Jobs, look: float = _LOOK_SECONDS) -> None:
        self._jobs = jobs
        self._look = look
        self._seen: dict[int, tuple[Job, int | None]] = {}
        self._watchers: dict[int, int] = {}
        self._looked = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self.is_closed = False

    @property
    def watchers(self) -> int:
        """How many watch."""
        return sum(self._watchers.values())

    def close(self) -> None:
        """Let everybody go."""
        self.is_closed = True
        self._looked.set()
        if self._looking is not None:
            self._looking.cancel()

    def check_room(self) -> None:
        """Raise BusyError if nobody else may watch."""
        if self.is_closed or self.watchers >= _MAX_WATCHERS:
            raise BusyError(f"{self.watchers} watch already: no more may", 60)

    async def follow(self, number: int, tell: Tell) -> AsyncIterator[bytes]:
        """Yield an event whenever a job has changed, the first at once, until it has ended."""
        self._watchers[number] = self._watchers.get(number, 0) + 1
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_on())
        before, silent = None, 0
        try:
            while not self.is_closed:
                seen = self._seen.get(number)
                if seen is not None and seen != before:
                    before, silent = seen, 0
                    yield f"event: job\ndata: {json.dumps(tell(*seen))}\n\n".encode()
                    if seen[0].state not in UNFINISHED:
                        return
                elif silent >= _SILENT_LOOKS:
                    silent = 0
                    yield b":\n\n"
                silent += 1
                await self._looked.wait()
        finally:
            self._watchers[number] -= 1
            if not self._watchers[number]:
                del self._watchers[number]
                self._seen.pop(number, None)

    async def _look_on(self) -> None:
        while self._watchers:
            try:
                self._seen = await asyncio.to_thread(self._jobs.watched, list(self._watchers))
            except DatabaseError as error:
                _log.warning("%s", error)
            looked, self._looked = self._looked, asyncio.Event()
            looked.set()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(self._look)
            if self.is_closed:
                return
