"""A clock without real waiting."""

import asyncio


class VirtualClock:
    """Time that passes only by `sleep` and `advance`.

    Concurrent sleepers may wake late, never early, so tests of limits are valid.

    Attributes:
        slept: Every sleep in seconds, in order.
    """

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self.slept: list[float] = []

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Advance the time, and let other tasks run."""
        self.slept.append(seconds)
        wake = self._now + max(0.0, seconds)
        await asyncio.sleep(0)
        self._now = max(self._now, wake)

    def advance(self, seconds: float) -> None:
        """Advance the time."""
        self._now += seconds
