"""A clock on which waiting takes no time."""

import asyncio


class VirtualClock:
    """Time that passes only when somebody waits for it, or when a test says so.

    Whoever waits beside others may wake late, never early: so a limit that holds here holds.

    slept: every wait, in seconds, in order.
    """

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self.slept: list[float] = []

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Let the time pass, and others run."""
        self.slept.append(seconds)
        wake = self._now + max(0.0, seconds)
        await asyncio.sleep(0)
        self._now = max(self._now, wake)

    def advance(self, seconds: float) -> None:
        """Let time pass for everybody."""
        self._now += seconds
