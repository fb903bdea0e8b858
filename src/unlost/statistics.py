"""Statistical functions: Wilson intervals, summaries, inequality, power laws.

Pure Python on frequency tables and short sequences, so that neither numpy nor scipy is a dependency.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log, sqrt

Z95 = 1.959964
"""97.5 % quantile of the standard normal distribution, for two-sided 95 % intervals."""


_SUMMED_TERMS = 2000  # of the zeta function, summed exactly; an integral approximates the remaining terms
_EXPONENT_TOLERANCE = 1e-9


def wilson_interval(hits: int, sampled: int, total: int | None = None) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a proportion.

    Args:
        hits: Successes in the sample.
        sampled: Sample size, drawn at random without replacement. An empty sample gives 0 to 1.
        total: Population size, for the finite population correction; None for an infinite population. If the sample is
            the population, the interval is the proportion itself.

    Raises:
        ValueError: Not `0 <= hits <= sampled <= total`.

    >>> [round(end, 4) for end in wilson_interval(8, 10)]
    [0.4902, 0.9433]
    >>> wilson_interval(8, 10, 10), wilson_interval(0, 0, 10)
    ((0.8, 0.8), (0.0, 1.0))
    """
    if not 0 <= hits <= sampled or (total is not None and sampled > total):
        raise ValueError(f"expected 0 <= {hits} <= {sampled} <= {total}")
    if sampled == 0:
        return (0.0, 0.0) if total == 0 else (0.0, 1.0)
    proportion = hits / sampled
    # Finite population correction of the variance.
    correction = 1.0 if total is None else (total - sampled) / (total - 1) if total > 1 else 0.0
    if correction == 0:
        return proportion, proportion
    z2_n = Z95 * Z95 / sampled * correction
    center = (proportion + z2_n / 2) / (1 + z2_n)
    margin = math.sqrt(z2_n * proportion * (1 - proportion) + z2_n * z2_n / 4) / (1 + z2_n)
    # The sampled part of the population is known exactly, which bounds the interval.
    lowest, highest = (0.0, 1.0) if total is None else (hits / total, (total - sampled + hits) / total)
    return max(lowest, center - margin), min(highest, center + margin)


@dataclass(frozen=True, slots=True)
class Proportion:
    """A count out of a total, with its 95 % Wilson interval."""

    count: int
    total: int

    @property
    def value(self) -> float | None:
        """The proportion; None if the total is 0."""
        return self.count / self.total if self.total else None

    def interval(self) -> tuple[float, float]:
        """Return the bounds of the 95 % Wilson interval.

        >>> [round(bound, 3) for bound in Proportion(8, 10).interval()]
        [0.49, 0.943]
        """
        return wilson_interval(self.count, self.total)

    def to_json(self) -> dict[str, object]:
        """Return the JSON representation."""
        low, high = self.interval()
        return {"count": self.count, "of": self.total, "share": self.value, "low": low, "high": high}


@dataclass(frozen=True, slots=True)
class DistributionSummary:
    """Summary of a distribution. The standard deviation is that of the population."""

    count: int
    sum: int
    max: int
    mean: float
    median: float
    deviation: float


