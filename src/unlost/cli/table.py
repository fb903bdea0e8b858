"""Tables: for people on a terminal, for programs with tabs."""

import os
import sys
from collections.abc import Iterable, Sequence

from unlost.cli.addresses import write
from unlost.cli.messages import shown


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under their headers on a terminal; elsewhere a line each, with tabs and without headers.

    Whatever is in them, no terminal acts on it and no row takes two lines.
    """
    safe = [[shown(os.fsencode(cell), None) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        write(["\t".join(row).rstrip("\t") + "\n" for row in safe])
        return
    from rich.console import Console  # noqa: PLC0415  only for tables
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(*headers)
    for row in safe:
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    Console().print(table)


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table as lines of text: the first column at the left, the others, which are numbers, at the right."""
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    return [
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heads, *rows)
    ]
