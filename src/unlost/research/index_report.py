"""The statistics of an index as charts, JSON, CSV files and an HTML page."""

from dataclasses import dataclass
from json import dumps
from pathlib import Path

from unlost.report.charts import STYLE, ChartAxis, ChartSeries, bar_chart, line_chart
from unlost.report.format import ReportTable
from unlost.report.html_templates import make_template_environment
from unlost.research.index_metrics import IndexMetrics, index_tables, reduction_curve
from unlost.research.table_export import table_to_csv, table_to_json, write_text_files
from unlost.statistics import lorenz_curve

_MAX_POINTS = 300  # of a curve: more cannot be seen


@dataclass(frozen=True, slots=True)
class IndexChart:
    """A chart, and a sentence on how to read it."""

    svg: str
    caption: str


def draw_index_charts(figures: IndexMetrics) -> dict[str, IndexChart]:
    """Return all charts that have anything to show, by name."""
    made = {
        "growth": _growth(figures), "heaps": _heaps(figures), "years": _years(figures),
        "popularity": _popularity(figures),
        "power-law": _power_law(figures), "domains": _domains(figures),
        **{f"reduction-{kind}": _reduction(figures, kind) for kind in ("H", "P")},
        **{f"children-{kind}": _children(figures, kind) for kind in ("H", "P")},
    }  # fmt: skip
    return {name: drawing for name, drawing in made.items() if drawing.svg}


def _growth(figures: IndexMetrics) -> IndexChart:
    points = [(int(month[:4]) + (int(month[4:])) / 12, captures, uris) for month, captures, uris in figures.growth]
    series = [
        ChartSeries("mementos", [(at, captures) for at, captures, _ in points]),
        ChartSeries("URI-Rs", [(at, uris) for at, _, uris in points]),
    ]
    first = min((at for at, _, _ in points), default=0.0)
    shifted = [ChartSeries(each.name, [(at - int(first), value) for at, value in each.points]) for each in series]
    svg = line_chart(
        "Growth: mementos and URI-Rs, month by month",
        shifted,
        ChartAxis(f"years since the beginning of {int(first)}"),
        ChartAxis(""),
    )
    return IndexChart(svg, "Mementos and different URI-Rs that were there at the end of each month.")


def _heaps(figures: IndexMetrics) -> IndexChart:
    measured = [(float(captures), float(uris)) for _, captures, uris in figures.growth]
    series = [ChartSeries("measured", measured)]
    caption = "URI-Rs against mementos as the archive grew."
    if figures.heaps and measured:
        law = figures.heaps
        fitted = [(x, law.a * x**law.b) for x, _ in (measured[0], measured[-1])]
        series.append(ChartSeries(f"{law.a:.3g} · x^{law.b:.3f}", fitted, is_dashed=True))
        caption += f" Heaps' law fits with K = {law.a:.3g} and β = {law.b:.3f} (R² {law.r_squared:.3f})."
    svg = line_chart("Heaps' law", series, ChartAxis("mementos", log=True), ChartAxis("URI-Rs", log=True))
    return IndexChart(svg, caption)


def _years(figures: IndexMetrics) -> IndexChart:
    bars = [(year.year, float(year.captures)) for year in figures.years]
    return IndexChart(bar_chart("Mementos by year", bars, ChartAxis("mementos")), "Mementos of each year.")


def _popularity(figures: IndexMetrics) -> IndexChart:
    points = lorenz_curve(figures.counts.captures_by_uri) if figures.counts.captures_by_uri else []
    popular = [(1 - people, 1 - wealth) for people, wealth in reversed(points)]
    series = [
        ChartSeries("most archived first", _downsample(popular)),
        ChartSeries("least archived first (Lorenz)", _downsample(points)),
        ChartSeries("if all were equal", [(0.0, 0.0), (1.0, 1.0)] if points else [], is_dashed=True),
    ]
    x, y = ChartAxis("share of URI-Rs", is_share=True), ChartAxis("share of mementos", is_share=True)
    svg = line_chart("Mementos over URI-Rs", series, x, y)
    share = round(100 * figures.pareto)
    caption = f"{share} % of URI-Rs have {100 - share} % of mementos; the Gini coefficient is {figures.gini:.2f}."
    return IndexChart(svg, caption)


def _power_law(figures: IndexMetrics) -> IndexChart:
    counts = figures.counts.captures_by_uri
    total, above = sum(counts.values()), 0
    points = []
    for number in sorted(counts, reverse=True):
        above += counts[number]
        points.append((float(number), above / total))
    series = [ChartSeries("measured", _downsample(points[::-1]))]
    caption = "The share of URI-Rs with so many mementos or more."
    if figures.power_law:
        caption += f" As a power law its exponent is {figures.power_law.exponent:.2f}."
    svg = line_chart(
        "URI-Rs with many mementos", series, ChartAxis("mementos", log=True), ChartAxis("share of URI-Rs", log=True)
    )
    return IndexChart(svg, caption)


