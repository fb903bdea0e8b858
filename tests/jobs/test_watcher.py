"""Subscribers are notified of each change; many subscribers share one query."""

import asyncio
import json
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from tests.jobs.in_memory_store import ORDER
from unlost.errors import BusyError, DatabaseError
from unlost.jobs import Job, JobSnapshot, JobState, JobWatcher
from unlost.jobs import watcher as module

if TYPE_CHECKING:
    from unlost.jobs import JobStore

WAITING = Job(1, ORDER, JobState.QUEUED, 0.0, 0.0)
DONE = replace(WAITING, state=JobState.COMPLETE)


class FakeJobStore:
    """A fake job store that records queries. `gate` blocks them."""

    def __init__(self, *found: JobSnapshot) -> None:
        self.found = {seen[0].number: seen for seen in found}
        self.queries: list[list[int]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.error: DatabaseError | None = None

    def get_with_places(self, numbers: Sequence[int]) -> dict[int, JobSnapshot]:
        """Return snapshots."""
        self.queries.append(sorted(numbers))
        self.gate.wait()
        if self.error is not None:
            raise self.error
        return {number: self.found[number] for number in numbers if number in self.found}

    def create_watcher(self) -> JobWatcher:
        """Create a watcher that polls continuously."""
        return JobWatcher(cast("JobStore", self), poll_seconds=0.0)


def serialize(job: Job, place: int | None, link: str) -> dict[str, object]:
    """Serialize a snapshot."""
    return {"state": job.state.value, "place": place, "link": link}


def event(state: str, place: int | None, link: str = "here") -> bytes:
    """Return the expected event."""
    return f"event: job\ndata: {json.dumps({'state': state, 'place': place, 'link': link})}\n\n".encode()


def test_concurrent_lookups_share_one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that arrive during a query are answered together by the next one."""

    async def run() -> None:
        monkeypatch.setattr(module, "_LOOKUP_SPACING_SECONDS", 0.0)
        jobs = FakeJobStore(*((replace(WAITING, number=number), number) for number in range(1, 100)))
        jobs.gate.clear()
        watcher = jobs.create_watcher()
        first = asyncio.create_task(watcher.get_snapshot(1))
        while not jobs.queries:
            await asyncio.sleep(0)
        crowd = [asyncio.create_task(watcher.get_snapshot(number)) for number in (2, 2, *range(2, 101))]
        await asyncio.sleep(0)
        jobs.gate.set()
        found = await asyncio.gather(first, *crowd)
        assert jobs.queries == [[1], list(range(2, 101))]
        assert [seen and seen[0].number for seen in found] == [1, 2, 2, *range(2, 100), None]

    asyncio.run(run())


def test_database_error_is_raised_to_all_callers() -> None:
    """All waiting callers get the error; later calls query again; cancelled callers affect no one."""

    async def run() -> None:
        jobs = FakeJobStore((WAITING, 1))
        jobs.error = DatabaseError("away")
        watcher = jobs.create_watcher()
        found = await asyncio.gather(*(watcher.get_snapshot(1) for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in found] == [DatabaseError] * 3
        jobs.error = None
        jobs.gate.clear()
        left, stays = (
            asyncio.create_task(watcher.get_snapshot(1)),
            asyncio.create_task(watcher.get_snapshot(1)),
        )
        await asyncio.sleep(0)
        left.cancel()
        jobs.gate.set()
        assert await stays == (WAITING, 1)
        assert left.cancelled() or await asyncio.gather(left, return_exceptions=True)

    asyncio.run(run())


def test_subscription_ends_with_the_job() -> None:
    """A subscriber gets the current snapshot, each change, and nothing after the job has ended."""

    async def run() -> None:
        jobs = FakeJobStore((WAITING, 2))
        watcher = jobs.create_watcher()
        with watcher.subscribe(1, serialize, "here", (WAITING, 2)) as watch:
            events = watch.events()
            assert await anext(events) == event("queued", 2)
            jobs.found[1] = (WAITING, 1)
            assert await anext(events) == event("queued", 1)
            jobs.found[1] = (DONE, None)
            assert [each async for each in events] == [event("complete", None)]
        assert watcher.watchers == 0

    asyncio.run(run())


def test_snapshot_of_a_watched_job_is_reused() -> None:
    """A new subscriber gets the current snapshot at once; it is serialized once per URL."""

    async def run() -> None:
        jobs = FakeJobStore((WAITING, 2))
        watcher = JobWatcher(cast("JobStore", jobs), poll_seconds=3_600.0)
        received: list[str] = []

        def count(job: Job, place: int | None, link: str) -> dict[str, object]:
            received.append(link)
            return serialize(job, place, link)

        with ExitStack() as stack:
            for link in ("here", "here", "there", "here"):
                seen = await watcher.get_snapshot(1)
                watch = stack.enter_context(watcher.subscribe(1, count, link, seen))
                assert await anext(watch.events()) == event("queued", 2, link)
            assert received == ["here", "there"]
            while len(jobs.queries) < 2:
                await asyncio.sleep(0)
            assert jobs.queries == [[1], [1]]  # by the first, and for all
        jobs.found[1] = (WAITING, 1)
        assert await watcher.get_snapshot(1) == (WAITING, 1)  # there are no subscriptions left
        watcher.close()

    asyncio.run(run())


def test_concurrent_lookups_are_spaced_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of several concurrent calls proceeds, the others are delayed."""

    async def run() -> None:
        monkeypatch.setattr(module, "_LOOKUP_SPACING_SECONDS", 3_600.0)
        watcher = FakeJobStore((WAITING, 1)).create_watcher()
        crowd = [asyncio.create_task(watcher.get_snapshot(1)) for _ in range(3)]
        assert await crowd[0] == (WAITING, 1)
        assert not any(each.done() for each in crowd[1:])
        for each in crowd:
            each.cancel()

    asyncio.run(run())


def test_closed_subscription_gets_no_events() -> None:
    """A disconnect ends only the events of that client."""

    async def run() -> None:
        jobs = FakeJobStore((WAITING, 1))
        watcher = jobs.create_watcher()
        with watcher.subscribe(1, serialize, "here", (WAITING, 1)) as stays:
            with watcher.subscribe(1, serialize, "here", (WAITING, 1)) as leaves:
                events = leaves.events()
                assert await anext(events) == event("queued", 1)
                leaves.close()
                assert [each async for each in events] == []
            assert watcher.watchers == 1
            jobs.found[1] = (DONE, None)
            assert [each async for each in stays.events()][-1] == event("complete", None)

    asyncio.run(run())


def test_subscriptions_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subscriptions are limited in total, per job and per client, and end when the watcher is closed."""

    async def run() -> None:
        monkeypatch.setattr(module, "_MAX_WATCHERS", 4)
        monkeypatch.setattr(module, "_MAX_PER_KEY", 2)
        watcher = FakeJobStore((WAITING, 1)).create_watcher()
        with ExitStack() as all_:
            first = all_.enter_context(ExitStack())
            first.enter_context(watcher.reserve(1, "here"))
            all_.enter_context(watcher.reserve(2, "here"))
            for number, client in ((3, "here"), (3, "here")):
                with pytest.raises(BusyError, match="2 watch this job, or from there"):
                    all_.enter_context(watcher.reserve(number, client))
            all_.enter_context(watcher.reserve(2, "there"))
            with pytest.raises(BusyError, match="2 watch this job, or from there"):
                all_.enter_context(watcher.reserve(2, "elsewhere"))
            first.close()
            all_.enter_context(watcher.reserve(3, "here"))
            all_.enter_context(watcher.reserve(4, "elsewhere"))
            with pytest.raises(BusyError, match="4 watch already"):
                all_.enter_context(watcher.reserve(5, "anywhere"))
        with watcher.subscribe(1, serialize, "here", (WAITING, 1)) as watch:
            stream = watch.events()
            await anext(stream)
            with watcher.reserve(5, "anywhere"):
                watcher.close()
            assert [each async for each in stream] == []

    asyncio.run(run())
