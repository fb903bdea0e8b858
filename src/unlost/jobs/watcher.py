"""Live progress of jobs as server-sent events. One database query a second serves all subscribers of all jobs."""

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
_MAX_WATCHERS = 1_000  # streams in all
_MAX_PER_KEY = 250  # streams of one job, and to one client network, which may be that of a whole school
_HEARTBEAT_SECONDS = 15.0  # interval of empty comments: many proxies close a connection after 30 s without data
_NOTIFY_BATCH, _NOTIFY_PAUSE_SECONDS = 5, 0.005  # subscribers are notified in batches: 1,000 within a second
_LOOKUP_SPACING_SECONDS = 0.001  # between new subscribers when many connect at once; each takes about half of it
_log = logging.getLogger(__name__)

JobSnapshot = tuple[Job, int | None]
JobSerializer = Callable[[Job, int | None, str], dict[str, object]]
"""Serializes a job, its position in the queue, and its URL."""


class _WatchedJob:
    """A job with subscribers. `snapshot` is the result of the last poll."""

    def __init__(self) -> None:
        self.snapshot: JobSnapshot | None = None
        self.subscriptions: set[JobSubscription] = set()
        self._serialized: JobSnapshot | None = None
        self._events: dict[str, bytes] = {}

    def event(self, snapshot: JobSnapshot, serialize: JobSerializer, link: str) -> bytes:
        """Return the server-sent event of a snapshot. It is serialized once per URL."""
        if self._serialized is not snapshot:
            self._serialized = snapshot
            self._events.clear()
        message = self._events.get(link)
        if message is None:
            message = f"event: job\ndata: {json.dumps(serialize(*snapshot, link))}\n\n".encode()
            self._events[link] = message
        return message


class JobSubscription:
    """A subscription to one job. `snapshot` is the last one that was published."""

    def __init__(self, watched: _WatchedJob, serialize: JobSerializer, link: str) -> None:
        self.snapshot: JobSnapshot | None = None
        self._watched = watched
        self._serialize = serialize
        self._link = link
        self._changed = asyncio.Event()
        self._is_closed = False

    def publish(self, snapshot: JobSnapshot) -> None:
        """Publish a new snapshot."""
        self.snapshot = snapshot
        self._changed.set()

    def close(self) -> None:
        """End the subscription; `events` ends."""
        self._is_closed = True
        self._changed.set()

    async def events(self) -> AsyncIterator[bytes]:
        """Yield an event for each change until the job has ended, and heartbeats in between."""
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
            snapshot = self.snapshot
            yield self._watched.event(snapshot, self._serialize, self._link)
            if snapshot[0].state not in UNFINISHED_STATES:
                return


