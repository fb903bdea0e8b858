"""Estimated start times, compared with simulated queues."""

import heapq
import random
from collections.abc import Callable

import pytest

from unlost.webui import estimate_start

Draw = Callable[[random.Random], float]

KINDS: dict[str, Draw] = {
    "alike": lambda chance: chance.uniform(50, 70),
    "like calls": lambda chance: chance.expovariate(1 / 60),
    "like sites": lambda chance: chance.lognormvariate(4, 1.5),  # few very large ones take most of the time
}


def queue(draw: Draw, workers: int, waiting: int, seed: int) -> list[tuple[float, float, float]]:
    """Simulate a queue; return the actual and the estimated start of each job."""
    rng = random.Random(seed)  # noqa: S311
    past = [draw(rng) for _ in range(50)]
    # It was busy for long: each worker is somewhere within its job, in long ones more likely than in short ones.
    free = []
    for _ in range(workers):
        longest = max((draw(rng) for _ in range(20)), key=lambda seconds: rng.random() ** (1 / seconds))
        free.append(rng.uniform(0, longest))
    heapq.heapify(free)
    found = []
    for place in range(1, waiting + 1):
        estimate = estimate_start(place, workers, workers, past)
        assert estimate is not None
        begins = heapq.heappop(free)
        heapq.heappush(free, begins + draw(rng))
        found.append((begins, *estimate))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [1, 4])
def test_estimated_start_includes_the_actual_start(kind: str, workers: int) -> None:
    """Most jobs start within the estimate, for any distribution of durations, and the estimate is narrow."""
    played = [queue(KINDS[kind], workers, 20, seed) for seed in range(300)]
    for place in range(20):
        at_place = [each[place] for each in played]
        within = sum(low <= begins <= high for begins, low, high in at_place) / len(at_place)
        assert within >= 0.6, (place + 1, within)
    last = [each[-1] for each in played]
    assert all(0 < low < high for _, low, high in last)
    means = [sum(values) / len(last) for values in zip(*last, strict=True)]
    assert means[1] < means[0] < means[2], "it is neither always early nor always late"


def test_worker_with_several_concurrent_jobs() -> None:
    """With more running jobs than workers, several jobs end at a time."""
    assert estimate_start(1, 4, 1, [60.0] * 9) == (0.0, 60.0)
    assert estimate_start(9, 4, 1, [60.0] * 9) == (120.0, 180.0)


def test_no_estimate_without_enough_data() -> None:
    """Without workers or recent jobs there is no estimate; with free workers, jobs start at once."""
    assert estimate_start(1, 0, 0, [60.0] * 9) is None
    assert estimate_start(1, 0, 1, [60.0] * 4) is None
    assert estimate_start(2, 1, 3, [60.0] * 9) == (0.0, 0.0)
