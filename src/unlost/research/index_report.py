"""Report on an index: charts, JSON, CSV files and an HTML page."""

from dataclasses import dataclass
from json import dumps
from pathlib import Path

from unlost.report.charts import STYLE, ChartAxis, ChartSeries, bar_chart, line_chart
from unlost.report.format import ReportTable
from unlost.report.html_templates import make_template_environment
from unlost.research.index_metrics import IndexMetrics, index_tables, reduction_curve
from unlost.research.table_export import table_to_csv, table_to_json, write_text_files
from unlost.statistics import lorenz_curve

_MAX_POINTS = 300  # of a curve; more points make no visible difference


@dataclass(frozen=True, slots=True)
class IndexChart:
    """A chart with its caption."""

    svg: str
    caption: str


def draw_index_charts(metrics: IndexMetrics) -> dict[str, IndexChart]:
    """Return the non-empty charts by name."""
    charts = {
        "growth": _growth_chart(metrics), "heaps": _heaps_chart(metrics), "years": _years_chart(metrics),
        "popularity": _popularity_chart(metrics),
        "power-law": _power_law_chart(metrics), "domains": _domains_chart(metrics),
        **{f"reduction-{kind}": _reduction_chart(metrics, kind) for kind in ("H", "P")},
        **{f"children-{kind}": _children_chart(metrics, kind) for kind in ("H", "P")},
    }  # fmt: skip
    return {name: chart for name, chart in charts.items() if chart.svg}


def _growth_chart(metrics: IndexMetrics) -> IndexChart:
    points = [(int(month[:4]) + (int(month[4:])) / 12, captures, uris) for month, captures, uris in metrics.growth]
    series = [
        ChartSeries("mementos", [(at, captures) for at, captures, _ in points]),
        ChartSeries("URI-Rs", [(at, uris) for at, _, uris in points]),
    ]
    first = min((at for at, _, _ in points), default=0.0)
    shifted = [ChartSeries(each.name, [(at - int(first), value) for at, value in each.points]) for each in series]
    svg = line_chart(
        "Growth: mementos and URI-Rs by month",
        shifted,
        ChartAxis(f"years since {int(first)}"),
        ChartAxis(""),
    )
    return IndexChart(svg, "Mementos and distinct URI-Rs at the end of each month.")


def _heaps_chart(metrics: IndexMetrics) -> IndexChart:
    measured = [(float(captures), float(uris)) for _, captures, uris in metrics.growth]
    series = [ChartSeries("measured", measured)]
    caption = "URI-Rs by number of mementos as the archive grew."
    if metrics.heaps and measured:
        curve = metrics.heaps
        fitted = [(x, curve.a * x**curve.b) for x, _ in (measured[0], measured[-1])]
        series.append(ChartSeries(f"{curve.a:.3g} · x^{curve.b:.3f}", fitted, is_dashed=True))
        caption += f" Heaps' law fits with K = {curve.a:.3g} and β = {curve.b:.3f} (R² {curve.r_squared:.3f})."
    svg = line_chart("Heaps' law", series, ChartAxis("mementos", log=True), ChartAxis("URI-Rs", log=True))
    return IndexChart(svg, caption)


def _years_chart(metrics: IndexMetrics) -> IndexChart:
    bars = [(year.year, float(year.captures)) for year in metrics.years]
    return IndexChart(bar_chart("Mementos by year", bars, ChartAxis("mementos")), "Mementos of each year.")


def _popularity_chart(metrics: IndexMetrics) -> IndexChart:
    points = lorenz_curve(metrics.counts.captures_by_uri) if metrics.counts.captures_by_uri else []
    reversed_points = [(1 - x, 1 - y) for x, y in reversed(points)]
    series = [
        ChartSeries("descending", _downsample(reversed_points)),
        ChartSeries("ascending (Lorenz curve)", _downsample(points)),
        ChartSeries("uniform distribution", [(0.0, 0.0), (1.0, 1.0)] if points else [], is_dashed=True),
    ]
    x, y = ChartAxis("share of URI-Rs", is_share=True), ChartAxis("share of mementos", is_share=True)
    svg = line_chart("Mementos over URI-Rs", series, x, y)
    share = round(100 * metrics.pareto)
    caption = f"{share} % of URI-Rs have {100 - share} % of mementos; the Gini coefficient is {metrics.gini:.2f}."
    return IndexChart(svg, caption)


def _power_law_chart(metrics: IndexMetrics) -> IndexChart:
    counts = metrics.counts.captures_by_uri
    total, above = sum(counts.values()), 0
    points = []
    for number in sorted(counts, reverse=True):
        above += counts[number]
        points.append((float(number), above / total))
    series = [ChartSeries("measured", _downsample(points[::-1]))]
    caption = "Share of URI-Rs with at least this number of mementos."
    if metrics.power_law:
        caption += f" Power-law exponent: {metrics.power_law.exponent:.2f}."
    svg = line_chart(
        "URI-Rs with many mementos", series, ChartAxis("mementos", log=True), ChartAxis("share of URI-Rs", log=True)
    )
    return IndexChart(svg, caption)


def _domains_chart(metrics: IndexMetrics) -> IndexChart:
    order = sorted(metrics.counts.domains.items(), key=lambda item: (-item[1].captures, item[0]))[:14]
    bars = [(name[:12], float(each.captures)) for name, each in order]
    return IndexChart(
        bar_chart("Top-level domains", bars, ChartAxis("mementos", log=True)),
        "Mementos of the largest top-level domains (logarithmic scale).",
    )


