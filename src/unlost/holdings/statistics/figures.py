"""All numbers that are told of an index, from what was counted in it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from unlost.holdings.statistics.fits import (
    PowerCurve,
    PowerLawFit,
    DistributionSummary,
    fit_power_curve,
    fit_power_law,
    gini_coefficient,
    pareto_break,
    summarize_distribution,
)
from unlost.holdings.statistics.kinds import (
    STATUS_CLASSES,
    MEDIA_GROUPS,
    status_class,
    media_group,
    is_status,
    is_media_type,
)
from unlost.holdings.statistics.numbers import ratio
from unlost.holdings.statistics.partial import TopPage, Histogram, IndexCounts

DEEPEST_HOST, DEEPEST_PATH = 10, 11
"""Deeper ones are counted with these."""

_MIN_BIAS_FACTOR = 10.0  # times what others of its host have: the second paper's example has thousands
_MIN_BIAS_SHARE = 0.0001  # of all captures: that example has five times as many


@dataclass(frozen=True, slots=True)
class YearMetrics:
    """One year, as the second paper's Table 6 has it.

    uris, captures: with captures in it, and these. new: URI-Rs that were never captured before. all_uris, all_captures:
    to its end. classes: captures with 2xx, 3xx, 4xx, 5xx.
    """

    year: str
    uris: int
    new: int
    all_uris: int
    captures: int
    all_captures: int
    classes: tuple[int, int, int, int]

    @property
    def duplicates(self) -> float:
        """The share of the year's URI-Rs that had been captured before.

        >>> year = YearFigures("2010", 174786328, 487044797 - 383960128, 487044797, 352019433, 1041191755, (0, 0, 0, 0))
        >>> f"{year.duplicates:.2%} {year.gamma:.2f} {year.all_gamma:.2f}"
        '41.02% 2.01 2.14'
        """
        return ratio(self.uris - self.new, self.uris)

    @property
    def gamma(self) -> float:
        """Captures for each of the year's URI-Rs."""
        return ratio(self.captures, self.uris)

    @property
    def all_gamma(self) -> float:
        """The same to the end of the year: γ⁺."""
        return ratio(self.all_captures, self.all_uris)


@dataclass(frozen=True, slots=True)
class DepthMetrics:
    """One depth of the tree of keys, as the second paper's Table 8 has it.

    prefixes: pages below each prefix of this depth; of estimates, the most may be 0, which is unknown. reduction: RedQ,
    the share of all keys that would be saved if all were cut at this depth. parents, children: nodes above that have
    any, and how many.
    """

    name: str
    prefixes: DistributionSummary
    reduction: float
    parents: int
    children: int

    @property
    def mean_children(self) -> float:
        """Children for each parent."""
        return ratio(self.children, self.parents)


@dataclass(frozen=True, slots=True)
class CaptureBias:
    """A URI-R that was archived out of proportion.

    times: as many captures as other URI-Rs of its host have on average (of all hosts, where it is the only one).
    excess: captures beyond that.
    """

    page: TopPage
    times: float
    excess: float


def key_reduction(keys: int, prefixes: int, total: int) -> float:
    """Return RedQ: what is saved of all keys if those that reach a depth are cut there.

    >>> f"{reduction(630309184, 2158880, 1138923169):.5f}"
    '0.55153'
    """
    return ratio(keys - prefixes, total)


def reduction_curve(counts: Mapping[int, int], total: int, max_points: int = 60) -> list[tuple[int, float]]:
    """Return how much of `total` is saved if the largest so many are rolled up into one each, largest first.

    At most about `most` points: numbers of nodes that grow by a constant factor.

    >>> reduction_curve({5: 1, 2: 2, 1: 1}, 10)
    [(1, 0.4), (2, 0.5), (3, 0.6), (4, 0.6)]
    """
    points: list[tuple[int, float]] = []
    nodes, saved = 0, 0
    step = max(1.0, sum(counts.values())) ** (1 / max_points)
    wanted = 1.0
    for number in sorted(counts, reverse=True):
        times = counts[number]
        while nodes < wanted <= nodes + times:
            at = int(wanted)
            points.append((at, ratio(saved + (at - nodes) * (number - 1), total)))
            wanted = max(at + 1, wanted * step)
        nodes += times
        saved += times * (number - 1)
    if nodes and points[-1][0] != nodes:
        points.append((nodes, ratio(saved, total)))
    return points


