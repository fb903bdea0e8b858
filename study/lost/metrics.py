"""Aggregate metrics of recoveries."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from study.lost.result import RecoveredCount, RecoveryResult
from study.signed_ranks import SignedRankResult, wilcoxon_signed_rank


def sum_counts(
    outcomes: Iterable[RecoveryResult], counts_of: Callable[[RecoveryResult], Mapping[str, RecoveredCount]], label: str
) -> RecoveredCount:
    """Return the number of original files with a label over all sites, and how many of them were recovered."""
    found = [counts_of(each).get(label, (0, 0)) for each in outcomes]
    return sum(one for one, _ in found), sum(other for _, other in found)


def recovered_share(count: RecoveredCount) -> float:
    """Return the recovered share; 0 if there are no files."""
    return count[1] / count[0] if count[0] else 0.0


def archive_contributions(outcomes: Iterable[RecoveryResult]) -> dict[str, float]:
    """Return the mean share of recovered files from each archive, over recoveries with any files.

    >>> from unlost.comparison.difference import ResourceCounts
    >>> one = RecoveryResult("a", 0, "naive", ("x", "y"), ResourceCounts(4), resources_by_archive={"x": 3, "y": 1})
    >>> archive_contributions([one])
    {'x': 0.75, 'y': 0.25}
    """
    shares: dict[str, float] = {}
    count = 0
    for each in outcomes:
        total = sum(each.resources_by_archive.values())
        count += total > 0
        for archive in each.archives:
            shares[archive] = shares.get(archive, 0.0) + (
                each.resources_by_archive.get(archive, 0) / total if total else 0.0
            )
    return {archive: found / count for archive, found in shares.items()} if count else {}


def compare_pairs(
    first: Sequence[RecoveryResult], second: Sequence[RecoveryResult], measure: Callable[[RecoveryResult], float]
) -> SignedRankResult:
    """Test whether a measure differs between paired recoveries of the same sites. Raises ValueError."""
    if [(each.site, each.week) for each in first] != [(each.site, each.week) for each in second]:
        raise ValueError("expected recoveries of the same sites in the same order")
    return wilcoxon_signed_rank([measure(each) for each in first], [measure(each) for each in second])


def chi_square_p_value(first: RecoveredCount, second: RecoveredCount) -> float:
    """Return the p-value of a chi-square test of two recovered shares.

    >>> round(chi_square_p_value((100, 50), (100, 64)), 4), chi_square_p_value((10, 5), (10, 5))
    (0.0455, 1.0)
    """
    total, back = first[0] + second[0], first[1] + second[1]
    if not 0 < back < total or not first[0] or not second[0]:
        return 1.0
    distance = first[1] - first[0] * back / total
    square = distance**2 * total**3 / (first[0] * second[0] * back * (total - back))
    return math.erfc(math.sqrt(square / 2))
