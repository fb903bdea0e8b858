"""The lease of a job is renewed until the worker is done or has lost it."""

import asyncio
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from unlost.errors import LeaseLostError
from unlost.jobs import Job, JobProgress, LeaseKeeper, worker

if TYPE_CHECKING:
    from unlost.jobs import JobStore

LEASE = 0.4  # seconds


class BlockingJobStore:
    """A job store whose first renewal blocks, as with a broken network connection.

    With `lost`, the renewal then reports that another worker has the job.
    """

    def __init__(self, *, lost: bool = False) -> None:
        self.begun = threading.Event()
        self.answers = threading.Event()
        self.answered = threading.Event()
        self.beats = 0
        self._lost = lost

    def renew_lease(self, *_: object) -> None:
        """Renew the lease."""
        self.beats += 1
        if self.beats == 1:
            self.begun.set()
            assert self.answers.wait(30)
            self.answered.set()
            if self._lost:
                raise LeaseLostError("another worker has it")


def create_lease_keeper(jobs: BlockingJobStore, lost: threading.Event, lease: float = LEASE) -> LeaseKeeper:
    """Create the keeper of a lease."""
    job = SimpleNamespace(number=1, generation=1, progress=JobProgress())
    return LeaseKeeper(cast("JobStore", jobs), cast("Job", job), lease, lost.set)


def test_lost_lease_is_not_renewed() -> None:
    """If the network recovers while the worker is stopping, the lease is not renewed any more."""
    jobs, lost = BlockingJobStore(), threading.Event()

    async def work() -> None:
        async with create_lease_keeper(jobs, lost):
            assert await asyncio.to_thread(lost.wait, 30)
            jobs.answers.set()
            assert await asyncio.to_thread(jobs.answered.wait, 30)
            await asyncio.sleep(2 * LEASE)  # in which there would be eight
            assert jobs.beats == 1

    asyncio.run(work())


def test_blocked_renewal_does_not_delay_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker continues with other jobs without waiting for the renewal, whose result is ignored."""
    monkeypatch.setattr(worker, "_FINAL_RENEWAL_SECONDS", 0.2)
    monkeypatch.setattr(worker, "_RENEWALS_PER_LEASE", 300)
    jobs, lost = BlockingJobStore(lost=True), threading.Event()

    async def work() -> int:
        turns = 0
        async with create_lease_keeper(jobs, lost, lease=30.0) as keeper:
            assert await asyncio.to_thread(jobs.begun.wait, 30)
            leaving = asyncio.create_task(keeper.__aexit__(None, None, None))
            while not leaving.done():
                await asyncio.sleep(0)
                turns += 1
        return turns

    try:
        assert asyncio.run(work()) > 1, "the loop has turned meanwhile"
        assert not jobs.answers.is_set()
    finally:
        jobs.answers.set()
    assert jobs.answered.wait(30)
    for thread in threading.enumerate():
        if thread.name == "lease-1":
            thread.join(30)
    assert not lost.is_set(), "the job has been released here"
