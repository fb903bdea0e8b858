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
_APART_SECONDS = 0.001  # between two of a crowd that begins to watch: each takes about half of it
_log = logging.getLogger(__name__)

Seen = tuple[Job, int | None]
Tell = Callable[[Job, int | None, str], dict[str, object]]
"""Makes what is told of a job, of its place in the queue, and of where it is found."""


class _Watched:
    """A job that somebody watches. seen: how it stood at the last look."""

    def __init__(self) -> None:
        self.seen: Seen | None = None
        self.watches: set[Watch] = set()
        self._told: Seen | None = None
        self._events: dict[str, bytes] = {}

    def event(self, seen: Seen, tell: Tell, link: str) -> bytes:
        """Return what is sent of it, made once for all who know it by the same link."""
        if self._told is not seen:
            self._told = seen
            self._events.clear()
        found = self._events.get(link)
        if found is None:
            found = f"event: job\ndata: {json.dumps(tell(*seen, link))}\n\n".encode()
            self._events[link] = found
        return found


class Watch:
    """Somebody who watches a job. seen: what there is to tell."""

    def __init__(self, watched: _Watched, tell: Tell, link: str) -> None:
        self.seen: Seen | None = None
        self._watched = watched
        self._tell = tell
        self._link = link
        self._news = asyncio.Event()
        self._is_left = False

    def see(self, seen: Seen) -> None:
        """Have something to tell."""
        self.seen = seen
        self._news.set()

    def leave(self) -> None:
        """Watch no more: there are no more events then."""
        self._is_left = True
        self._news.set()

    async def events(self) -> AsyncIterator[bytes]:
        """Yield an event whenever the job has changed, until it has ended, and now and then one that says nothing."""
        while True:
            try:
                async with asyncio.timeout(_SILENT_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                yield b":\n\n"
                continue
            self._news.clear()
            if self._is_left:
                return
            if self.seen is None:
                continue
            seen = self.seen
            yield self._watched.event(seen, self._tell, self._link)
            if seen[0].state not in UNFINISHED:
                return


class Following:
    """Looks for all watched jobs at once, as long as anybody watches. look: seconds between two looks."""

    def __init__(self, jobs: Jobs, look: float = _LOOK_SECONDS) -> None:
        self._jobs = jobs
        self._look = look
        self._watched: dict[int, _Watched] = {}
        self._looking: asyncio.Task[None] | None = None
        self._seats: Counter[object] = Counter()
        self._asked: dict[int, asyncio.Future[Seen | None]] = {}
        self._answering: asyncio.Task[None] | None = None
        self._next_turn = 0.0
        self.is_closed = False

    @property
    def watchers(self) -> int:
        """How many watch."""
        return sum(len(watched.watches) for watched in self._watched.values())

    def close(self) -> None:
        """Let everybody go."""
        self.is_closed = True
        if self._looking is not None:
            self._looking.cancel()
        for watched in self._watched.values():
            for each in watched.watches:
                each.leave()

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
        once keeps nobody waiting who wants something else of the database. A job that others watch already is as it
        was at the last look, which is what they know, too.
        """
        await self._turn()
        watched = self._watched.get(number)
        if watched is not None and watched.seen is not None:
            return watched.seen
        found = self._asked.get(number)
        if found is None:
            found = self._asked[number] = asyncio.get_running_loop().create_future()
        if self._answering is None or self._answering.done():
            self._answering = asyncio.create_task(self._answer())
        return await asyncio.shield(found)  # others may wait for the same

    async def _turn(self) -> None:
        """Wait for one's turn, if many come at once: between two of them, others are answered."""
        now = asyncio.get_running_loop().time()
        mine = max(now, self._next_turn)
        self._next_turn = mine + _APART_SECONDS
        if mine > now:
            await asyncio.sleep(mine - now)

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

    @contextmanager
    def watch(self, number: int, tell: Tell, link: str, seen: Seen | None = None) -> Iterator[Watch]:
        """Watch a job within the block. link: where it is found. seen: how it stands, if that is known."""
        watched = self._watched.setdefault(number, _Watched())
        if watched.seen is None:
            watched.seen = seen
        elif watched.seen == seen:
            seen = watched.seen  # nothing is told twice
        watch = Watch(watched, tell, link)
        if seen is not None:
            watch.see(seen)
        if self.is_closed:
            watch.leave()
        watched.watches.add(watch)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_on())
        try:
            yield watch
        finally:
            watched.watches.discard(watch)
            if not watched.watches:
                del self._watched[number]

    async def _look_on(self) -> None:
        while self._watched and not self.is_closed:
            try:
                found = await asyncio.to_thread(self._jobs.watched, list(self._watched))
            except DatabaseError as error:
                _log.warning("%s", error)
                found = {}
            await self._tell(found)
            await asyncio.sleep(self._look)

    async def _tell(self, found: Mapping[int, Seen]) -> None:
        """Wake those whose job has changed, some at a time: whoever wants anything else of us must not wait for all."""
        woken = 0
        for number, seen in found.items():
            watched = self._watched.get(number)
            if watched is None:
                continue
            if watched.seen is None or watched.seen != seen:
                watched.seen = seen
            for each in tuple(watched.watches):
                if each.seen is watched.seen:
                    continue
                each.see(watched.seen)
                woken += 1
                if woken % _AT_ONCE == 0:
                    await asyncio.sleep(_BETWEEN_SECONDS)