def _reduction_chart(metrics: IndexMetrics, kind: str) -> IndexChart:
    series = [
        ChartSeries(name, [(float(nodes), saved) for nodes, saved in reduction_curve(prefixes, metrics.counts.pages)])
        for name, (prefixes, _) in metrics.levels.items()
        if name.startswith(kind) and name not in ("H1", "P0") and prefixes
    ][:6]
    what = "hosts" if kind == "H" else "paths"
    svg = line_chart(
        f"Reduction by rolling up {what}", series, ChartAxis("prefixes rolled up, largest first", log=True),
        ChartAxis("share of keys saved", is_share=True),
    )  # fmt: skip
    return IndexChart(
        svg, f"Share of keys saved by rolling up the largest prefixes of {what} into one key each, by depth."
    )


def _children_chart(metrics: IndexMetrics, kind: str) -> IndexChart:
    series = []
    for name, (_, children) in metrics.levels.items():
        total = sum(number * times for number, times in children.items())
        if name.startswith(kind) and name not in ("H1", "H2", "P0") and total:
            curve = reduction_curve(children, total)
            series.append(ChartSeries(name, [(float(nodes), saved) for nodes, saved in curve]))
    what = "hosts" if kind == "H" else "paths"
    svg = line_chart(
        f"Children saved by rolling up parents of {what}", series[:6],
        ChartAxis("parents rolled up, largest first", log=True),
        ChartAxis("share of children saved", is_share=True),
    )  # fmt: skip
    return IndexChart(svg, "Share of immediate children saved when the parents with the most children are rolled up.")


def _downsample(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return at most `_MAX_POINTS` evenly spaced points, including the first and the last."""
    if len(points) <= _MAX_POINTS:
        return points
    step = (len(points) - 1) / (_MAX_POINTS - 1)
    return [points[round(at * step)] for at in range(_MAX_POINTS)]


def index_metrics_to_json(metrics: IndexMetrics) -> dict[str, object]:
    """Return the JSON document: tables as lists of objects, curves as lists of points."""
    counts, heaps, power_law = metrics.counts, metrics.heaps, metrics.power_law
    return {
        "files": counts.files,
        "lines": counts.lines,
        "text_bytes": counts.text_bytes,
        "alpha": metrics.alpha,
        "mementos": counts.captures,
        "uri_rs": counts.uris,
        "keys": counts.pages,
        "hosts": counts.hosts,
        "ip_hosts": counts.ip.hosts,
        "ip_mementos": counts.ip.captures,
        "gamma": metrics.gamma,
        "first": counts.first or None,
        "last": counts.last or None,
        "record_bytes": counts.record_bytes,
        "sized_mementos": counts.sized,
        "odd_dates": counts.odd_dates,
        "not_web_pages": sum(counts.foreign.values()),
        "left_out": counts.filtered,
        "problems": dict(counts.problems),
        "is_estimated": counts.is_estimated,
        "heaps": {"K": heaps.a, "beta": heaps.b, "r_squared": heaps.r_squared} if heaps else None,
        "power_law": {"exponent": power_law.exponent, "error": power_law.error, "from": power_law.minimum}
        if power_law
        else None,
        "captures_of_uri_rs": {
            "max": metrics.captures_summary.max,
            "median": metrics.captures_summary.median,
            "mean": metrics.captures_summary.mean,
            "standard_deviation": metrics.captures_summary.deviation,
            "gini": metrics.gini,
            "pareto": metrics.pareto,
        },
        "growth": [{"month": month, "mementos": captures, "uri_rs": uris} for month, captures, uris in metrics.growth],
        "reduction": {
            name: reduction_curve(prefixes, counts.pages) for name, (prefixes, _) in metrics.levels.items() if prefixes
        },
        "tables": {
            name: table_to_json(table)
            for name, table in index_tables(metrics, machine_readable=True).items()
            if name != "summary"
        },
    }


def render_index_page(metrics: IndexMetrics, name: str) -> str:
    """Return the report as a self-contained, deterministic HTML page.

    Args:
        metrics: Metrics to show.
        name: Title of the index.
    """
    return (
        make_template_environment("unlost.research")
        .get_template("statistics.html")
        .render(
            name=name,
            counted=metrics.counts,
            gamma=metrics.gamma,
            drawings=list(draw_index_charts(metrics).items()),
            tables=list(index_tables(metrics).items()),
            style=STYLE,
        )
    )


def write_index_report(metrics: IndexMetrics, folder: Path, name: str) -> list[Path]:
    """Write `statistics.json`, a CSV file for each table and `index.html` atomically; return the paths.

    Raises:
        OSError: A file could not be written.
    """
    members = (
        f"{dumps(each)}: {dumps(value, ensure_ascii=False)}" for each, value in index_metrics_to_json(metrics).items()
    )
    documents = {"statistics.json": "{\n" + ",\n".join(members) + "\n}\n"}
    documents |= {
        f"{each}.csv": table_to_csv(table) for each, table in index_tables(metrics, machine_readable=True).items()
    }
    documents["growth.csv"] = table_to_csv(
        ReportTable("", ("month", "URI-Ms", "URI-Rs"), [(a, str(b), str(c)) for a, b, c in metrics.growth])
    )
    documents["index.html"] = render_index_page(metrics, name)
    return write_text_files(folder, documents)
