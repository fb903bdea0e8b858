"""Metrics derived from the counts of an index (growth, inequality, depths, media types), and their tables.

The names of metrics are those of the papers: α, γ, Heaps' K and β and relative cost of the archive profiling paper;
RedQ, the year table and the depth table of the MementoMap paper.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from unlost.report.format import ReportTable
from unlost.research.index_counts import Histogram, IndexCounts, TopPage
from unlost.research.table_export import NumberFormat, ratio
from unlost.statistics import (
    DistributionSummary,
    PowerCurve,
    PowerLawFit,
    fit_power_curve,
    fit_power_law,
    gini_coefficient,
    pareto_break,
    summarize_distribution,
)

if TYPE_CHECKING:
    from collections.abc import Callable


MEDIA_GROUPS = (
    "HTML", "Image", "CSS", "JavaScript", "JSON", "XML", "Text", "PDF", "Font", "Audio", "Video", "Revisit", "Other",
)  # fmt: skip
"""Groups of media types, in the order of the tables."""
STATUS_CLASSES = ("2XX", "3XX", "4XX", "5XX", "Other")
"""Status classes, in the order of the tables."""
_TYPE = re.compile(r"[a-z0-9!#$&^_.+*-]{1,127}/[a-z0-9!#$&^_.+*-]{1,127}(\s*;.*)?", re.IGNORECASE | re.DOTALL)
_STATUS = re.compile(r"[1-5]\d\d", re.ASCII)
_ABSENT_VALUES = ("", "-")
# The first match decides.
_GROUP_PATTERNS = (
    ("Revisit", re.compile(r"warc/revisit")),
    ("HTML", re.compile(r"html")),
    ("CSS", re.compile(r"text/css")),
    ("JavaScript", re.compile(r"javascript|ecmascript")),
    ("JSON", re.compile(r"json")),
    ("Image", re.compile(r"image/")),
    ("PDF", re.compile(r"application/pdf")),
    ("Font", re.compile(r"font")),
    ("Audio", re.compile(r"audio/")),
    ("Video", re.compile(r"video/")),
    ("XML", re.compile(r"xml")),
    ("Text", re.compile(r"text/")),
)

DEEPEST_HOST, DEEPEST_PATH = 10, 11
"""Depths at which deeper hosts and paths are counted as well."""
_MIN_BIAS_FACTOR = 10.0  # times the average of the host; the example of the MementoMap paper has thousands
_MIN_BIAS_SHARE = 0.0001  # of all captures; that example has five times as many

_ESTIMATE_LABELS = {
    "uris": "URI-Rs", "pages": "HxPx keys", "hosts": "hosts", "ips": "IP addresses",
    "busy_pages": "mementos of the most archived URI-Rs", "busy_hosts": "mementos of hosts",
}  # fmt: skip


def media_group(mime: str) -> str:
    """Return the group of a media type.

    >>> media_group("text/html; charset=utf-8"), media_group("image/svg+xml"), media_group("unk")
    ('HTML', 'Image', 'Other')
    >>> media_group("warc/revisit")
    'Revisit'
    """
    lower = mime.lower()
    return next((group for group, pattern in _GROUP_PATTERNS if pattern.search(lower)), "Other")


def status_class(status: str) -> str:
    """Return the class of a status.

    >>> status_class("204"), status_class("-"), status_class("99"), status_class("101")
    ('2XX', 'Other', 'Other', 'Other')
    """
    name = f"{status[0]}XX" if _STATUS.fullmatch(status) else "Other"
    return name if name in STATUS_CLASSES else "Other"


def is_media_type(mime: str) -> bool:
    """Return whether the value is a well-formed media type or absent.

    >>> is_media_type("text/html;charset=x"), is_media_type(""), is_media_type("text"), is_media_type("a/b,c/d")
    (True, True, False, False)
    """
    return mime in _ABSENT_VALUES or bool(_TYPE.fullmatch(mime))


def is_status(status: str) -> bool:
    """Return whether the value is a well-formed status or absent."""
    return status in _ABSENT_VALUES or bool(_STATUS.fullmatch(status))


@dataclass(frozen=True, slots=True)
class YearMetrics:
    """Metrics of a year, as in Table 6 of the MementoMap paper.

    Attributes:
        uris: URI-Rs with captures of the year.
        new: URI-Rs captured for the first time.
        all_uris: URI-Rs captured until the end of the year.
        captures: Captures of the year.
        all_captures: Captures until the end of the year.
        classes: Captures with status 2xx, 3xx, 4xx and 5xx.
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
        """Share of the year's URI-Rs that had been captured before.

        >>> year = YearMetrics("2010", 174786328, 487044797 - 383960128, 487044797, 352019433, 1041191755, (0, 0, 0, 0))
        >>> f"{year.duplicates:.2%} {year.gamma:.2f} {year.all_gamma:.2f}"
        '41.02% 2.01 2.14'
        """
        return ratio(self.uris - self.new, self.uris)

    @property
    def gamma(self) -> float:
        """Captures of the year per URI-R, γ."""
        return ratio(self.captures, self.uris)

    @property
    def all_gamma(self) -> float:
        """Captures per URI-R until the end of the year, γ⁺."""
        return ratio(self.all_captures, self.all_uris)


