"""The statistics of an index as JSON, as CSV files and as one page."""

from json import dumps
from pathlib import Path

from unlost.holdings.statistics.drawings import drawings
from unlost.holdings.statistics.figures import Figures, reduction_curve
from unlost.holdings.statistics.files import csv_text, table_objects, write_folder
from unlost.holdings.statistics.tables import tables
from unlost.shown.charts import STYLE
from unlost.shown.page import templates
from unlost.shown.table import Table


def statistics_object(figures: Figures) -> dict[str, object]:
    """Return everything as JSON has it: tables as lists of objects, curves as lists of points."""
    counted, law, tail = figures.counted, figures.heaps, figures.power_law
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
        "power_law": {"exponent": tail.exponent, "error": tail.error, "from": tail.least} if tail else None,
        "captures_of_uri_rs": {
            "max": figures.spread.max,
            "median": figures.spread.median,
            "mean": figures.spread.mean,
            "standard_deviation": figures.spread.deviation,
            "gini": figures.gini,
            "pareto": figures.pareto,
        },
        "growth": [{"month": month, "mementos": captures, "uri_rs": uris} for month, captures, uris in figures.growth],
        "reduction": {
            name: reduction_curve(prefixes, counted.pages) for name, (prefixes, _) in figures.levels.items() if prefixes
        },
        "tables": {
            name: table_objects(table) for name, table in tables(figures, whole=True).items() if name != "summary"
        },
    }


def statistics_page(figures: Figures, name: str) -> str:
    """Return the page: HTML with everything in it, the same for the same numbers. name: what the index is called."""
    return (
        templates("unlost.holdings")
        .get_template("statistics.html")
        .render(
            name=name,
            counted=figures.counted,
            gamma=figures.gamma,
            drawings=list(drawings(figures).items()),
            tables=list(tables(figures).items()),
            style=STYLE,
        )
    )


def write_report(figures: Figures, folder: Path, name: str) -> list[Path]:
    """Write `statistics.json`, a CSV for each table and `index.html` into a folder; return what was written.

    Files appear whole or not at all. Raises OSError.
    """
    members = (
        f"{dumps(each)}: {dumps(value, ensure_ascii=False)}" for each, value in statistics_object(figures).items()
    )
    made = {"statistics.json": "{\n" + ",\n".join(members) + "\n}\n"}
    made |= {f"{each}.csv": csv_text(table) for each, table in tables(figures, whole=True).items()}
    made["growth.csv"] = csv_text(
        Table("", ("month", "URI-Ms", "URI-Rs"), [(a, str(b), str(c)) for a, b, c in figures.growth])
    )
    made["index.html"] = statistics_page(figures, name)
    return write_folder(folder, made)
