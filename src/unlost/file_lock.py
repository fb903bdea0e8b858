"""Locks between processes: `flock` on an open file or folder."""

import fcntl
import time
from collections.abc import Callable

_MAX_PAUSE = 0.02  # seconds between two attempts


def acquire_lock(descriptor: int, timeout: float = 0.0, wait: Callable[[float], object] = time.sleep) -> None:
    """Lock an open file or folder exclusively, among processes and threads.

    The lock is released when the descriptor is closed, also when the process is killed.

    Args:
        descriptor: Descriptor of the file or folder.
        timeout: Seconds to wait for another holder of the lock; `math.inf` for no limit.
        wait: Waits between two attempts; an exception from it ends the wait.

    Raises:
        BlockingIOError: Another process or thread has held the lock for the whole time.
    """
    deadline = time.monotonic() + timeout
    pause = 0.0005
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            wait(pause)
            pause = min(2 * pause, _MAX_PAUSE)
        else:
            return
