"""How large a recovery may become, and how long workers go on with it: beyond that, what there is must do."""

import time
from contextlib import suppress
from pathlib import Path

from unlost.service.jobs.disk_space import DiskSpace
from unlost.service.jobs.rules import OrderLimits

_QUOTA_CHECK_SECONDS = 1.0
_HOUR = 3_600.0
_MEGABYTE = 1_000_000


class JobQuota:
    """Watches a folder of WARCs, and the time. reached: which limit was, in words; nothing if none.

    worked: seconds for which it has been worked on before. space: the disk space of all jobs.
    shortage: why there is too little disk space to continue; empty if there is enough.
    """

    def __init__(self, folder: Path, limits: OrderLimits, worked: float = 0.0, space: DiskSpace | None = None) -> None:
        self._folder = folder
        self._limits = limits
        self._begun = time.monotonic() - worked
        self._last_check = float("-inf")
        self._space = space
        self.reached = ""
        self.shortage = ""

    def is_exceeded(self) -> bool:
        """Return whether to stop. It looks once a second at most, for it is asked often."""
        now = time.monotonic()
        if not self.reached and not self.shortage and now - self._last_check >= _QUOTA_CHECK_SECONDS:
            self._last_check = now
            if self._limits.hours and now - self._begun >= self._limits.hours * _HOUR:
                self.reached = f"it ended after {self._limits.hours} hours, which is the limit here"
            elif self._limits.megabytes and self._size() >= self._limits.megabytes * _MEGABYTE:
                self.reached = f"it ended at {self._limits.megabytes} MB, which is the limit here"
            elif self._space is not None:
                self.shortage = self._space.shortage()
        return bool(self.reached or self.shortage)

    def _size(self) -> int:
        total = 0
        with suppress(OSError):  # files get other names when they are full
            total = sum(each.stat().st_size for each in self._folder.iterdir())
        return total
