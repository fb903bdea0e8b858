"""The statistics of an index as tables, for people, CSV files and pages."""

from typing import TYPE_CHECKING

from unlost.holdings.statistics.figures import DEEPEST_HOST, DEEPEST_PATH, IndexMetrics, YearMetrics
from unlost.holdings.statistics.kinds import STATUS_CLASSES
from unlost.holdings.statistics.numbers import NumberFormat, ratio
from unlost.shown.table import ReportTable

if TYPE_CHECKING:
    from collections.abc import Callable

_ESTIMATE_LABELS = {
    "uris": "URI-Rs", "pages": "HxPx keys", "hosts": "hosts", "ips": "IP addresses",
    "busy_pages": "mementos of the most archived URI-Rs", "busy_hosts": "mementos of hosts",
}  # fmt: skip


def index_tables(figures: IndexMetrics, *, machine_readable: bool = False) -> dict[str, ReportTable]:
    """Return all tables that have rows, by the names that their files get.

    whole: with all rows, for programs; numbers are then without commas.
    """
    show = NumberFormat(machine_readable=machine_readable)
    made: dict[str, Callable[[IndexMetrics, NumberFormat], ReportTable]] = {
        "summary": _summary, "tlds": _tlds, "captures-by-urir": _spread, "most-archived": _busy, "bias": _biases,
        "years": _years, "months": _months, "types-and-statuses": _groups, "types": _types, "statuses": _statuses,
        "malformed": _malformed, "schemes": _schemes, "paths-and-queries": _path_query, "hosts": _hosts,
        "exact-depths": _exact_depths, "depths": _depths, "samples": _samples,
    }  # fmt: skip
    found = {name: make(figures, show) for name, make in made.items()}
    return {name: table for name, table in found.items() if table.rows}


