"""Waiting for what another process does."""

import time
from collections.abc import Callable

_SECONDS = 120  # far more than anything takes that is waited for, also on a machine that does much else


def wait_until(condition: Callable[[], bool]) -> None:
    """Return as soon as something is so; fail if that takes too long."""
    end = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)  # between two looks, never instead of one