@dataclass(frozen=True, slots=True)
class DepthMetrics:
    """Metrics of a depth of the key tree, as in Table 8 of the MementoMap paper.

    Attributes:
        prefixes: Distribution of pages per prefix of this depth. A maximum of 0 means unknown (estimates only).
        reduction: RedQ, the share of keys saved if all keys were truncated at this depth.
        parents: Parent nodes with children.
        children: Their children.
    """

    name: str
    prefixes: DistributionSummary
    reduction: float
    parents: int
    children: int

    @property
    def mean_children(self) -> float:
        """Children per parent."""
        return ratio(self.children, self.parents)


@dataclass(frozen=True, slots=True)
class CaptureBias:
    """A URI-R that is archived disproportionately often.

    Attributes:
        times: Its captures relative to the average of the other URI-Rs of its host, or of all URI-Rs if it is the only
            one.
        excess: Captures above that average.
    """

    page: TopPage
    times: float
    excess: float


def key_reduction(keys: int, prefixes: int, total: int) -> float:
    """Return RedQ: the share of `total` keys saved by truncating the `keys` that reach a depth to `prefixes`.

    >>> f"{key_reduction(630309184, 2158880, 1138923169):.5f}"
    '0.55153'
    """
    return ratio(keys - prefixes, total)


def reduction_curve(counts: Mapping[int, int], total: int, max_points: int = 60) -> list[tuple[int, float]]:
    """Return the share of `total` saved by rolling up the n largest nodes into one key each, for growing n.

    The curve has about `max_points` points, spaced geometrically.

    >>> reduction_curve({5: 1, 2: 2, 1: 1}, 10)
    [(1, 0.4), (2, 0.5), (3, 0.6), (4, 0.6)]
    """
    points: list[tuple[int, float]] = []
    nodes, saved = 0, 0
    step = max(1.0, sum(counts.values())) ** (1 / max_points)
    next_point = 1.0
    for number in sorted(counts, reverse=True):
        times = counts[number]
        while nodes < next_point <= nodes + times:
            node = int(next_point)
            points.append((node, ratio(saved + (node - nodes) * (number - 1), total)))
            next_point = max(node + 1, next_point * step)
        nodes += times
        saved += times * (number - 1)
    if nodes and points[-1][0] != nodes:
        points.append((nodes, ratio(saved, total)))
    return points


