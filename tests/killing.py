"""Kills processes whose id becomes known after they have started."""

import os
import signal
import threading
from contextlib import suppress


class Killer:
    """Kills one process at a time: at once, or after some seconds."""

    def __init__(self) -> None:
        self._known = threading.Event()
        self._process = 0
        self._timer: threading.Timer | None = None
        self.sign: int = signal.SIGKILL

    def expect(self) -> None:
        """Prepare for the next process."""
        self._known.clear()
        self._timer = None

    def of(self, process: int) -> None:
        """Set the process id."""
        self._process = process
        self._known.set()

    def kill(self, delay: float | None) -> None:
        """Kill the process, now or after `delay` seconds."""
        self._known.wait(30)
        if delay is None:
            self._kill()
        else:
            self._timer = threading.Timer(delay, self._kill)
            self._timer.start()

    def gone(self) -> None:
        """Cancel a pending kill, since the id may be reused."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._process, self.sign)


class Killing(Killer):
    """Kills a process at its n-th request, or some time after, while the response is being stored."""

    def __init__(self) -> None:
        super().__init__()
        self._left = 0
        self._delay: float | None = None

    def plan(self, after: int, delay: float | None, sign: int = signal.SIGKILL) -> None:
        """Prepare for the next process.

        Args:
            after: Number of requests.
            delay: Seconds after the last of them; None for at once.
            sign: Signal to send.
        """
        self.expect()
        self.sign = sign
        self._left, self._delay = after, delay

    def ended(self) -> None:
        """Cancel a pending kill."""
        self._left = 0
        self.gone()

    def count_request(self) -> None:
        """Count a request."""
        if self._left == 0:
            return
        self._left -= 1
        if self._left == 0:
            self.kill(self._delay)
