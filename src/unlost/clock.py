"""The clock that everything asks which waits, expires or is paid by time; tests bring one of their own."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and waits."""

    def now(self) -> float:
        """Return the seconds since 1970, in UTC: a time that means the same to other processes and after a restart."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; not at all if the number is not positive."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Return the seconds since 1970."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(max(0.0, seconds))
