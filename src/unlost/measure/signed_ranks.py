"""Whether one of two measurements of the same things is larger: Wilcoxon's test of matched pairs by signed ranks."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

MAX_EXACT_PAIRS = 50
"""Up to so many pairs that differ, every way to give them signs is counted; beyond, the normal distribution is near."""

_DIGITS = 12  # of differences: what differs by less is equal, and was only counted in another order


@dataclass(frozen=True, slots=True)
class SignedRankResult:
    """What the test found.

    pairs: how many differ; equal ones say nothing. above: the sum of the ranks of pairs whose first is larger; below:
    of the others. p: how likely sums are that lie as far apart, or further, if neither tends to be larger.
    """

    pairs: int
    above: float
    below: float
    p: float


def wilcoxon_signed_rank(first: Sequence[float], second: Sequence[float]) -> SignedRankResult:
    """Compare two measurements of the same things, in the same order; the test is for both sides.

    Equal differences share their ranks. Raises ValueError if there are not as many of one as of the other.

    >>> signed_ranks([1, 2, 3, 4, 5], [0, 0, 0, 0, 0])
    SignedRanks(pairs=5, above=15.0, below=0.0, p=0.0625)
    >>> signed_ranks([1, 2], [1, 2])
    SignedRanks(pairs=0, above=0.0, below=0.0, p=1.0)
    """
    differences = [round(one - other, _DIGITS) for one, other in zip(first, second, strict=True)]
    differences = [each for each in differences if each]
    ranks = _doubled_ranks([abs(each) for each in differences])
    above = sum(rank for each, rank in zip(differences, ranks, strict=True) if each > 0)
    below = sum(ranks) - above
    p = (_exact_p_value if len(ranks) <= MAX_EXACT_PAIRS else _normal_p_value)(ranks, min(above, below))
    return SignedRankResult(len(ranks), above / 2, below / 2, p)


def _doubled_ranks(sizes: Sequence[float]) -> list[int]:
    """Return twice the rank of each, which is whole also where equal ones share the mean of theirs."""
    counts = Counter(sizes)
    ranks, passed = {}, 0
    for size in sorted(counts):
        ranks[size] = 2 * passed + counts[size] + 1
        passed += counts[size]
    return [ranks[size] for size in sizes]


def _exact_p_value(ranks: Sequence[int], least: int) -> float:
    """Return the share of all ways to give signs whose smaller sum is not above the one that was found."""
    ways = [1] + [0] * sum(ranks)
    for rank in ranks:
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    return min(1.0, 2 * sum(ways[: least + 1]) / (1 << len(ranks)))


def _normal_p_value(ranks: Sequence[int], least: int) -> float:
    """Return the same by the normal distribution, corrected for ties and for whole numbers."""
    mean = sum(ranks) / 2
    deviation = math.sqrt(sum(rank * rank for rank in ranks)) / 2  # with shared ranks, the correction for ties is in it
    distance = max(0.0, mean - least - 1.0) / deviation  # half a rank, doubled
    return math.erfc(distance / math.sqrt(2))
