"""The disk space that jobs may use: a floor of free space, and a bound on the size of all jobs together."""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from unlost.service.jobs.folders import JobFolders, DiskUsage

LOW_SPACE = "too little disk space is free on this service: the job waits until there is more"
QUOTA_REACHED = "all jobs together have reached the size limit of this service: the job waits until others are removed"
SHORTAGE_MESSAGES = (LOW_SPACE, QUOTA_REACHED)
"""Messages of jobs that wait for disk space."""

_MEGABYTE = 1_000_000
_PAUSE_RATIO = 50  # pause between two counts, as a multiple of the time that a count took


@dataclass(frozen=True, slots=True)
class DiskSpaceLimits:
    """Limits in bytes; 0 disables a limit.

    min_free: below this much free space, no job starts or continues. max_total: size of all jobs together.
    """

    min_free: int = 1_000 * _MEGABYTE
    max_total: int = 200_000 * _MEGABYTE

    @classmethod
    def from_megabytes(cls, min_free: int, max_total: int) -> "DiskSpaceLimits":
        """Return limits that are given in megabytes."""
        return cls(min_free * _MEGABYTE, max_total * _MEGABYTE)


class DiskSpace:
    """Compares the disk of the job folders with the limits. Threads may share it."""

    def __init__(self, folders: JobFolders, limits: DiskSpaceLimits | None = None) -> None:
        self._folders = folders
        self.limits = limits or DiskSpaceLimits()
        self._used = 0
        self._next_measurement = float("-inf")
        self._measuring = threading.Lock()

    def usage(self) -> DiskUsage:
        """Return how much is free, and the size of all jobs as it was counted last."""
        return self._folders.usage(self._used)

    def measure(self) -> str:
        """Read the size of all jobs, then return as `shortage` does.

        Reads nothing if another thread does so now, or did a short time ago: with many files it takes minutes.
        """
        if self._measuring.acquire(blocking=False):
            try:
                self._measure()
            finally:
                self._measuring.release()
        return self.shortage()

    def _measure(self) -> None:
        begun = time.monotonic()
        if begun >= self._next_measurement:
            with suppress(OSError):
                self._used = self._folders.total_size()
            ended = time.monotonic()
            self._next_measurement = ended + _PAUSE_RATIO * (ended - begun)

    def shortage(self) -> str:
        """Return why no job may start or continue, one of `SHORTAGES`; empty if jobs may.

        Fast: takes the size of all jobs as it was counted last. A disk that cannot be read counts as large enough,
        since an attempt to write to it reports the cause.
        """
        if self.limits.max_total and self._used >= self.limits.max_total:
            return QUOTA_REACHED
        with suppress(OSError):
            if self.limits.min_free and self._folders.usage(self._used).free < self.limits.min_free:
                return LOW_SPACE
        return ""