class IndexMetrics:
    """What is told of an index. Everything follows from the numbers of a part, or of all parts merged."""

    def __init__(self, counted: IndexCounts) -> None:
        self.counts = counted

    @property
    def alpha(self) -> float:
        """Bytes a line, α: an index of S bytes has about S/α captures.

        >>> Figures(Partial(lines=3_904_516, text_bytes=2**30)).alpha.__round__()
        275
        """
        return ratio(self.counts.text_bytes, self.counts.lines)

    @property
    def gamma(self) -> float:
        """Captures for each URI-R, γ.

        >>> f"{Figures(Partial(captures=2671653766, uris=962832513)).gamma:.2f}"
        '2.77'
        """
        return ratio(self.counts.captures, self.counts.uris)

    @cached_property
    def growth(self) -> list[tuple[str, int, int]]:
        """By month, `YYYYMM`: captures and URI-Rs that were there at its end."""
        points, captures, uris = [], 0, 0
        for month in sorted(self.counts.months):
            more, new = self.counts.months[month]
            captures, uris = captures + more, uris + new
            points.append((month, captures, uris))
        return points

    @cached_property
    def heaps(self) -> PowerCurve | None:
        """Heaps' law of growth over time: URI-Rs = K·captures^β; `a` is K and `b` is β."""
        return fit_power_curve([(captures, uris) for _, captures, uris in self.growth])

    @cached_property
    def captures_summary(self) -> DistributionSummary:
        """Captures of URI-Rs."""
        return summarize_distribution(self.counts.captures_by_uri)

    @cached_property
    def gini(self) -> float:
        """How unequally captures are spread over URI-Rs."""
        return gini_coefficient(self.counts.captures_by_uri)

    @cached_property
    def pareto(self) -> float:
        """The share x of URI-Rs that has 1 - x of the captures."""
        return pareto_break(self.counts.captures_by_uri)

    @cached_property
    def power_law(self) -> PowerLawFit | None:
        """How fast URI-Rs with many captures become rare."""
        return fit_power_law(self.counts.captures_by_uri)

    @cached_property
    def years(self) -> list[YearMetrics]:
        """Every year with captures."""
        new: Counter[str] = Counter()
        for month, (_, uris) in self.counts.months.items():
            new[month[:4]] += uris
        rows, captures, uris = [], 0, 0
        for name in sorted(self.counts.years):
            year = self.counts.years[name]
            here = sum(year.classes)
            captures, uris = captures + here, uris + new[name]
            two, three, four, five = year.classes[2:6]
            rows.append(YearMetrics(name, year.uris, new[name], uris, here, captures, (two, three, four, five)))
        return rows

    @cached_property
    def levels(self) -> dict[str, tuple[Histogram, Histogram]]:
        """Of each depth, from H1 on: prefixes by pages, and parents by children."""
        domains = list(self.counts.domains.values())
        found = {name: (dict(level.prefixes), dict(level.children)) for name, level in self.counts.levels.items()}
        # Every IP address is a label of its own, and so a prefix of this depth beside the domains.
        addresses = found.get("H1", ({}, {}))[0]
        first = dict(Counter(addresses) + Counter(each.pages for each in domains))
        seconds = dict(Counter(each.children for each in domains if each.children))
        hosts = self.counts.hosts
        found["H1"] = (first, {sum(first.values()): 1} if first else {})
        for name, children in (("H2", seconds), ("P0", {1: hosts} if hosts else {})):
            found[name] = (found.get(name, ({}, {}))[0], children)
        return found

    @cached_property
    def depths(self) -> list[DepthMetrics]:
        """Every depth of the tree that has keys."""
        if self.counts.is_estimated:
            return self._estimated_depths()
        rows = []
        for name, (prefixes, children) in self.levels.items():
            about, below = summarize_distribution(prefixes), summarize_distribution(children)
            if not about.count:
                continue
            saved = key_reduction(about.sum, about.count, self.counts.pages)
            rows.append(DepthMetrics(_depth_name(name), about, saved, below.count, below.sum))
        return rows

    def _estimated_depths(self) -> list[DepthMetrics]:
        """Return what sketches and samples tell of depths."""
        rows = []
        for name, (prefixes, keys, parents, most, median, deviation) in self.counts.estimated_depths.items():
            about = DistributionSummary(prefixes, keys, most or 0, ratio(keys, prefixes), median, deviation)
            saved = max(0.0, key_reduction(keys, prefixes, self.counts.pages))
            rows.append(DepthMetrics(_depth_name(name), about, saved, parents, prefixes))
        return rows

    @cached_property
    def groups(self) -> dict[str, dict[str, int]]:
        """Captures by group of media types and class of status."""
        table = {group: dict.fromkeys(STATUS_CLASSES, 0) for group in MEDIA_GROUPS}
        for (mime, status), count in self.counts.kinds.items():
            table[media_group(mime)][status_class(status)] += count
        table["Other"]["Other"] += self.counts.further_kinds
        return table

    @cached_property
    def types(self) -> Counter[str]:
        """Captures by media type as it stands."""
        return _sum_by_name((mime, count) for (mime, _), count in self.counts.kinds.items())

    @cached_property
    def statuses(self) -> Counter[str]:
        """Captures by status as it stands."""
        return _sum_by_name((status, count) for (_, status), count in self.counts.kinds.items())

    @cached_property
    def malformed_types(self) -> Counter[str]:
        """Those that are no media types."""
        return Counter({mime: count for mime, count in self.types.items() if not is_media_type(mime)})

    @cached_property
    def malformed_statuses(self) -> Counter[str]:
        """Those that are no statuses."""
        return Counter({status: count for status, count in self.statuses.items() if not is_status(status)})

    @cached_property
    def biases(self) -> list[CaptureBias]:
        """URI-Rs that were archived out of proportion, worst first, of those that have most captures."""
        found = []
        for page in self.counts.busy_pages:
            if not page.host_uris:  # of estimates: no other URI-R of its host is in the sample
                continue
            others = page.host_uris - 1
            usual = ratio(page.host_captures - page.captures, others) if others else self.gamma
            bias = CaptureBias(page, ratio(page.captures, usual), page.captures - usual)
            if bias.times >= _MIN_BIAS_FACTOR and bias.excess >= max(1, _MIN_BIAS_SHARE * self.counts.captures):
                found.append(bias)
        return sorted(found, key=lambda bias: (-bias.excess, bias.page.key))


def _depth_name(level: str) -> str:
    return f"{level}+" if level in (f"H{DEEPEST_HOST}", f"P{DEEPEST_PATH}") else level


def _sum_by_name(pairs: Iterable[tuple[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for name, count in pairs:
        total[name] += count
    return total
