"""A virtual clock, on which waiting takes no real time."""

import asyncio


class VirtualClock:
    """A clock that advances only when a task sleeps, or when a test advances it.

    Concurrent sleepers may wake late but never early, so rate limits that hold here hold in real time.

    slept: all sleeps in seconds, in order.
    """

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self.slept: list[float] = []

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Advance the clock, and let other tasks run."""
        self.slept.append(seconds)
        wake = self._now + max(0.0, seconds)
        await asyncio.sleep(0)
        self._now = max(self._now, wake)

    def advance(self, seconds: float) -> None:
        """Advance the clock."""
        self._now += seconds
