"""What logs tell of requests, as tables, JSON and one page."""

from json import dumps
from pathlib import Path

from unlost.holdings.accesses.gathering import AccessStats, ArchiveOutcomes
from unlost.holdings.accesses.matrix import MAGNITUDES, AccessMatrix
from unlost.holdings.statistics.files import table_to_csv, table_to_json, write_text_files
from unlost.holdings.statistics.numbers import NumberFormat
from unlost.shown.charts import STYLE, ChartAxis, bar_chart
from unlost.shown.page import make_template_environment
from unlost.shown.table import ReportTable

_MAX_MISSING_PAGES = 1_000  # in files


def access_tables(
    accesses: AccessStats, matrix: AccessMatrix | None = None, *, machine_readable: bool = False
) -> dict[str, ReportTable]:
    """Return all tables that have rows, by the names that their files get. whole: for programs."""
    show = NumberFormat(machine_readable=machine_readable)
    found = {"archives": _archives(accesses, show), "missing": _missing(accesses, show)}
    if matrix is not None:
        found["matrix"] = _matrix(matrix, show)
    return {name: table for name, table in found.items() if table.rows}


def _archives(accesses: AccessStats, show: NumberFormat) -> ReportTable:
    order = sorted(accesses.archives.items(), key=lambda item: (-_hit_rate(item[1]), item[0]))
    named = [*order, ("All", accesses.total)] if order else []
    rows = [
        (
            name, show.number(each.requests), *(show.percent(part, each.requests) for part in _outcome_counts(each)),
            show.number(each.sleeps),
        )
        for name, each in named
    ]  # fmt: skip
    note = "Hit: it has the page. Miss: it said that it has not. Sleep: how often it was left alone after errors."
    return ReportTable(
        "Requests and answers", ("archive", "requests", "hit %", "miss %", "error %", "sleep"), rows, note
    )


def _outcome_counts(answers: ArchiveOutcomes) -> tuple[int, int, int]:
    return answers.hits, answers.misses, answers.errors


def _hit_rate(answers: ArchiveOutcomes) -> float:
    return answers.hits / answers.requests if answers.requests else 0.0


def _missing(accesses: AccessStats, show: NumberFormat) -> ReportTable:
    rows = [(uri, show.number(least)) for uri, least, _ in accesses.missing.first(_MAX_MISSING_PAGES)]
    error = accesses.missing_error
    note = f"Each was missed so often at least, and at most {error:,} times more." if error else "Exact numbers."
    return ReportTable("Wanted most, and missing", ("URI-R", "misses"), show.limit_rows(rows), note)


def _matrix(matrix: AccessMatrix, show: NumberFormat) -> ReportTable:
    rows = [
        (name, *(show.number(cell) for cell in row)) for name, row in zip(MAGNITUDES, matrix, strict=True) if any(row)
    ]
    note = (
        "URI-Rs by how many mementos they have (rows) and how often they were asked for (columns): 1 to 9, 10 to 99 "
        "and so on. The first row is asked for and missing, the first column archived and never asked for."
    )
    return ReportTable("Archived and accessed", ("mementos", *MAGNITUDES), rows, note)


def access_stats_to_json(accesses: AccessStats, matrix: AccessMatrix | None = None) -> dict[str, object]:
    """Return everything as JSON has it."""
    total = accesses.total
    different, low, high = accesses.pages.estimate()
    return {
        "requests": total.requests,
        "hits": total.hits,
        "misses": total.misses,
        "errors": total.errors,
        "from_cache": accesses.cached_count,
        "asked": accesses.request_count,
        "different_pages": {"about": different, "from": low, "to": high},
        "archives": {
            name: {"requests": each.requests, "hits": each.hits, "misses": each.misses, "errors": each.errors,
                   "sleeps": each.sleeps}
            for name, each in sorted(accesses.archives.items())
        },
        "missing_error": accesses.missing_error,
        "missing": [
            {"uri": uri, "at_least": least, "at_most": most}
            for uri, least, most in accesses.missing.first(_MAX_MISSING_PAGES)
        ],
        "matrix": matrix,
        "tables": {name: table_to_json(each) for name, each in access_tables(accesses, matrix, machine_readable=True).items()},
    }  # fmt: skip


def render_access_page(accesses: AccessStats, matrix: AccessMatrix | None, name: str) -> str:
    """Return the page: HTML with everything in it. name: what the logs are called."""
    rates = sorted(accesses.archives.items(), key=lambda item: (-_hit_rate(item[1]), item[0]))[:14]
    chart = bar_chart("Hits", [(each[:12], 100 * _hit_rate(answers)) for each, answers in rates], ChartAxis("hits, %"))
    return (
        make_template_environment("unlost.holdings")
        .get_template("accesses.html")
        .render(
            name=name,
            total=accesses.total,
            asked=accesses.request_count,
            pages=accesses.pages.estimate()[0],
            chart=chart,
            tables=list(access_tables(accesses, matrix).values()),
            style=STYLE,
        )
    )


def write_access_report(accesses: AccessStats, matrix: AccessMatrix | None, folder: Path, name: str) -> list[Path]:
    """Write `accesses.json`, a CSV for each table and `index.html`; return what was written. Raises OSError."""
    made = {"accesses.json": dumps(access_stats_to_json(accesses, matrix), ensure_ascii=False, indent=1) + "\n"}
    made |= {
        f"{each}.csv": table_to_csv(table)
        for each, table in access_tables(accesses, matrix, machine_readable=True).items()
    }
    made["index.html"] = render_access_page(accesses, matrix, name)
    return write_text_files(folder, made)
