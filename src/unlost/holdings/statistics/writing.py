"""The statistics of an index as JSON, as CSV files and as one page."""

from json import dumps
from pathlib import Path

from unlost.holdings.statistics.drawings import draw_index_charts
from unlost.holdings.statistics.figures import IndexMetrics, reduction_curve
from unlost.holdings.statistics.files import table_to_csv, table_to_json, write_text_files
from unlost.holdings.statistics.tables import index_tables
from unlost.shown.charts import STYLE
from unlost.shown.page import make_template_environment
from unlost.shown.table import ReportTable


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
        make_template_environment("unlost.holdings")
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