class IndexMetrics:
    """Metrics of an index, computed lazily from its counts."""

    def __init__(self, counts: IndexCounts) -> None:
        self.counts = counts

    @property
    def alpha(self) -> float:
        """Bytes per line, α: an index of S bytes has about S/α captures.

        >>> IndexMetrics(IndexCounts(lines=3_904_516, text_bytes=2**30)).alpha.__round__()
        275
        """
        return ratio(self.counts.text_bytes, self.counts.lines)

    @property
    def gamma(self) -> float:
        """Captures per URI-R, γ.

        >>> f"{IndexMetrics(IndexCounts(captures=2671653766, uris=962832513)).gamma:.2f}"
        '2.77'
        """
        return ratio(self.counts.captures, self.counts.uris)

    @cached_property
    def growth(self) -> list[tuple[str, int, int]]:
        """Cumulative captures and URI-Rs at the end of each month, `YYYYMM`."""
        points, captures, uris = [], 0, 0
        for month in sorted(self.counts.months):
            more, new = self.counts.months[month]
            captures, uris = captures + more, uris + new
            points.append((month, captures, uris))
        return points

    @cached_property
    def heaps(self) -> PowerCurve | None:
        """Heaps' law of growth over time, URI-Rs = K·captures^β; `a` is K and `b` is β."""
        return fit_power_curve([(captures, uris) for _, captures, uris in self.growth])

    @cached_property
    def captures_summary(self) -> DistributionSummary:
        """Distribution of captures per URI-R."""
        return summarize_distribution(self.counts.captures_by_uri)

    @cached_property
    def gini(self) -> float:
        """Gini coefficient of captures per URI-R."""
        return gini_coefficient(self.counts.captures_by_uri)

    @cached_property
    def pareto(self) -> float:
        """Share x of URI-Rs that has the share 1 - x of the captures."""
        return pareto_break(self.counts.captures_by_uri)

    @cached_property
    def power_law(self) -> PowerLawFit | None:
        """Power law of captures per URI-R."""
        return fit_power_law(self.counts.captures_by_uri)

    @cached_property
    def years(self) -> list[YearMetrics]:
        """Metrics of each year with captures."""
        new: Counter[str] = Counter()
        for month, (_, uris) in self.counts.months.items():
            new[month[:4]] += uris
        rows, captures, uris = [], 0, 0
        for name in sorted(self.counts.years):
            year = self.counts.years[name]
            year_captures = sum(year.classes)
            captures, uris = captures + year_captures, uris + new[name]
            two, three, four, five = year.classes[2:6]
            rows.append(
                YearMetrics(name, year.uris, new[name], uris, year_captures, captures, (two, three, four, five))
            )
        return rows

    @cached_property
    def levels(self) -> dict[str, tuple[Histogram, Histogram]]:
        """For each depth from H1 on, the number of prefixes by pages and of parents by children."""
        domains = list(self.counts.domains.values())
        levels = {name: (dict(level.prefixes), dict(level.children)) for name, level in self.counts.levels.items()}
        # Each IP address is a single label, and so a prefix of depth H1 like a top-level domain.
        ip_prefixes = levels.get("H1", ({}, {}))[0]
        first = dict(Counter(ip_prefixes) + Counter(each.pages for each in domains))
        seconds = dict(Counter(each.children for each in domains if each.children))
        hosts = self.counts.hosts
        levels["H1"] = (first, {sum(first.values()): 1} if first else {})
        for name, children in (("H2", seconds), ("P0", {1: hosts} if hosts else {})):
            levels[name] = (levels.get(name, ({}, {}))[0], children)
        return levels

    @cached_property
    def depths(self) -> list[DepthMetrics]:
        """Metrics of each depth of the key tree that has keys."""
        if self.counts.is_estimated:
            return self._estimated_depths()
        rows = []
        for name, (prefixes, children) in self.levels.items():
            prefix_summary, child_summary = summarize_distribution(prefixes), summarize_distribution(children)
            if not prefix_summary.count:
                continue
            saved = key_reduction(prefix_summary.sum, prefix_summary.count, self.counts.pages)
            rows.append(DepthMetrics(_depth_name(name), prefix_summary, saved, child_summary.count, child_summary.sum))
        return rows

    def _estimated_depths(self) -> list[DepthMetrics]:
        """Return the metrics estimated from sketches and samples."""
        rows = []
        for name, (prefixes, keys, parents, maximum, median, deviation) in self.counts.estimated_depths.items():
            prefix_summary = DistributionSummary(prefixes, keys, maximum or 0, ratio(keys, prefixes), median, deviation)
            saved = max(0.0, key_reduction(keys, prefixes, self.counts.pages))
            rows.append(DepthMetrics(_depth_name(name), prefix_summary, saved, parents, prefixes))
        return rows

    @cached_property
    def groups(self) -> dict[str, dict[str, int]]:
        """Captures by media type group and status class."""
        table = {group: dict.fromkeys(STATUS_CLASSES, 0) for group in MEDIA_GROUPS}
        for (mime, status), count in self.counts.kinds.items():
            table[media_group(mime)][status_class(status)] += count
        table["Other"]["Other"] += self.counts.further_kinds
        return table

    @cached_property
    def types(self) -> Counter[str]:
        """Captures by media type, verbatim."""
        return _sum_by_name((mime, count) for (mime, _), count in self.counts.kinds.items())

    @cached_property
    def statuses(self) -> Counter[str]:
        """Captures by status, verbatim."""
        return _sum_by_name((status, count) for (_, status), count in self.counts.kinds.items())

    @cached_property
    def malformed_types(self) -> Counter[str]:
        """Captures by malformed media type."""
        return Counter({mime: count for mime, count in self.types.items() if not is_media_type(mime)})

    @cached_property
    def malformed_statuses(self) -> Counter[str]:
        """Captures by malformed status."""
        return Counter({status: count for status, count in self.statuses.items() if not is_status(status)})

    @cached_property
    def biases(self) -> list[CaptureBias]:
        """Disproportionately archived URI-Rs among the most archived, by descending excess."""
        biases = []
        for page in self.counts.busy_pages:
            if not page.host_uris:  # estimates only: the sample has no other URI-R of the host
                continue
            others = page.host_uris - 1
            expected = ratio(page.host_captures - page.captures, others) if others else self.gamma
            bias = CaptureBias(page, ratio(page.captures, expected), page.captures - expected)
            if bias.times >= _MIN_BIAS_FACTOR and bias.excess >= max(1, _MIN_BIAS_SHARE * self.counts.captures):
                biases.append(bias)
        return sorted(biases, key=lambda bias: (-bias.excess, bias.page.key))


