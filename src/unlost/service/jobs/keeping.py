"""Keeps the lease of a job while it is worked on: a thread tells the database that its worker lives."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from unlost.errors import DatabaseError, LeaseLostError
from unlost.service.jobs.job import Job, JobProgress
from unlost.service.jobs.store import JobStore

_log = logging.getLogger(__name__)
_BEATS = 4  # within one lease: three may be lost before it is
_LAST_SECONDS = 1.0  # for which the end of a last beat is waited for: a good one takes milliseconds


class LeaseKeeper:
    """Beats for one job, in a thread of its own, whatever the worker's event loop is busy with.

    It is used as an async context manager. Another thread looks at the clock meanwhile: where a cable was pulled out,
    nobody is told, and a beat hangs for as long as the system goes on trying.

    seconds: of a lease. lost: called once at most, from a thread and never after the block, when the worker must stop:
        somebody else has the job, or the database was out of reach for so long that somebody else may have it.
    progress: the last that is known; to be set by whoever works.
    """

    def __init__(self, store: JobStore, job: Job, seconds: float, on_lost: Callable[[], object]) -> None:
        self._store = store
        self._job = job
        self._seconds = seconds
        self._on_lost = on_lost
        self._ended = threading.Event()
        self._is_lost = False
        self._deciding = threading.Lock()  # whether it is lost or has ended: whichever is first
        # The time of this machine alone: when the last good beat was. It is taken before the beat, so that the lease
        # ends here first, and only then in the database.
        self._last_renewal = time.monotonic()
        name = f"lease-{job.number}"
        self._threads = [
            threading.Thread(target=each, name=name, daemon=True) for each in (self._renew, self._watch_expiry)
        ]  # fmt: skip
        self.progress: JobProgress = job.progress

    async def __aenter__(self) -> Self:
        """Begin to beat."""
        self._last_renewal = time.monotonic()
        for each in self._threads:
            each.start()
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        """Beat no more. A beat that hangs is left alone: it holds nobody up, and what it comes to counts no more."""
        with self._deciding:
            self._ended.set()
        await asyncio.to_thread(self._wait)

    def _wait(self) -> None:
        deadline = time.monotonic() + _LAST_SECONDS
        for each in self._threads:
            each.join(max(0.0, deadline - time.monotonic()))

    def _renew(self) -> None:
        # Who has given a job up beats for it no more, or nobody else could have it while things are put away.
        while not self._ended.wait(self._seconds / _BEATS) and not self._is_lost:
            begun = time.monotonic()
            try:
                self._store.renew_lease(self._job.number, self._job.generation, self._seconds, self.progress)
                self._last_renewal = begun
            except LeaseLostError as error:
                self._stop_worker(str(error))
                return
            except DatabaseError as error:
                _log.warning("job %s: no beat: %s", self._job.number, error, extra={"job": self._job.number})

    def _watch_expiry(self) -> None:
        while not self._ended.wait(max(0.0, self._last_renewal + self._seconds - time.monotonic())):
            if time.monotonic() >= self._last_renewal + self._seconds:
                self._stop_worker(
                    f"job {self._job.number}: no beat for as long as its lease: it is left to another worker"
                )
                return

    def _stop_worker(self, why: str) -> None:
        """Have the worker stop, once, unless it has stopped."""
        with self._deciding:
            if not self._is_lost and not self._ended.is_set():
                self._is_lost = True
                _log.warning("%s", why, extra={"job": self._job.number})
                self._on_lost()
