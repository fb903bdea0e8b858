"""The clock that is passed to everything that waits or expires; tests pass a virtual one."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """A source of the current time, and a way to sleep."""

    def now(self) -> float:
        """Return the seconds since 1970 (UTC), which are comparable between processes and across restarts."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep; return at once if `seconds` is not positive."""
        ...


class SystemClock:
    """Wall-clock time and `asyncio.sleep`."""

    def now(self) -> float:
        """Return the seconds since 1970."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await asyncio.sleep(max(0.0, seconds))
