"""Waiting for what another process does."""

import subprocess
import time
from collections.abc import Callable

_SECONDS = 120  # far more than anything takes that is waited for, also on a machine that does much else


def wait_until(condition: Callable[[], bool]) -> None:
    """Return as soon as something is so; fail if that takes too long."""
    end = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)  # between two looks, never instead of one


def said(process: subprocess.Popen[str], word: str) -> int:
    """Return the number behind a word, as soon as the process prints it."""
    assert process.stdout
    for line in process.stdout:
        if line.startswith(word):
            return int(line.split()[1])
    raise AssertionError(f"no {word}")
