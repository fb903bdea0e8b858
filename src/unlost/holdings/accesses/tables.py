"""What logs tell of requests, as tables, JSON and one page."""

from json import dumps
from pathlib import Path

from unlost.holdings.accesses.gathering import Accesses, Answers
from unlost.holdings.accesses.matrix import GROUPS, Matrix
from unlost.holdings.statistics.files import csv_text, table_objects, write_folder
from unlost.holdings.statistics.numbers import Shown
from unlost.shown.charts import STYLE, Axis, bar_chart
from unlost.shown.page import templates
from unlost.shown.table import Table

_MOST_WANTED = 1_000  # in files


def access_tables(accesses: Accesses, matrix: Matrix | None = None, *, whole: bool = False) -> dict[str, Table]:
    """Return all tables that have rows, by the names that their files get. whole: for programs."""
    show = Shown(whole=whole)
    found = {"archives": _archives(accesses, show), "missing": _missing(accesses, show)}
    if matrix is not None:
        found["matrix"] = _matrix(matrix, show)
    return {name: table for name, table in found.items() if table.rows}


def _archives(accesses: Accesses, show: Shown) -> Table:
    order = sorted(accesses.archives.items(), key=lambda item: (-_rate(item[1]), item[0]))
    named = [*order, ("All", accesses.total)] if order else []
    rows = [
        (
            name, show.number(each.requests), *(show.percent(part, each.requests) for part in _parts(each)),
            show.number(each.sleeps),
        )
        for name, each in named
    ]  # fmt: skip
    note = "Hit: it has the page. Miss: it said that it has not. Sleep: how often it was left alone after errors."
    return Table("Requests and answers", ("archive", "requests", "hit %", "miss %", "error %", "sleep"), rows, note)


def _parts(answers: Answers) -> tuple[int, int, int]:
    return answers.hits, answers.misses, answers.errors


def _rate(answers: Answers) -> float:
    return answers.hits / answers.requests if answers.requests else 0.0


def _missing(accesses: Accesses, show: Shown) -> Table:
    rows = [(uri, show.number(least)) for uri, least, _ in accesses.missing.first(_MOST_WANTED)]
    error = accesses.missing_error
    note = f"Each was missed so often at least, and at most {error:,} times more." if error else "Exact numbers."
    return Table("Wanted most, and missing", ("URI-R", "misses"), show.cut(rows), note)


def _matrix(matrix: Matrix, show: Shown) -> Table:
    rows = [(name, *(show.number(cell) for cell in row)) for name, row in zip(GROUPS, matrix, strict=True) if any(row)]
    note = (
        "URI-Rs by how many mementos they have (rows) and how often they were asked for (columns): 1 to 9, 10 to 99 "
        "and so on. The first row is asked for and missing, the first column archived and never asked for."
    )
    return Table("Archived and accessed", ("mementos", *GROUPS), rows, note)


def access_object(accesses: Accesses, matrix: Matrix | None = None) -> dict[str, object]:
    """Return everything as JSON has it."""
    total = accesses.total
    different, low, high = accesses.pages.estimate()
    return {
        "requests": total.requests,
        "hits": total.hits,
        "misses": total.misses,
        "errors": total.errors,
        "from_cache": accesses.kept,
        "asked": accesses.asked,
        "different_pages": {"about": different, "from": low, "to": high},
        "archives": {
            name: {"requests": each.requests, "hits": each.hits, "misses": each.misses, "errors": each.errors,
                   "sleeps": each.sleeps}
            for name, each in sorted(accesses.archives.items())
        },
        "missing_error": accesses.missing_error,
        "missing": [
            {"uri": uri, "at_least": least, "at_most": most}
            for uri, least, most in accesses.missing.first(_MOST_WANTED)
        ],
        "matrix": matrix,
        "tables": {name: table_objects(each) for name, each in access_tables(accesses, matrix, whole=True).items()},
    }  # fmt: skip


def access_page(accesses: Accesses, matrix: Matrix | None, name: str) -> str:
    """Return the page: HTML with everything in it. name: what the logs are called."""
    rates = sorted(accesses.archives.items(), key=lambda item: (-_rate(item[1]), item[0]))[:14]
    chart = bar_chart("Hits", [(each[:12], 100 * _rate(answers)) for each, answers in rates], Axis("hits, %"))
    return (
        templates("unlost.holdings")
        .get_template("accesses.html")
        .render(
            name=name,
            total=accesses.total,
            asked=accesses.asked,
            pages=accesses.pages.estimate()[0],
            chart=chart,
            tables=list(access_tables(accesses, matrix).values()),
            style=STYLE,
        )
    )


def write_access_report(accesses: Accesses, matrix: Matrix | None, folder: Path, name: str) -> list[Path]:
    """Write `accesses.json`, a CSV for each table and `index.html`; return what was written. Raises OSError."""
    made = {"accesses.json": dumps(access_object(accesses, matrix), ensure_ascii=False, indent=1) + "\n"}
    made |= {f"{each}.csv": csv_text(table) for each, table in access_tables(accesses, matrix, whole=True).items()}
    made["index.html"] = access_page(accesses, matrix, name)
    return write_folder(folder, made)
