"""Waiting for other processes."""

import subprocess
import time
from collections.abc import Callable

_SECONDS = 120  # far more than anything takes that is waited for, also on a machine that does much else


def wait_until(condition: Callable[[], bool]) -> None:
    """Return when a condition holds; fail if that takes too long."""
    end = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)  # between two looks, never instead of one


def read_number(process: subprocess.Popen[str], word: str) -> int:
    """Return the number after a word in the process's output, when it is printed."""
    assert process.stdout
    for line in process.stdout:
        if line.startswith(word):
            return int(line.split()[1])
    raise AssertionError(f"no {word}")
