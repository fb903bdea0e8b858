"""How long it may take: from how long others took, and only where enough of them did."""

import math
from collections.abc import Sequence

_FEWEST = 5  # jobs that ended: of fewer, nobody knows whether they are like the others
_LEAST_SHARE = 0.05  # of a job: before that, more is found faster than it is done
_LEAST_SECONDS = 10.0


def until_begun(place: int, running: int, workers: int, durations: Sequence[float]) -> tuple[float, float] | None:
    """Return between how many seconds a job that waits will probably begin; None if that cannot be told.

    place: in the queue, from 1 on. durations: seconds that the last jobs took. The two are what it comes to if jobs
    take as long as the quick quarter of those did at most, and as the slow quarter did at least.

    >>> until_begun(3, 1, 1, [60, 60, 120, 240, 240, 240])
    (180.0, 720.0)
    >>> until_begun(1, 0, 2, [60] * 9)
    (0.0, 0.0)
    """
    if workers < 1 or len(durations) < _FEWEST:
        return None
    before = place - 1 + running
    rounds = math.ceil((before - workers + 1) / workers) if before >= workers else 0
    ordered = sorted(durations)
    quick, slow = ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]
    return float(rounds * quick), float(rounds * slow)


def until_done(seconds: float, share: float) -> float | None:
    """Return in how many seconds a job will probably be done that has come so far in so many; None if nobody knows.

    >>> until_done(60, 0.25)
    180.0
    """
    if share < _LEAST_SHARE or seconds < _LEAST_SECONDS:
        return None
    return seconds * (1 - share) / share
