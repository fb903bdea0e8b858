"""Statistical functions: Wilson intervals, Wilcoxon's signed-rank test, summaries, inequality, power laws."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log, sqrt

Z95 = 1.959964
"""Of the normal distribution, for intervals that hold the truth 95 times in 100."""


def wilson_interval(hits: int, sampled: int, total: int | None = None) -> tuple[float, float]:
    """Return between which shares the one of `total` lies, by `hits` of `asked` that were drawn from it at random.

    Wilson's interval, with the correction for what is drawn from few: of all of them, the share itself; of none, 0
    to 1. total: None for more than can be counted.

    >>> [round(end, 4) for end in wilson_interval(8, 10)]
    [0.4902, 0.9433]
    >>> wilson_interval(8, 10, 10), wilson_interval(0, 0, 10)
    ((0.8, 0.8), (0.0, 1.0))
    """
    if not 0 <= hits <= sampled or (total is not None and sampled > total):
        raise ValueError(f"expected 0 <= {hits} <= {sampled} <= {total}")
    if sampled == 0:
        return (0.0, 0.0) if total == 0 else (0.0, 1.0)
    share = hits / sampled
    # The variance of what is drawn without putting back is smaller by this.
    smaller = 1.0 if total is None else (total - sampled) / (total - 1) if total > 1 else 0.0
    if smaller == 0:
        return share, share
    scale = Z95 * Z95 / sampled * smaller
    middle = (share + scale / 2) / (1 + scale)
    half = math.sqrt(scale * share * (1 - share) + scale * scale / 4) / (1 + scale)
    # Those that were drawn are known, whatever the formula allows.
    least, most = (0.0, 1.0) if total is None else (hits / total, (total - sampled + hits) / total)
    return max(least, middle - half), min(most, middle + half)


@dataclass(frozen=True, slots=True)
class Proportion:
    """So many of so many, and where the true share lies, 95 times in 100 (Wilson's interval)."""

    count: int
    total: int

    @property
    def value(self) -> float | None:
        """The share; None of nothing."""
        return self.count / self.total if self.total else None

    def interval(self) -> tuple[float, float]:
        """Return its bounds.

        >>> [round(bound, 3) for bound in Proportion(8, 10).interval()]
        [0.49, 0.943]
        """
        return wilson_interval(self.count, self.total)

    def to_json(self) -> dict[str, object]:
        """Return it as JSON has it."""
        low, high = self.interval()
        return {"count": self.count, "of": self.total, "share": self.value, "low": low, "high": high}


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

    >>> wilcoxon_signed_rank([1, 2, 3, 4, 5], [0, 0, 0, 0, 0])
    SignedRankResult(pairs=5, above=15.0, below=0.0, p=0.0625)
    >>> wilcoxon_signed_rank([1, 2], [1, 2])
    SignedRankResult(pairs=0, above=0.0, below=0.0, p=1.0)
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


@dataclass(frozen=True, slots=True)
class DistributionSummary:
    """Of some numbers: how many there are, their sum, the largest, mean, median and standard deviation (of all)."""

    count: int
    sum: int
    max: int
    mean: float
    median: float
    deviation: float


def summarize_distribution(counts: Mapping[int, int]) -> DistributionSummary:
    """Return what numbers are like, from how often each occurs.

    >>> summarize_distribution({1: 3, 5: 1})
    DistributionSummary(count=4, sum=8, max=5, mean=2.0, median=1.0, deviation=1.7320508075688772)
    """
    count = sum(counts.values())
    if not count:
        return DistributionSummary(0, 0, 0, 0.0, 0.0, 0.0)
    total = sum(number * times for number, times in counts.items())
    mean = total / count
    variance = sum(times * (number - mean) ** 2 for number, times in counts.items()) / count
    return DistributionSummary(count, total, max(counts), mean, _median(counts, count), sqrt(variance))


def _median(counts: Mapping[int, int], count: int) -> float:
    wanted = {(count - 1) // 2, count // 2}
    found, before = [], 0
    for number in sorted(counts):
        after = before + counts[number]
        found += [number] * sum(before <= place < after for place in wanted)
        before = after
    return sum(found) / len(found)


def gini_coefficient(counts: Mapping[int, int]) -> float:
    """Return how unequal numbers are: 0 if all are the same, towards 1 if one has everything.

    >>> gini_coefficient({3: 10}), round(gini_coefficient({0: 3, 1: 1}), 2)
    (0.0, 0.75)
    """
    if not any(number * times for number, times in counts.items()):
        return 0.0
    # Twice the area below the Lorenz curve, which is straight where numbers are equal.
    area = sum((b[0] - a[0]) * (a[1] + b[1]) for a, b in _segments(lorenz_curve(counts)))
    return max(0.0, 1 - area)


def lorenz_curve(counts: Mapping[int, int]) -> list[tuple[float, float]]:
    """Return the Lorenz curve: what share of the sum the smallest so many have, from (0, 0) to (1, 1)."""
    count = sum(counts.values())
    total = sum(number * times for number, times in counts.items())
    points, people, wealth = [(0.0, 0.0)], 0, 0
    for number in sorted(counts):
        people += counts[number]
        wealth += number * counts[number]
        points.append((people / count, wealth / total if total else 0.0))
    return points


def pareto_break(counts: Mapping[int, int]) -> float:
    """Return the share x of the largest numbers that has the share 1 - x of the sum: 0.3 is written 70/30.

    >>> pareto_break({1: 4, 16: 1})
    0.2
    """
    if not any(number * times for number, times in counts.items()):
        return 0.5
    # From the top: (1 - people, 1 - wealth); the place where both add to one.
    points = [(1 - people, 1 - wealth) for people, wealth in reversed(lorenz_curve(counts))]
    for (x0, y0), (x1, y1) in _segments(points):
        if x1 + y1 >= 1:
            rise = (x1 - x0) + (y1 - y0)
            part = (1 - x0 - y0) / rise if rise else 0.0
            return round(x0 + part * (x1 - x0), 12)
    return 0.5


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """A curve y = a·x^b that was fitted, and how much of the variance (of logarithms) it explains."""

    a: float
    b: float
    r_squared: float


def fit_power_curve(points: Iterable[tuple[float, float]]) -> PowerCurve | None:
    """Return the curve a·x^b through points, by least squares of logarithms; None if fewer than two can be used.

    >>> law = fit_power_curve([(x, 3 * x**0.5) for x in (1, 10, 100)])
    >>> round(law.a, 6), round(law.b, 6), round(law.r_squared, 6)
    (3.0, 0.5, 1.0)
    """
    logs = [(log(x), log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x, mean_y = (sum(each[at] for each in logs) / len(logs) for at in (0, 1))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)
    spread = sum((y - mean_y) ** 2 for _, y in logs)
    rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in logs)
    return PowerCurve(exp(mean_y - slope * mean_x), slope, 1 - rest / spread if spread else 1.0)


@dataclass(frozen=True, slots=True)
class PowerLawFit:
    """Of numbers: how fast large ones become rare.

    exponent: of p(n) ∝ n^-exponent for all n from `least` on. error: its standard error. count: numbers from there on.
    """

    exponent: float
    minimum: int
    error: float
    count: int


def fit_power_law(counts: Mapping[int, int], minimum: int = 1) -> PowerLawFit | None:
    """Return the exponent that makes the numbers most likely (discrete, from `least` on); None if all are the same.

    >>> fit = fit_power_law({1: 6079, 2: 1520, 3: 675, 4: 380, 5: 243, 6: 169, 7: 124, 8: 95, 9: 75, 10: 61})
    >>> 2.0 < fit.exponent < 2.3
    True
    """
    used = {number: times for number, times in counts.items() if number >= minimum}
    count = sum(used.values())
    if len(used) < 2:
        return None
    mean_log = sum(times * log(number) for number, times in used.items()) / count
    logs = [log(n) for n in range(minimum, minimum + _SUMMED_TERMS)]
    low, high = 1.0001, 30.0
    while high - low > _EXPONENT_TOLERANCE:  # the likelihood has one peak: where the slope is 0, found by halving
        middle = (low + high) / 2
        if _mean_log(middle, logs) > mean_log:
            low = middle
        else:
            high = middle
    exponent = (low + high) / 2
    step = 1e-4
    bend = (_mean_log(exponent - step, logs) - _mean_log(exponent + step, logs)) / (2 * step)
    return PowerLawFit(exponent, minimum, 1 / sqrt(count * bend) if bend > 0 else 0.0, count)


_SUMMED_TERMS = 2000  # summed one by one; what is beyond is an integral
_EXPONENT_TOLERANCE = 1e-9


def _mean_log(exponent: float, logs: Sequence[float]) -> float:
    """Return the mean of log n under the law: that of the numbers themselves is the same where it fits best.

    logs: of the first numbers that it is a law of.
    """
    weights = [exp(-exponent * each) for each in logs]
    total, weighted = sum(weights), sum(weight * each for weight, each in zip(weights, logs, strict=True))
    # From the middle between the last term and the next on, which is nearly the sum.
    start, slope = exp(logs[-1]) + 0.5, exponent - 1
    tail = exp(-slope * log(start)) / slope
    return (weighted + tail * (log(start) + 1 / slope)) / (total + tail)


def _segments(points: Sequence[tuple[float, float]]) -> Iterable[tuple[tuple[float, float], tuple[float, float]]]:
    return pairwise(points)
