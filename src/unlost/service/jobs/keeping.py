"""Keeps the lease of a job while it is worked on: a thread that tells the database that its worker lives."""

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from unlost.errors import DatabaseError, LeaseLostError
from unlost.service.jobs.job import Job, Progress
from unlost.service.jobs.store import Jobs

_log = logging.getLogger(__name__)
_BEATS = 4  # within one lease: three may be lost before it is


class LeaseKeeper:
    """Beats for one job, in a thread of its own, whatever the worker's event loop is busy with. A context manager.

    seconds: of a lease. lost: called once, from that thread, when the worker must stop: somebody else has the job, or
        the database was out of reach for so long that somebody else may have it.
    progress: the last that is known; to be set by whoever works.
    """

    def __init__(self, jobs: Jobs, job: Job, seconds: float, lost: Callable[[], object]) -> None:
        self._jobs = jobs
        self._job = job
        self._seconds = seconds
        self._lost = lost
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lease-{job.number}", daemon=True)
        self.progress: Progress = job.progress

    def __enter__(self) -> Self:
        """Begin to beat."""
        self._thread.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        """Beat no more."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        # The time of this machine alone: how long ago the last good beat was. It is taken before the beat, so that the
        # lease ends here first, and only then in the database.
        good = time.monotonic()
        while not self._ended.wait(self._seconds / _BEATS):
            begun = time.monotonic()
            try:
                self._jobs.beat(self._job.number, self._job.generation, self._seconds, self.progress)
                good = begun
            except LeaseLostError as error:
                _log.warning("%s", error, extra={"job": self._job.number})
                self._lost()
                return
            except DatabaseError as error:
                _log.warning("job %s: no beat: %s", self._job.number, error, extra={"job": self._job.number})
                if time.monotonic() - good >= self._seconds:
                    self._lost()
                    return
