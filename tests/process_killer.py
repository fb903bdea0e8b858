"""Kills processes whose id is known only after they have started to send requests."""

import os
import signal
import threading
from contextlib import suppress


class ProcessKiller:
    """Kills one process at a time, immediately or after a delay."""

    def __init__(self) -> None:
        self._known = threading.Event()
        self._process = 0
        self._timer: threading.Timer | None = None
        self.signal: int = signal.SIGKILL

    def expect_process(self) -> None:
        """Reset the state before another process is started."""
        self._known.clear()
        self._timer = None

    def set_process(self, process: int) -> None:
        """Set the id of the process to kill."""
        self._process = process
        self._known.set()

    def kill(self, delay: float | None) -> None:
        """Kill the process immediately, or after `delay` seconds."""
        self._known.wait(30)
        if delay is None:
            self._kill()
        else:
            self._timer = threading.Timer(delay, self._kill)
            self._timer.start()

    def cancel(self) -> None:
        """Cancel a pending kill after the process has ended, since its id may be reused."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._process, self.signal)


class RequestKiller(ProcessKiller):
    """Kills a process at its n-th request, or some time later while the response is being stored."""

    def __init__(self) -> None:
        super().__init__()
        self._left = 0
        self._delay: float | None = None

    def plan(self, after: int, delay: float | None, signal_number: int = signal.SIGKILL) -> None:
        """Prepare for the next process. after: number of requests. delay: seconds."""
        self.expect_process()
        self.signal = signal_number
        self._left, self._delay = after, delay

    def finish(self) -> None:
        """Stop counting requests after the process has ended."""
        self._left = 0
        self.cancel()

    def count_request(self) -> None:
        """Count a request."""
        if self._left == 0:
            return
        self._left -= 1
        if self._left == 0:
            self.kill(self._delay)