def _depth_name(level: str) -> str:
    return f"{level}+" if level in (f"H{DEEPEST_HOST}", f"P{DEEPEST_PATH}") else level


def _sum_by_name(pairs: Iterable[tuple[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for name, count in pairs:
        total[name] += count
    return total


def index_tables(metrics: IndexMetrics, *, machine_readable: bool = False) -> dict[str, ReportTable]:
    """Return the non-empty tables by file name.

    Args:
        metrics: Metrics to show.
        machine_readable: Include all rows and write plain numbers.
    """
    show = NumberFormat(machine_readable=machine_readable)
    builders: dict[str, Callable[[IndexMetrics, NumberFormat], ReportTable]] = {
        "summary": _summary_table,
        "tlds": _tlds_table,
        "captures-by-urir": _captures_per_uri_table,
        "most-archived": _top_pages_table,
        "bias": _biases_table,
        "years": _years_table,
        "months": _months_table,
        "types-and-statuses": _groups_table,
        "types": _types_table,
        "statuses": _statuses_table,
        "malformed": _malformed_table,
        "schemes": _schemes_table,
        "paths-and-queries": _path_query_table,
        "hosts": _top_hosts_table,
        "exact-depths": _exact_depths_table,
        "depths": _depths_table,
        "samples": _samples_table,
    }
    tables = {name: build(metrics, show) for name, build in builders.items()}
    return {name: table for name, table in tables.items() if table.rows}


def _summary_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    counts, heaps, power_law = metrics.counts, metrics.heaps, metrics.power_law
    break_point = round(100 * metrics.pareto)
    rows = [
        ("files", show.number(counts.files)),
        ("lines", show.number(counts.lines)),
        ("bytes of text", show.number(counts.text_bytes)),
        ("bytes a line (α)", show.decimal(metrics.alpha)),
        ("mementos (URI-Ms)", show.number(counts.captures)),
        ("URI-Rs", show.number(counts.uris)),
        ("URI-Rs without queries (HxPx keys)", show.number(counts.pages)),
        ("hosts", show.number(counts.hosts)),
        ("hosts that are IP addresses", show.number(counts.ip.hosts)),
        ("mementos for each URI-R (γ)", show.decimal(metrics.gamma)),
        ("first memento", counts.first),
        ("last memento", counts.last),
        ("bytes of records", show.number(counts.record_bytes)),
        ("mementos with a size", show.number(counts.sized)),
        ("mementos with an odd date", show.number(counts.odd_dates)),
        ("rows that are no web pages", show.number(sum(counts.foreign.values()))),
        ("rows left out", show.number(counts.filtered)),
        ("lines that cannot be read", show.number(sum(counts.problems.values()))),
        ("most mementos of a URI-R", show.number(metrics.captures_summary.max)),
        ("median", show.decimal(metrics.captures_summary.median, 0)),
        ("standard deviation", show.decimal(metrics.captures_summary.deviation)),
        ("Gini coefficient", show.decimal(metrics.gini)),
        ("Pareto break point", f"{100 - break_point}/{break_point}"),
    ]
    if heaps:
        rows += [
            ("Heaps' law, K", show.decimal(heaps.a, 3)),
            ("Heaps' law, β", show.decimal(heaps.b, 3)),
            ("Heaps' law, R²", show.decimal(heaps.r_squared, 3)),
        ]
    if power_law:
        rows += [
            ("power law, exponent", show.decimal(power_law.exponent, 3)),
            ("power law, standard error", show.decimal(power_law.error, 4)),
        ]
    for name, (low, high) in counts.errors.items():
        label = _ESTIMATE_LABELS[name]
        if name.startswith("busy"):
            rows.append((f"{label}: too low by at most", show.number(high)))
        else:
            rows.append((f"{label}: estimated, in 95 of 100 cases", f"{show.number(low)} to {show.number(high)}"))
    if counts.is_estimated:
        rows.append(("share of URI-Rs in the sample", show.decimal(counts.sampled, 4)))
        rows.append(("share of HxPx keys in the sample", show.decimal(counts.sampled_pages, 4)))
    note = (
        "Heaps' law: URI-Rs = K · mementos^β, fitted to the months. Power law: distribution of mementos "
        "over URI-Rs. Pareto 70/30: 30 % of URI-Rs have 70 % of mementos."
    )
    return ReportTable("Summary", ("of the index", "value"), rows, note)


def _tlds_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    counts = metrics.counts
    named = dict(counts.domains)
    if counts.ip.hosts:
        named["(IP addresses)"] = counts.ip
    order = sorted(named.items(), key=lambda item: (-item[1].captures, item[0]))
    rows = [
        (
            name, show.number(each.captures), show.percent(each.captures, counts.captures),
            show.number_if_known(each.uris),
            show.number_if_known(each.pages), show.number_if_known(each.hosts),
            show.number_if_known(ratio(each.captures, each.uris), 2),
        )
        for name, each in order
    ]  # fmt: skip
    heads = ("domain", "mementos", "% of all", "URI-Rs", "keys", "hosts", "γ")
    note = "Empty cells: not available for an unsorted index." if counts.is_estimated else ""
    return ReportTable("Top-level domains", heads, show.limit_rows(rows), note)


def _captures_per_uri_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    counts = metrics.counts.captures_by_uri
    rows = [
        (show.number(number), show.number(counts[number]), show.percent(counts[number], metrics.counts.uris))
        for number in sorted(counts)
    ]
    return ReportTable("Mementos per URI-R", ("mementos", "URI-Rs", "% of all"), show.limit_rows(rows, 10))


def _top_pages_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    rows = [
        (each.key, show.number(each.captures), show.percent(each.captures, metrics.counts.captures))
        for each in metrics.counts.busy_pages
    ]
    return ReportTable("Most archived URI-Rs", ("URI-R", "mementos", "% of all"), show.limit_rows(rows, 10))


def _biases_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    rows = [
        (
            each.page.key, show.number(each.page.captures), show.decimal(each.times, 0), show.decimal(each.excess, 0),
            show.number(each.page.host_captures), show.number(each.page.host_uris),
        )
        for each in metrics.biases
    ]  # fmt: skip
    heads = ("URI-R", "mementos", "times the usual", "beyond the usual", "mementos of its host", "URI-Rs of its host")
    note = (
        "URI-Rs with at least ten times the mementos of other URI-Rs of the host, and more than 0.01 % of all mementos "
        "above them: a crawler trap, a mistake in the rules of a crawler, or a page of special interest."
    )
    if metrics.counts.is_estimated:
        unknown = sum(not page.host_uris for page in metrics.counts.busy_pages)
        note += (
            " The mementos of other URI-Rs are estimated from a sample, which has none for "
            f"{unknown} of the most archived."
        )
    return ReportTable("Disproportionately archived URI-Rs", heads, show.limit_rows(rows), note)


def _years_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    def row(year: YearMetrics) -> tuple[str, ...]:
        return (
            year.year, show.number(year.uris), show.number(year.new), show.number(year.all_uris),
            show.number(year.captures), show.number(year.all_captures), show.percent(year.uris - year.new, year.uris),
            show.decimal(year.gamma), show.decimal(year.all_gamma),
            *(show.percent(each, year.captures) for each in year.classes),
        )  # fmt: skip

    heads = (
        "year",
        "URI-R",
        "new",
        "URI-R⁺",
        "URI-M",
        "URI-M⁺",
        "dup. %",
        "γ",
        "γ⁺",
        "2xx %",
        "3xx %",
        "4xx %",
        "5xx %",
    )
    note = (
        "URI-Rs with mementos of the year, new URI-Rs, cumulative URI-Rs (⁺), the same for mementos; share of the "
        "URI-Rs of the year that were archived before (dup.); mementos per URI-R (γ); statuses."
    )
    return ReportTable("Years", heads, [row(year) for year in metrics.years], note)


def _months_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    years: dict[str, list[int]] = {}
    for month, (captures, _) in metrics.counts.months.items():
        years.setdefault(month[:4], [0] * 12)[int(month[4:]) - 1] += captures
    rows = [
        (year, *(show.number(count) for count in years[year]), show.number(sum(years[year]))) for year in sorted(years)
    ]
    heads = ("year", *(f"{month:02}" for month in range(1, 13)), "all")
    return ReportTable("Mementos by month", heads, rows)


def _groups_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    rows = [
        (group, *(show.number(counts[name]) for name in STATUS_CLASSES), show.number(sum(counts.values())))
        for group, counts in metrics.groups.items()
        if any(counts.values())
    ]
    return ReportTable("Types and statuses", ("type", *STATUS_CLASSES, "all"), rows)


def _types_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    return _counts_table("Media types", "type", metrics.types, metrics, show)


def _statuses_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    return _counts_table("Statuses", "status", metrics.statuses, metrics, show)


def _counts_table(
    title: str, head: str, counts: dict[str, int], metrics: IndexMetrics, show: NumberFormat
) -> ReportTable:
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = [
        (name or "(none)", show.number(count), show.percent(count, metrics.counts.captures)) for name, count in order
    ]
    return ReportTable(title, (head, "mementos", "% of all"), show.limit_rows(rows))


def _malformed_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    both = [("type", metrics.malformed_types), ("status", metrics.malformed_statuses)]
    rows = [(what, name, show.number(count)) for what, counts in both for name, count in counts.most_common()]
    note = "Invalid values of the media type and status fields, verbatim."
    return ReportTable(
        "Malformed types and statuses", ("what", "value", "mementos"), show.limit_rows(rows), note, frozenset({0, 1})
    )


def _schemes_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    order = sorted(metrics.counts.foreign.items(), key=lambda item: (-item[1], item[0]))
    rows = [(scheme, show.number(count)) for scheme, count in order]
    return ReportTable(
        "Rows that are not web pages", ("scheme", "rows"), show.limit_rows(rows), "Not counted in other tables."
    )


def _path_query_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    cells = metrics.counts.path_query
    rows = []
    for path in range(6):
        row = cells[path * 6 : path * 6 + 6]
        if any(row):
            name = f"P{path}" if path < 5 else "P5+"
            rows.append((name, *(show.number(count) for count in row), show.number(sum(row))))
    heads = ("path", "Q0", "Q1", "Q2", "Q3", "Q4", "Q5+", "all")
    return ReportTable("Mementos by segments of the path (P) and parameters (Q)", heads, rows)


def _top_hosts_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    rows = [
        (each.host, show.number(each.captures), show.number_if_known(each.uris)) for each in metrics.counts.busy_hosts
    ]
    return ReportTable("Hosts with most mementos", ("host", "mementos", "URI-Rs"), show.limit_rows(rows, 10))


def _exact_depths_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    counts = metrics.counts
    rows = []
    for depth in range(max(DEEPEST_HOST, DEEPEST_PATH) + 1):
        values = [each[depth] for each in (counts.hosts_by_depth, counts.pages_by_host_depth, counts.page_depths)]
        if any(values):
            name = f"{depth}+" if depth == DEEPEST_PATH else str(depth)
            rows.append((name, *(show.number(value) for value in values)))
    heads = ("depth", "hosts", "keys by host", "keys by path")
    return ReportTable("Hosts and keys by exact number of labels or segments", heads, rows)


def _depths_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    rows = [
        (
            each.name, show.number(each.prefixes.count), show.number(each.prefixes.sum),
            show.number_if_known(each.prefixes.max), show.decimal(each.prefixes.mean),
            show.decimal(each.prefixes.median, 1), show.decimal(each.prefixes.deviation),
            show.decimal(each.reduction, 5), show.number(each.parents), show.number(each.children),
            show.decimal(each.mean_children),
        )
        for each in metrics.depths
    ]  # fmt: skip
    heads = (
        "depth",
        "count",
        "sum",
        "max",
        "mean",
        "median",
        "deviation",
        "RedQ",
        "parents",
        "children",
        "mean children",
    )
    note = (
        "Prefixes of the keys at each depth of hosts (H) and paths (P), the keys below them, and the share of all keys "
        "saved by truncating them at this depth (RedQ)."
    )
    if metrics.counts.is_estimated:
        note += (
            " All values are estimated: counts by sketches (0.8 % standard error), medians from a sample of 1,024 "
            "prefixes of each depth or more (1.6 % of ranks), maxima and deviations from a sample of 32,768 keys or "
            "more (maxima with fewer than 25 keys in the sample are omitted)."
        )
    return ReportTable("Depths of the tree of keys", heads, rows, note)


def _samples_table(metrics: IndexMetrics, show: NumberFormat) -> ReportTable:
    rows = [(date, uri) for date, uri in metrics.counts.samples]
    note = "A reproducible random sample of HTML mementos with status 200."
    return ReportTable("Sample of mementos", ("date", "address"), show.limit_rows(rows), note, frozenset({0, 1}))
