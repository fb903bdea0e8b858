"""How jobs get on, for everybody who watches one: one look at the database for all of them."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager

from unlost.errors import BusyError, DatabaseError
from unlost.service.jobs.job import UNFINISHED, Job
from unlost.service.jobs.store import Jobs

_LOOK_SECONDS = 1.0
_MAX_WATCHERS = 1_000
_MAX_OF_ONE = 250  # streams of one job, and to one network address: behind one, there may be a whole school
_SILENT_SECONDS = 15.0  # after which a line is sent that says nothing: proxies close what is silent for half a minute
_AT_ONCE, _BETWEEN_SECONDS = 5, 0.005  # so many are told together, and so long is between them: 1,000 within a second
_log = logging.getLogger(__name__)

Seen = tuple[Job, int | None]
Tell = Callable[[Job, int | None], dict[str, object]]
"""Makes what is told of a job and its place in the queue."""


class _Watcher:
    """Somebody who watches a job. seen: what there is to tell."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self.seen: Seen | None = None


class Following:
    """Looks for all watched jobs at once, as long as anybody watches. look: seconds between two looks."""

    def __init__(self, jobs: Jobs, look: float = _LOOK_SECONDS) -> None:
        self._jobs = jobs
        self._look = look
        self._watchers: dict[int, set[_Watcher]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._seats: Counter[object] = Counter()
        self._asked: dict[int, asyncio.Future[Seen | None]] = {}
        self._answering: asyncio.Task[None] | None = None
        self.is_closed = False

    @property
    def watchers(self) -> int:
        """How many watch."""
        return sum(map(len, self._watchers.values()))

    def close(self) -> None:
        """Let everybody go."""
        self.is_closed = True
        if self._looking is not None:
            self._looking.cancel()
        for watchers in self._watchers.values():
            for each in watchers:
                each.news.set()

    @contextmanager
    def seat(self, number: int, client: str) -> Iterator[None]:
        """Have room for one who watches a job. client: whence. Raises BusyError if nobody else may watch.

        It is taken before anything is waited for: of many who come at once, none finds room that is another's.
        """
        of_job, of_client = ("job", number), ("client", client)
        if self.is_closed or self._seats["all"] >= _MAX_WATCHERS:
            raise BusyError(f"{self._seats['all']} watch already: no more may", 60)
        if max(self._seats[of_job], self._seats[of_client]) >= _MAX_OF_ONE:
            raise BusyError(f"{_MAX_OF_ONE} watch this job, or from there, already: no more may", 60)
        self._seats.update(("all", of_job, of_client))
        try:
            yield
        finally:
            self._seats.subtract(("all", of_job, of_client))
            self._seats += Counter()  # whoever has none is forgotten

    async def look_up(self, number: int) -> Seen | None:
        """Return a job and its place in the queue; None if there is none. Raises DatabaseError.

        All who ask while a look is under way are answered by the next one together: a crowd that begins to watch at
        once keeps nobody waiting who wants something else of the database.
        """
        found = self._asked.get(number)
        if found is None:
            found = self._asked[number] = asyncio.get_running_loop().create_future()
        if self._answering is None or self._answering.done():
            self._answering = asyncio.create_task(self._answer())
        return await asyncio.shield(found)  # others may wait for the same

    async def _answer(self) -> None:
        while self._asked:
            asked, self._asked = self._asked, {}
            try:
                found = await asyncio.to_thread(self._jobs.watched, list(asked))
            except Exception as error:  # noqa: BLE001  it is theirs who asked
                for each in asked.values():
                    each.set_exception(error)
                    each.exception()  # nobody may be left who wants to know
            else:
                for number, each in asked.items():
                    each.set_result(found.get(number))

    async def follow(self, number: int, tell: Tell, seen: Seen | None = None) -> AsyncIterator[bytes]:
        """Yield an event whenever a job has changed, until it has ended. seen: how it stands, if that is known."""
        watcher = _Watcher()
        if seen is not None:
            watcher.seen = seen
            watcher.news.set()
        self._watchers.setdefault(number, set()).add(watcher)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_on())
        try:
            while not self.is_closed:
                try:
                    async with asyncio.timeout(_SILENT_SECONDS):
                        await watcher.news.wait()
                except TimeoutError:
                    yield b":\n\n"
                    continue
                watcher.news.clear()
                if watcher.seen is None or self.is_closed:
                    continue
                job, place = watcher.seen
                yield f"event: job\ndata: {json.dumps(tell(job, place))}\n\n".encode()
                if job.state not in UNFINISHED:
                    return
        finally:
            self._watchers[number].discard(watcher)
            if not self._watchers[number]:
                del self._watchers[number]

    async def _look_on(self) -> None:
        while self._watchers:
            try:
                found = await asyncio.to_thread(self._jobs.watched, list(self._watchers))
            except DatabaseError as error:
                _log.warning("%s", error)
                found = {}
            await self._tell(found)
            await asyncio.sleep(self._look)

    async def _tell(self, found: Mapping[int, Seen]) -> None:
        """Wake those whose job has changed, some at a time: whoever wants anything else of us must not wait for all."""
        woken = 0
        for number, seen in found.items():
            for each in tuple(self._watchers.get(number, ())):
                if each.seen == seen:
                    continue
                each.seen = seen
                each.news.set()
                woken += 1
                if woken % _AT_ONCE == 0:
                    await asyncio.sleep(_BETWEEN_SECONDS)
