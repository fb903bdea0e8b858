"""How long it may take: from how long others took, and only where enough of them did."""

import math
from collections.abc import Sequence

_MIN_SAMPLES = 5  # jobs that ended: of fewer, nobody knows whether they are like the others
_MIN_SHARE = 0.05  # of a job: before that, more is found faster than it is done
_MIN_SECONDS = 10.0


def estimate_start(place: int, running: int, workers: int, durations: Sequence[float]) -> tuple[float, float] | None:
    """Return between how many seconds a job that waits will probably begin; None if that cannot be told.

    place: in the queue, from 1 on. running: jobs that are worked on. workers: that live; each has one job, or more if
    more are running. durations: seconds that the last jobs took.

    The first is what it comes to if jobs take as long as the quick quarter of those did at most, and one ends as soon
    as can be hoped; the second if they take as long as the slow quarter did at least, or as all did in the mean, which
    is more where few very large ones are among them. One of those is what is most likely met at work: so what is left
    of a running job may be more than a whole one mostly takes.

    >>> until_begun(3, 1, 1, [60, 60, 120, 240, 240, 240])
    (120.0, 720.0)
    >>> until_begun(1, 0, 2, [60] * 9)
    (0.0, 0.0)
    """
    if workers < 1 or len(durations) < _MIN_SAMPLES:
        return None
    at_once = max(workers, running)
    ends = max(0, place + running - at_once)  # that must come before it begins
    ordered = sorted(durations)
    quick, slow = ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]
    slow = max(slow, sum(ordered) / len(ordered))
    if not ends:
        return 0.0, 0.0
    left = sum(each * each for each in ordered) / (2 * sum(ordered) or 1)  # in the mean, of a job that is met at work
    return (ends - 1) / at_once * quick, float((math.ceil(ends / at_once) - 1) * slow + max(slow, left))


def estimate_remaining(seconds: float, share: float) -> float | None:
    """Return in how many seconds a job will probably be done that has come so far in so many; None if nobody knows.

    >>> until_done(60, 0.25)
    180.0
    """
    if share < _MIN_SHARE or seconds < _MIN_SECONDS:
        return None
    return seconds * (1 - share) / share