def _summary(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    counted, law, tail = figures.counts, figures.heaps, figures.power_law
    break_point = round(100 * figures.pareto)
    rows = [
        ("files", show.number(counted.files)),
        ("lines", show.number(counted.lines)),
        ("bytes of text", show.number(counted.text_bytes)),
        ("bytes a line (α)", show.decimal(figures.alpha)),
        ("mementos (URI-Ms)", show.number(counted.captures)),
        ("URI-Rs", show.number(counted.uris)),
        ("URI-Rs without queries (HxPx keys)", show.number(counted.pages)),
        ("hosts", show.number(counted.hosts)),
        ("hosts that are IP addresses", show.number(counted.ip.hosts)),
        ("mementos for each URI-R (γ)", show.decimal(figures.gamma)),
        ("first memento", counted.first),
        ("last memento", counted.last),
        ("bytes of records", show.number(counted.record_bytes)),
        ("mementos with a size", show.number(counted.sized)),
        ("mementos with an odd date", show.number(counted.odd_dates)),
        ("rows that are no web pages", show.number(sum(counted.foreign.values()))),
        ("rows left out", show.number(counted.filtered)),
        ("lines that cannot be read", show.number(sum(counted.problems.values()))),
        ("most mementos of a URI-R", show.number(figures.captures_summary.max)),
        ("median", show.decimal(figures.captures_summary.median, 0)),
        ("standard deviation", show.decimal(figures.captures_summary.deviation)),
        ("Gini coefficient", show.decimal(figures.gini)),
        ("Pareto break point", f"{100 - break_point}/{break_point}"),
    ]
    if law:
        rows += [
            ("Heaps' law, K", show.decimal(law.a, 3)),
            ("Heaps' law, β", show.decimal(law.b, 3)),
            ("Heaps' law, R²", show.decimal(law.r_squared, 3)),
        ]
    if tail:
        rows += [
            ("power law, exponent", show.decimal(tail.exponent, 3)),
            ("power law, standard error", show.decimal(tail.error, 4)),
        ]
    for name, (low, high) in counted.errors.items():
        what = _ESTIMATE_LABELS[name]
        if name.startswith("busy"):
            rows.append((f"{what}: too low by at most", show.number(high)))
        else:
            rows.append((f"{what}: estimated, in 95 of 100 cases", f"{show.number(low)} to {show.number(high)}"))
    if counted.is_estimated:
        rows.append(("share of URI-Rs in the sample", show.decimal(counted.sampled, 4)))
        rows.append(("share of HxPx keys in the sample", show.decimal(counted.sampled_pages, 4)))
    note = (
        "Heaps' law: URI-Rs = K · mementos^β, fitted to the months. Power law: how fast URI-Rs with many mementos "
        "become rare. Pareto 70/30: 30 % of URI-Rs have 70 % of mementos."
    )
    return ReportTable("Summary", ("of the index", "value"), rows, note)


def _tlds(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    counted = figures.counts
    named = dict(counted.domains)
    if counted.ip.hosts:
        named["(IP addresses)"] = counted.ip
    order = sorted(named.items(), key=lambda item: (-item[1].captures, item[0]))
    rows = [
        (
            name, show.number(each.captures), show.percent(each.captures, counted.captures), show.number_if_known(each.uris),
            show.number_if_known(each.pages), show.number_if_known(each.hosts), show.number_if_known(ratio(each.captures, each.uris), 2),
        )
        for name, each in order
    ]  # fmt: skip
    heads = ("domain", "mementos", "% of all", "URI-Rs", "keys", "hosts", "γ")
    note = "What is empty cannot be told of an index in no order." if counted.is_estimated else ""
    return ReportTable("Top-level domains", heads, show.limit_rows(rows), note)


def _spread(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    counts = figures.counts.captures_by_uri
    rows = [
        (show.number(number), show.number(counts[number]), show.percent(counts[number], figures.counts.uris))
        for number in sorted(counts)
    ]
    return ReportTable("Mementos for each URI-R", ("mementos", "URI-Rs", "% of all"), show.limit_rows(rows, 10))


def _busy(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    rows = [
        (each.key, show.number(each.captures), show.percent(each.captures, figures.counts.captures))
        for each in figures.counts.busy_pages
    ]
    return ReportTable("The most archived URI-Rs", ("URI-R", "mementos", "% of all"), show.limit_rows(rows, 10))


def _biases(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    rows = [
        (
            each.page.key, show.number(each.page.captures), show.decimal(each.times, 0), show.decimal(each.excess, 0),
            show.number(each.page.host_captures), show.number(each.page.host_uris),
        )
        for each in figures.biases
    ]  # fmt: skip
    heads = ("URI-R", "mementos", "times the usual", "beyond the usual", "mementos of its host", "URI-Rs of its host")
    note = (
        "Ten times as often as other URI-Rs of the same host, or more, and by more than 0.01 % of all mementos: a "
        "trap, a mistake in the rules of a crawler, or a page that somebody cares for."
    )
    if figures.counts.is_estimated:
        unknown = sum(not page.host_uris for page in figures.counts.busy_pages)
        note += (
            f" What others of a host have is estimated from a sample; of {unknown} of the most archived it has none."
        )
    return ReportTable("Archived out of proportion", heads, show.limit_rows(rows), note)


def _years(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
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
        "URI-Rs with mementos of the year, those of them that were never archived before, all to its end (⁺), the same "
        "for mementos; the share of the year's URI-Rs that had been archived before; mementos for each URI-R; statuses."
    )
    return ReportTable("Years", heads, [row(year) for year in figures.years], note)


def _months(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    years: dict[str, list[int]] = {}
    for month, (captures, _) in figures.counts.months.items():
        years.setdefault(month[:4], [0] * 12)[int(month[4:]) - 1] += captures
    rows = [
        (year, *(show.number(count) for count in years[year]), show.number(sum(years[year]))) for year in sorted(years)
    ]
    heads = ("year", *(f"{month:02}" for month in range(1, 13)), "all")
    return ReportTable("Mementos by month", heads, rows)


def _groups(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    rows = [
        (group, *(show.number(counts[name]) for name in STATUS_CLASSES), show.number(sum(counts.values())))
        for group, counts in figures.groups.items()
        if any(counts.values())
    ]
    return ReportTable("Types and statuses", ("type", *STATUS_CLASSES, "all"), rows)


def _types(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    return _counts_table("Media types", "type", figures.types, figures, show)


def _statuses(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    return _counts_table("Statuses", "status", figures.statuses, figures, show)


def _counts_table(
    title: str, head: str, counts: dict[str, int], figures: IndexMetrics, show: NumberFormat
) -> ReportTable:
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = [
        (name or "(none)", show.number(count), show.percent(count, figures.counts.captures)) for name, count in order
    ]
    return ReportTable(title, (head, "mementos", "% of all"), show.limit_rows(rows))


def _malformed(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    both = [("type", figures.malformed_types), ("status", figures.malformed_statuses)]
    rows = [(what, name, show.number(count)) for what, counts in both for name, count in counts.most_common()]
    note = "What stands in the place of a media type or status and is none, as it stands."
    return ReportTable(
        "Malformed types and statuses", ("what", "value", "mementos"), show.limit_rows(rows), note, frozenset({0, 1})
    )


def _schemes(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    order = sorted(figures.counts.foreign.items(), key=lambda item: (-item[1], item[0]))
    rows = [(scheme, show.number(count)) for scheme, count in order]
    return ReportTable(
        "Rows that are no web pages", ("scheme", "rows"), show.limit_rows(rows), "They are in no other table."
    )


def _path_query(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    cells = figures.counts.path_query
    rows = []
    for path in range(6):
        row = cells[path * 6 : path * 6 + 6]
        if any(row):
            name = f"P{path}" if path < 5 else "P5+"
            rows.append((name, *(show.number(count) for count in row), show.number(sum(row))))
    heads = ("path", "Q0", "Q1", "Q2", "Q3", "Q4", "Q5+", "all")
    return ReportTable("Mementos by segments of the path (P) and parameters (Q)", heads, rows)


def _hosts(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    rows = [
        (each.host, show.number(each.captures), show.number_if_known(each.uris)) for each in figures.counts.busy_hosts
    ]
    return ReportTable("Hosts with most mementos", ("host", "mementos", "URI-Rs"), show.limit_rows(rows, 10))


def _exact_depths(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    counted = figures.counts
    rows = []
    for depth in range(max(DEEPEST_HOST, DEEPEST_PATH) + 1):
        values = [each[depth] for each in (counted.hosts_by_depth, counted.pages_by_host_depth, counted.page_depths)]
        if any(values):
            name = f"{depth}+" if depth == DEEPEST_PATH else str(depth)
            rows.append((name, *(show.number(value) for value in values)))
    heads = ("depth", "hosts", "keys by host", "keys by path")
    return ReportTable("Hosts and keys with exactly so many labels or segments", heads, rows)


def _depths(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    rows = [
        (
            each.name, show.number(each.prefixes.count), show.number(each.prefixes.sum),
            show.number_if_known(each.prefixes.max), show.decimal(each.prefixes.mean),
            show.decimal(each.prefixes.median, 1), show.decimal(each.prefixes.deviation),
            show.decimal(each.reduction, 5), show.number(each.parents), show.number(each.children),
            show.decimal(each.mean_children),
        )
        for each in figures.depths
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
        "Prefixes of the keys at each depth of hosts (H) and paths (P), the keys below them, and what of all keys "
        "would be saved if they were cut there (RedQ)."
    )
    if figures.counts.is_estimated:
        note += (
            " All of it is estimated: counts by sketches (0.8 % standard error), medians from a sample of 1,024 "
            "prefixes of each depth or more (1.6 % of ranks), maxima and deviations from a sample of 32,768 keys or "
            "more (a maximum of which these have fewer than 25 is not told)."
        )
    return ReportTable("Depths of the tree of keys", heads, rows, note)


def _samples(figures: IndexMetrics, show: NumberFormat) -> ReportTable:
    rows = [(date, uri) for date, uri in figures.counts.samples]
    note = "Drawn by lot from those with status 200 and HTML, the same ones every time."
    return ReportTable("Some mementos", ("date", "address"), show.limit_rows(rows), note, frozenset({0, 1}))
