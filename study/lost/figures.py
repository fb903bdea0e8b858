"""Numbers about many recoveries."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from study.lost.outcome import Outcome, Tally
from unlost.statistics import SignedRankResult, wilcoxon_signed_rank


def pooled(outcomes: Iterable[Outcome], tallies: Callable[[Outcome], Mapping[str, Tally]], label: str) -> Tally:
    """Return how many files with a label all originals have together, and how many of them came back."""
    found = [tallies(each).get(label, (0, 0)) for each in outcomes]
    return sum(one for one, _ in found), sum(other for _, other in found)


def share(tally: Tally) -> float:
    """Return the share that came back; of nothing, 0."""
    return tally[1] / tally[0] if tally[0] else 0.0


def contributions(outcomes: Iterable[Outcome]) -> dict[str, float]:
    """Return the share of recovered files that each archive gave, on average over recoveries that brought any.

    >>> from unlost.comparison.difference import ResourceCounts
    >>> one = Outcome("a", 0, "naive", ("x", "y"), ResourceCounts(4), given={"x": 3, "y": 1})
    >>> contributions([one])
    {'x': 0.75, 'y': 0.25}
    """
    shares: dict[str, float] = {}
    count = 0
    for each in outcomes:
        total = sum(each.given.values())
        count += total > 0
        for archive in each.archives:
            shares[archive] = shares.get(archive, 0.0) + (each.given.get(archive, 0) / total if total else 0.0)
    return {archive: found / count for archive, found in shares.items()} if count else {}


def compared(
    first: Sequence[Outcome], second: Sequence[Outcome], measure: Callable[[Outcome], float]
) -> SignedRankResult:
    """Return whether a measure differs between recoveries of the same sites, in the same order. Raises ValueError."""
    if [(each.site, each.week) for each in first] != [(each.site, each.week) for each in second]:
        raise ValueError("expected recoveries of the same sites in the same order")
    return wilcoxon_signed_rank([measure(each) for each in first], [measure(each) for each in second])


def unlike(first: Tally, second: Tally) -> float:
    """Return how likely it is that two groups come back with shares as different, by chance: a chi-square test.

    >>> round(unlike((100, 50), (100, 64)), 4), unlike((10, 5), (10, 5))
    (0.0455, 1.0)
    """
    total, back = first[0] + second[0], first[1] + second[1]
    if not 0 < back < total or not first[0] or not second[0]:
        return 1.0
    distance = first[1] - first[0] * back / total
    square = distance**2 * total**3 / (first[0] * second[0] * back * (total - back))
    return math.erfc(math.sqrt(square / 2))
