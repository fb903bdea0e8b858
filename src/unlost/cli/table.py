"""Tables: for people on a terminal, for programs with tabs."""

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence

from unlost.cli.addresses import write_lines
from unlost.cli.messages import escape_untrusted
from unlost.shown.table import ReportTable
from unlost.shown.words import escape_unprintable


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under their headers on a terminal; elsewhere a line each, with tabs and without headers.

    Whatever is in them, no terminal acts on it and no row takes two lines.
    """
    safe = [[escape_untrusted(os.fsencode(cell), None) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        write_lines(["\t".join(row).rstrip("\t") + "\n" for row in safe])
        return
    from rich.console import Console  # noqa: PLC0415  only for tables
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(*headers)
    for row in safe:
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    Console().print(table)


def format_columns(
    heads: Sequence[str], rows: Sequence[Sequence[str]], left_aligned: Collection[int] = frozenset({0})
) -> list[str]:
    """Return a table as lines of text: columns of words, by default the first, at the left, numbers at the right."""
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if at in left_aligned else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heads, *rows)
    ]


def format_tables(tables: Iterable[ReportTable]) -> Iterator[str]:
    """Yield tables as lines of text, with an empty line before each; whatever is in them, no terminal acts on it."""
    for table in tables:
        heads = [escape_unprintable(head) for head in table.heads]
        rows = [[escape_unprintable(cell) for cell in row] for row in table.rows]
        yield from ("", escape_unprintable(table.title), *format_columns(heads, rows, table.words))
