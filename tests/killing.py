"""Kills a process of which the number is known only after it has begun to ask."""

import os
import signal
import threading
from contextlib import suppress


class Killer:
    """Kills one process at a time: at once, or some seconds later."""

    def __init__(self) -> None:
        self._known = threading.Event()
        self._process = 0
        self._timer: threading.Timer | None = None
        self.sign: int = signal.SIGKILL

    def expect(self) -> None:
        """Say that another process is about to begin."""
        self._known.clear()
        self._timer = None

    def of(self, process: int) -> None:
        """Say which process."""
        self._process = process
        self._known.set()

    def kill(self, delay: float | None) -> None:
        """Kill it: now, or after some seconds."""
        self._known.wait(30)
        if delay is None:
            self._kill()
        else:
            self._timer = threading.Timer(delay, self._kill)
            self._timer.start()

    def gone(self) -> None:
        """Say that it is gone, so that its number may be another's."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._process, self.sign)


class Killing(Killer):
    """Kills a process when a request comes, or some time after: what has come is then being kept."""

    def __init__(self) -> None:
        super().__init__()
        self._left = 0
        self._delay: float | None = None

    def plan(self, after: int, delay: float | None, sign: int = signal.SIGKILL) -> None:
        """Be ready for the next process. after: how many requests. delay: seconds. sign: what it gets."""
        self.expect()
        self.sign = sign
        self._left, self._delay = after, delay

    def ended(self) -> None:
        """Say that it is gone."""
        self._left = 0
        self.gone()

    def count_request(self) -> None:
        """Count a request."""
        if self._left == 0:
            return
        self._left -= 1
        if self._left == 0:
            self.kill(self._delay)
