"""The clock that is passed to everything that waits or expires; tests pass a virtual one."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Returns the time and sleeps."""

    def now(self) -> float:
        """Return the seconds since 1970 (UTC), which are comparable between processes and across restarts."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep; return at once if `seconds` is not positive."""
        ...


class SystemClock:
    """The system's clock."""

    def now(self) -> float:
        """Return the seconds since 1970."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await asyncio.sleep(max(0.0, seconds))