def _domains(figures: IndexMetrics) -> IndexChart:
    order = sorted(figures.counts.domains.items(), key=lambda item: (-item[1].captures, item[0]))[:14]
    bars = [(name[:12], float(each.captures)) for name, each in order]
    return IndexChart(
        bar_chart("Top-level domains", bars, ChartAxis("mementos", log=True)),
        "Mementos of the largest domains (powers of ten).",
    )


def _reduction(figures: IndexMetrics, kind: str) -> IndexChart:
    series = [
        ChartSeries(name, [(float(nodes), saved) for nodes, saved in reduction_curve(prefixes, figures.counts.pages)])
        for name, (prefixes, _) in figures.levels.items()
        if name.startswith(kind) and name not in ("H1", "P0") and prefixes
    ][:6]
    what = "hosts" if kind == "H" else "paths"
    svg = line_chart(
        f"Reduction by rolling up {what}", series, ChartAxis("prefixes rolled up, largest first", log=True),
        ChartAxis("share of keys saved", is_share=True),
    )  # fmt: skip
    return IndexChart(svg, f"Keys that are saved as the largest prefixes of {what} become one key each, by depth.")


def _children(figures: IndexMetrics, kind: str) -> IndexChart:
    series = []
    for name, (_, children) in figures.levels.items():
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
    return IndexChart(svg, "The same for immediate children, as parents with most of them are rolled up.")


def _downsample(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return so many of the points that nobody sees the difference, the first and the last among them."""
    if len(points) <= _MAX_POINTS:
        return points
    step = (len(points) - 1) / (_MAX_POINTS - 1)
    return [points[round(at * step)] for at in range(_MAX_POINTS)]


def index_metrics_to_json(figures: IndexMetrics) -> dict[str, object]:
    """Return everything as JSON has it: tables as lists of objects, curves as lists of points."""
    counted, law, tail = figures.counts, figures.heaps, figures.power_law
    return {
        "files": counted.files,
        "lines": counted.lines,
        "text_bytes": counted.text_bytes,
        "alpha": figures.alpha,
        "mementos": counted.captures,
        "uri_rs": counted.uris,
        "keys": counted.pages,
        "hosts": counted.hosts,
        "ip_hosts": counted.ip.hosts,
        "ip_mementos": counted.ip.captures,
        "gamma": figures.gamma,
        "first": counted.first or None,
        "last": counted.last or None,
        "record_bytes": counted.record_bytes,
        "sized_mementos": counted.sized,
        "odd_dates": counted.odd_dates,
        "not_web_pages": sum(counted.foreign.values()),
        "left_out": counted.filtered,
        "problems": dict(counted.problems),
        "is_estimated": counted.is_estimated,
        "heaps": {"K": law.a, "beta": law.b, "r_squared": law.r_squared} if law else None,
        "power_law": {"exponent": tail.exponent, "error": tail.error, "from": tail.minimum} if tail else None,
        "captures_of_uri_rs": {
            "max": figures.captures_summary.max,
            "median": figures.captures_summary.median,
            "mean": figures.captures_summary.mean,
            "standard_deviation": figures.captures_summary.deviation,
            "gini": figures.gini,
            "pareto": figures.pareto,
        },
        "growth": [{"month": month, "mementos": captures, "uri_rs": uris} for month, captures, uris in figures.growth],
        "reduction": {
            name: reduction_curve(prefixes, counted.pages) for name, (prefixes, _) in figures.levels.items() if prefixes
        },
        "tables": {
            name: table_to_json(table)
            for name, table in index_tables(figures, machine_readable=True).items()
            if name != "summary"
        },
    }


def render_index_page(figures: IndexMetrics, name: str) -> str:
    """Return the page: HTML with everything in it, the same for the same numbers. name: what the index is called."""
    return (
        make_template_environment("unlost.research")
        .get_template("statistics.html")
        .render(
            name=name,
            counted=figures.counts,
            gamma=figures.gamma,
            drawings=list(draw_index_charts(figures).items()),
            tables=list(index_tables(figures).items()),
            style=STYLE,
        )
    )


def write_index_report(figures: IndexMetrics, folder: Path, name: str) -> list[Path]:
    """Write `statistics.json`, a CSV for each table and `index.html` into a folder; return what was written.

    Files appear whole or not at all. Raises OSError.
    """
    members = (
        f"{dumps(each)}: {dumps(value, ensure_ascii=False)}" for each, value in index_metrics_to_json(figures).items()
    )
    made = {"statistics.json": "{\n" + ",\n".join(members) + "\n}\n"}
    made |= {f"{each}.csv": table_to_csv(table) for each, table in index_tables(figures, machine_readable=True).items()}
    made["growth.csv"] = table_to_csv(
        ReportTable("", ("month", "URI-Ms", "URI-Rs"), [(a, str(b), str(c)) for a, b, c in figures.growth])
    )
    made["index.html"] = render_index_page(figures, name)
    return write_text_files(folder, made)