class JobWatcher:
    """Polls all jobs that have subscribers with one query, every `poll_seconds`."""

    def __init__(self, store: JobStore, poll_seconds: float = _POLL_SECONDS) -> None:
        self._store = store
        self._poll_seconds = poll_seconds
        self._watched: dict[int, _WatchedJob] = {}
        self._poll_task: asyncio.Task[None] | None = None
        self._reserved: Counter[object] = Counter()
        self._lookups: dict[int, asyncio.Future[JobSnapshot | None]] = {}
        self._lookup_task: asyncio.Task[None] | None = None
        self._next_slot = 0.0
        self.is_closed = False

    @property
    def watchers(self) -> int:
        """Number of subscriptions."""
        return sum(len(watched.subscriptions) for watched in self._watched.values())

    def close(self) -> None:
        """End all subscriptions."""
        self.is_closed = True
        if self._poll_task is not None:
            self._poll_task.cancel()
        for watched in self._watched.values():
            for each in watched.subscriptions:
                each.close()

    @contextmanager
    def reserve(self, number: int, client: str) -> Iterator[None]:
        """Reserve a subscription for a client.

        Must be called before anything is awaited, so that concurrent requests cannot exceed the limits.

        Args:
            number: Number of the job.
            client: Hash of the client's network.

        Raises:
            BusyError: A limit of subscriptions is reached.
        """
        job_key, client_key = ("job", number), ("client", client)
        if self.is_closed or self._reserved["all"] >= _MAX_WATCHERS:
            raise BusyError(f"{self._reserved['all']} watch already: no more may", 60)
        if max(self._reserved[job_key], self._reserved[client_key]) >= _MAX_PER_KEY:
            raise BusyError(f"{_MAX_PER_KEY} watch this job, or from there, already: no more may", 60)
        self._reserved.update(("all", job_key, client_key))
        try:
            yield
        finally:
            self._reserved.subtract(("all", job_key, client_key))
            self._reserved += Counter()  # drops the keys without reservations

    async def get_snapshot(self, number: int) -> JobSnapshot | None:
        """Return a job and its position in the queue, or None if it does not exist.

        Requests that arrive during a query are answered together by the next one, so that many new subscribers do not
        delay other database queries. A job that has subscribers is returned as of the last poll.

        Raises:
            DatabaseError: The database cannot be reached.
        """
        await self._wait_for_slot()
        watched = self._watched.get(number)
        if watched is not None and watched.snapshot is not None:
            return watched.snapshot
        lookup = self._lookups.get(number)
        if lookup is None:
            lookup = self._lookups[number] = asyncio.get_running_loop().create_future()
        if self._lookup_task is None or self._lookup_task.done():
            self._lookup_task = asyncio.create_task(self._run_lookups())
        return await asyncio.shield(lookup)  # others may wait for the same result

    async def _wait_for_slot(self) -> None:
        """Space out concurrent calls, so that other requests are processed in between."""
        now = asyncio.get_running_loop().time()
        slot = max(now, self._next_slot)
        self._next_slot = slot + _LOOKUP_SPACING_SECONDS
        if slot > now:
            await asyncio.sleep(slot - now)

    async def _run_lookups(self) -> None:
        while self._lookups:
            lookups, self._lookups = self._lookups, {}
            try:
                snapshots = await asyncio.to_thread(self._store.get_with_places, list(lookups))
            except Exception as error:  # noqa: BLE001  passed on to the callers
                for lookup in lookups.values():
                    lookup.set_exception(error)
                    lookup.exception()  # marks it as retrieved: the callers may have gone
            else:
                for number, lookup in lookups.items():
                    lookup.set_result(snapshots.get(number))

    @contextmanager
    def subscribe(
        self, number: int, serialize: JobSerializer, link: str, snapshot: JobSnapshot | None = None
    ) -> Iterator[JobSubscription]:
        """Subscribe to a job within the block.

        Args:
            number: Number of the job.
            serialize: Serializes a snapshot.
            link: URL of the job.
            snapshot: A current snapshot, if known.
        """
        watched = self._watched.setdefault(number, _WatchedJob())
        if watched.snapshot is None:
            watched.snapshot = snapshot
        elif watched.snapshot == snapshot:
            snapshot = watched.snapshot  # the same object, so that it is not published twice
        subscription = JobSubscription(watched, serialize, link)
        if snapshot is not None:
            subscription.publish(snapshot)
        if self.is_closed:
            subscription.close()
        watched.subscriptions.add(subscription)
        if self._poll_task is None or self._poll_task.done():
            self._poll_task = asyncio.create_task(self._poll())
        try:
            yield subscription
        finally:
            watched.subscriptions.discard(subscription)
            if not watched.subscriptions:
                del self._watched[number]

    async def _poll(self) -> None:
        while self._watched and not self.is_closed:
            try:
                snapshots = await asyncio.to_thread(self._store.get_with_places, list(self._watched))
            except DatabaseError as error:
                _log.warning("%s", error)
                snapshots = {}
            await self._notify(snapshots)
            await asyncio.sleep(self._poll_seconds)

    async def _notify(self, snapshots: Mapping[int, JobSnapshot]) -> None:
        """Notify the subscribers of changed jobs in batches, so that other requests are processed in between."""
        notified = 0
        for number, snapshot in snapshots.items():
            watched = self._watched.get(number)
            if watched is None:
                continue
            if watched.snapshot is None or watched.snapshot != snapshot:
                watched.snapshot = snapshot
            for subscription in tuple(watched.subscriptions):
                if subscription.snapshot is watched.snapshot:
                    continue
                subscription.publish(watched.snapshot)
                notified += 1
                if notified % _NOTIFY_BATCH == 0:
                    await asyncio.sleep(_NOTIFY_PAUSE_SECONDS)
