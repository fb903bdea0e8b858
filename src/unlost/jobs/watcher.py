"""Live progress of jobs for many subscribers, with one database query per poll for all of them."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager

from unlost.errors import BusyError, DatabaseError
from unlost.jobs.models import UNFINISHED_STATES, Job
from unlost.jobs.store import JobStore

_POLL_SECONDS = 1.0
_MAX_WATCHERS = 1_000
_MAX_OF_ONE = 250  # streams of one job, and to one network address: behind one, there may be a whole school
_HEARTBEAT_SECONDS = (
    15.0  # after which a line is sent that says nothing: proxies close what is silent for half a minute
)
_AT_ONCE, _BETWEEN_SECONDS = 5, 0.005  # so many are told together, and so long is between them: 1,000 within a second
_APART_SECONDS = 0.001  # between two of a crowd that begins to watch: each takes about half of it
_log = logging.getLogger(__name__)

JobSnapshot = tuple[Job, int | None]
JobSerializer = Callable[[Job, int | None, str], dict[str, object]]
"""Makes what is told of a job, of its place in the queue, and of where it is found."""


class _WatchedJob:
    """A job that somebody watches. seen: how it stood at the last look."""

    def __init__(self) -> None:
        self.snapshot: JobSnapshot | None = None
        self.subscriptions: set[JobSubscription] = set()
        self._serialized: JobSnapshot | None = None
        self._events: dict[str, bytes] = {}

    def event(self, snapshot: JobSnapshot, serialize: JobSerializer, link: str) -> bytes:
        """Return what is sent of it, made once for all who know it by the same link."""
        if self._serialized is not snapshot:
            self._serialized = snapshot
            self._events.clear()
        found = self._events.get(link)
        if found is None:
            found = f"event: job\ndata: {json.dumps(serialize(*snapshot, link))}\n\n".encode()
            self._events[link] = found
        return found


class JobSubscription:
    """Somebody who watches a job. seen: what there is to tell."""

    def __init__(self, watched: _WatchedJob, serialize: JobSerializer, link: str) -> None:
        self.snapshot: JobSnapshot | None = None
        self._watched = watched
        self._serialize = serialize
        self._link = link
        self._changed = asyncio.Event()
        self._is_closed = False

    def publish(self, snapshot: JobSnapshot) -> None:
        """Have something to tell."""
        self.snapshot = snapshot
        self._changed.set()

    def close(self) -> None:
        """Watch no more: there are no more events then."""
        self._is_closed = True
        self._changed.set()

    async def events(self) -> AsyncIterator[bytes]:
        """Yield an event whenever the job has changed, until it has ended, and now and then one that says nothing."""
        while True:
            try:
                async with asyncio.timeout(_HEARTBEAT_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                yield b":\n\n"
                continue
            self._changed.clear()
            if self._is_closed:
                return
            if self.snapshot is None:
                continue
            seen = self.snapshot
            yield self._watched.event(seen, self._serialize, self._link)
            if seen[0].state not in UNFINISHED_STATES:
                return


class JobWatcher:
    """Looks for all watched jobs at once, as long as anybody watches. look: seconds between two looks."""

    def __init__(self, store: JobStore, poll_seconds: float = _POLL_SECONDS) -> None:
        self._store = store
        self._poll_seconds = poll_seconds
        self._watched: dict[int, _WatchedJob] = {}
        self._poll_task: asyncio.Task[None] | None = None
        self._reserved: Counter[object] = Counter()
        self._lookups: dict[int, asyncio.Future[JobSnapshot | None]] = {}
        self._lookup_task: asyncio.Task[None] | None = None
        self._next_turn = 0.0
        self.is_closed = False

    @property
    def watchers(self) -> int:
        """How many watch."""
        return sum(len(watched.subscriptions) for watched in self._watched.values())

    def close(self) -> None:
        """Let everybody go."""
        self.is_closed = True
        if self._poll_task is not None:
            self._poll_task.cancel()
        for watched in self._watched.values():
            for each in watched.subscriptions:
                each.close()

    @contextmanager
    def reserve(self, number: int, client: str) -> Iterator[None]:
        """Have room for one who watches a job. client: whence. Raises BusyError if nobody else may watch.

        It is taken before anything is waited for: of many who come at once, none finds room that is another's.
        """
        of_job, of_client = ("job", number), ("client", client)
        if self.is_closed or self._reserved["all"] >= _MAX_WATCHERS:
            raise BusyError(f"{self._reserved['all']} watch already: no more may", 60)
        if max(self._reserved[of_job], self._reserved[of_client]) >= _MAX_OF_ONE:
            raise BusyError(f"{_MAX_OF_ONE} watch this job, or from there, already: no more may", 60)
        self._reserved.update(("all", of_job, of_client))
        try:
            yield
        finally:
            self._reserved.subtract(("all", of_job, of_client))
            self._reserved += Counter()  # whoever has none is forgotten

    async def get_snapshot(self, number: int) -> JobSnapshot | None:
        """Return a job and its place in the queue; None if there is none. Raises DatabaseError.

        All who ask while a look is under way are answered by the next one together: a crowd that begins to watch at
        once keeps nobody waiting who wants something else of the database. A job that others watch already is as it
        was at the last look, which is what they know, too.
        """
        await self._wait_for_turn()
        watched = self._watched.get(number)
        if watched is not None and watched.snapshot is not None:
            return watched.snapshot
        found = self._lookups.get(number)
        if found is None:
            found = self._lookups[number] = asyncio.get_running_loop().create_future()
        if self._lookup_task is None or self._lookup_task.done():
            self._lookup_task = asyncio.create_task(self._run_lookups())
        return await asyncio.shield(found)  # others may wait for the same

    async def _wait_for_turn(self) -> None:
        """Wait for one's turn, if many come at once: between two of them, others are answered."""
        now = asyncio.get_running_loop().time()
        mine = max(now, self._next_turn)
        self._next_turn = mine + _APART_SECONDS
        if mine > now:
            await asyncio.sleep(mine - now)

    async def _run_lookups(self) -> None:
        while self._lookups:
            asked, self._lookups = self._lookups, {}
            try:
                found = await asyncio.to_thread(self._store.get_with_places, list(asked))
            except Exception as error:  # noqa: BLE001  it is theirs who asked
                for each in asked.values():
                    each.set_exception(error)
                    each.exception()  # nobody may be left who wants to know
            else:
                for number, each in asked.items():
                    each.set_result(found.get(number))

    @contextmanager
    def subscribe(
        self, number: int, serialize: JobSerializer, link: str, snapshot: JobSnapshot | None = None
    ) -> Iterator[JobSubscription]:
        """Watch a job within the block. link: where it is found. seen: how it stands, if that is known."""
        watched = self._watched.setdefault(number, _WatchedJob())
        if watched.snapshot is None:
            watched.snapshot = snapshot
        elif watched.snapshot == snapshot:
            snapshot = watched.snapshot  # nothing is told twice
        watch = JobSubscription(watched, serialize, link)
        if snapshot is not None:
            watch.publish(snapshot)
        if self.is_closed:
            watch.close()
        watched.subscriptions.add(watch)
        if self._poll_task is None or self._poll_task.done():
            self._poll_task = asyncio.create_task(self._poll())
        try:
            yield watch
        finally:
            watched.subscriptions.discard(watch)
            if not watched.subscriptions:
                del self._watched[number]

    async def _poll(self) -> None:
        while self._watched and not self.is_closed:
            try:
                found = await asyncio.to_thread(self._store.get_with_places, list(self._watched))
            except DatabaseError as error:
                _log.warning("%s", error)
                found = {}
            await self._notify(found)
            await asyncio.sleep(self._poll_seconds)

    async def _notify(self, found: Mapping[int, JobSnapshot]) -> None:
        """Wake those whose job has changed, some at a time: whoever wants anything else of us must not wait for all."""
        woken = 0
        for number, seen in found.items():
            watched = self._watched.get(number)
            if watched is None:
                continue
            if watched.snapshot is None or watched.snapshot != seen:
                watched.snapshot = seen
            for each in tuple(watched.subscriptions):
                if each.snapshot is watched.snapshot:
                    continue
                each.publish(watched.snapshot)
                woken += 1
                if woken % _AT_ONCE == 0:
                    await asyncio.sleep(_BETWEEN_SECONDS)
