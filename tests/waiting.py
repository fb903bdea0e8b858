"""Waits for other processes."""

import subprocess
import time
from collections.abc import Callable

_TIMEOUT = 120  # seconds; far more than any condition needs, also on a busy machine


def wait_until(condition: Callable[[], bool]) -> None:
    """Return as soon as a condition is true; fail after a timeout."""
    end = time.monotonic() + _TIMEOUT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)  # the interval between two checks


def read_number(process: subprocess.Popen[str], word: str) -> int:
    """Wait for a line of output that begins with a word, and return the number after the word."""
    assert process.stdout
    for line in process.stdout:
        if line.startswith(word):
            return int(line.split()[1])
    raise AssertionError(f"no {word}")