def summarize_distribution(counts: Mapping[int, int]) -> DistributionSummary:
    """Return the summary of a frequency table.

    Args:
        counts: Frequency of each value.

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
    middle = {(count - 1) // 2, count // 2}
    values, before = [], 0
    for number in sorted(counts):
        after = before + counts[number]
        values += [number] * sum(before <= index < after for index in middle)
        before = after
    return sum(values) / len(values)


def gini_coefficient(counts: Mapping[int, int]) -> float:
    """Return the Gini coefficient of a frequency table: 0 if all values are equal, near 1 if one has most of the sum.

    >>> gini_coefficient({3: 10}), round(gini_coefficient({0: 3, 1: 1}), 2)
    (0.0, 0.75)
    """
    if not any(number * times for number, times in counts.items()):
        return 0.0
    # Twice the area under the Lorenz curve (trapezoids: the curve is piecewise linear).
    area = sum((b[0] - a[0]) * (a[1] + b[1]) for a, b in _segments(lorenz_curve(counts)))
    return max(0.0, 1 - area)


def lorenz_curve(counts: Mapping[int, int]) -> list[tuple[float, float]]:
    """Return the Lorenz curve of a frequency table, from (0, 0) to (1, 1), smallest values first."""
    count = sum(counts.values())
    total = sum(number * times for number, times in counts.items())
    points, population, cumulative = [(0.0, 0.0)], 0, 0
    for number in sorted(counts):
        population += counts[number]
        cumulative += number * counts[number]
        points.append((population / count, cumulative / total if total else 0.0))
    return points


def pareto_break(counts: Mapping[int, int]) -> float:
    """Return the Pareto break point: the share x of the largest values that has the share 1 - x of the sum.

    0.2 means 80/20.

    >>> pareto_break({1: 4, 16: 1})
    0.2
    """
    if not any(number * times for number, times in counts.items()):
        return 0.5
    # The complement of the Lorenz curve, from the largest value: find the point where both shares add up to one.
    points = [(1 - population, 1 - cumulative) for population, cumulative in reversed(lorenz_curve(counts))]
    for (x0, y0), (x1, y1) in _segments(points):
        if x1 + y1 >= 1:
            rise = (x1 - x0) + (y1 - y0)
            part = (1 - x0 - y0) / rise if rise else 0.0
            return round(x0 + part * (x1 - x0), 12)
    return 0.5


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """A fitted curve y = a·x^b. `r_squared` is the coefficient of determination of the logarithms."""

    a: float
    b: float
    r_squared: float


def fit_power_curve(points: Iterable[tuple[float, float]]) -> PowerCurve | None:
    """Fit a·x^b by least squares of the logarithms, as for Heaps' law; None for fewer than two different positive x.

    >>> curve = fit_power_curve([(x, 3 * x**0.5) for x in (1, 10, 100)])
    >>> round(curve.a, 6), round(curve.b, 6), round(curve.r_squared, 6)
    (3.0, 0.5, 1.0)
    """
    logs = [(log(x), log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x, mean_y = (sum(each[at] for each in logs) / len(logs) for at in (0, 1))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)
    spread = sum((y - mean_y) ** 2 for _, y in logs)
    residual = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in logs)
    return PowerCurve(exp(mean_y - slope * mean_x), slope, 1 - residual / spread if spread else 1.0)


@dataclass(frozen=True, slots=True)
class PowerLawFit:
    """A fitted discrete power law p(n) ∝ n^-exponent.

    Attributes:
        exponent: Maximum-likelihood estimate.
        minimum: Smallest value of the fit.
        error: Standard error of the exponent.
        count: Number of values of at least `minimum`.
    """

    exponent: float
    minimum: int
    error: float
    count: int


def fit_power_law(counts: Mapping[int, int], minimum: int = 1) -> PowerLawFit | None:
    """Fit a discrete power law by maximum likelihood; None for fewer than two different values of at least `minimum`.

    Args:
        counts: Frequency of each value.
        minimum: Smallest value to include.

    >>> fit = fit_power_law({1: 6079, 2: 1520, 3: 675, 4: 380, 5: 243, 6: 169, 7: 124, 8: 95, 9: 75, 10: 61})
    >>> 2.0 < fit.exponent < 2.3
    True
    """
    included = {number: times for number, times in counts.items() if number >= minimum}
    count = sum(included.values())
    if len(included) < 2:
        return None
    mean_log = sum(times * log(number) for number, times in included.items()) / count
    logs = [log(n) for n in range(minimum, minimum + _SUMMED_TERMS)]
    low, high = 1.0001, 30.0
    while high - low > _EXPONENT_TOLERANCE:  # bisection: the likelihood is unimodal
        middle = (low + high) / 2
        if _mean_log(middle, logs) > mean_log:
            low = middle
        else:
            high = middle
    exponent = (low + high) / 2
    step = 1e-4
    curvature = (_mean_log(exponent - step, logs) - _mean_log(exponent + step, logs)) / (2 * step)
    return PowerLawFit(exponent, minimum, 1 / sqrt(count * curvature) if curvature > 0 else 0.0, count)


def _mean_log(exponent: float, logs: Sequence[float]) -> float:
    """Return the expected value of log n under the power law. At the maximum likelihood it equals the sample mean.

    Args:
        exponent: Exponent of the law.
        logs: Logarithms of the first `_SUMMED_TERMS` values.
    """
    weights = [exp(-exponent * each) for each in logs]
    total, weighted = sum(weights), sum(weight * each for weight, each in zip(weights, logs, strict=True))
    # Integral from half a step after the last summed term (midpoint rule).
    start, slope = exp(logs[-1]) + 0.5, exponent - 1
    tail = exp(-slope * log(start)) / slope
    return (weighted + tail * (log(start) + 1 / slope)) / (total + tail)


def _segments(points: Sequence[tuple[float, float]]) -> Iterable[tuple[tuple[float, float], tuple[float, float]]]:
    return pairwise(points)
