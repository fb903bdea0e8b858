"""Counts the copies of a page by archive and year."""

from collections import Counter

from unlost.aggregate import forms
from unlost.aggregate.found import AggregateResult
from unlost.aggregate.places import ServiceUrls, ascii_url


def summary_json(result: AggregateResult, urls: ServiceUrls) -> bytes:
    """Return how many copies each archive has of each year, how many all have, and what came of every archive."""
    counts = result.mementos.by_archive_and_year()
    ends = {"first": result.mementos[0], "last": result.mementos[result.last_index]} if result.mementos else {}
    archives = {archive: {"mementos": sum(years.values()), "years": years} for archive, years in counts.items()}
    return forms.json_object({
        "original_uri": ascii_url(result.uri),
        "mementos": len(result.mementos),
        **{name: forms.memento_members(copy) for name, copy in ends.items()},
        "archives": archives,
        "years": _sum_by_year(counts),
        **forms.json_footer(result, urls),
    }) + b"\n"  # fmt: skip


def summary_text(result: AggregateResult) -> bytes:
    """Return the same as a table: a line for each year, a column for each archive, totals last."""
    counts = result.mementos.by_archive_and_year()
    archives = list(counts)
    rows = [["year", *archives, "total"]]
    for year, total in _sum_by_year(counts).items():
        rows.append([year, *(str(counts[archive].get(year, 0)) for archive in archives), str(total)])
    totals = [str(sum(counts[archive].values())) for archive in archives]
    rows.append(["total", *totals, str(len(result.mementos))])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return forms.join_lines(
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    )


def _sum_by_year(counts: dict[str, dict[str, int]]) -> dict[str, int]:
    """Return how many copies all archives have of each year, in order."""
    total: Counter[str] = Counter()
    for years in counts.values():
        total.update(years)
    return dict(sorted(total.items()))
