"""Tables as CSV and JSON, and files that go into one folder."""

import csv
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from unlost.formats.output import whole_file
from unlost.shown.table import Table


def table_objects(table: Table) -> list[dict[str, object]]:
    """Return the rows of a table whose numbers are written for programs, each by the heads."""
    return [
        {
            head: cell if at in table.words else _value(cell)
            for at, (head, cell) in enumerate(zip(table.heads, row, strict=True))
        }
        for row in table.rows
    ]


def _value(cell: str) -> object:
    try:
        return int(cell)
    except ValueError:
        try:
            return float(cell)
        except ValueError:
            return cell


def csv_text(table: Table) -> str:
    """Return a table as CSV, its heads first."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.heads)
    writer.writerows([_harmless(cell) for cell in row] for row in table.rows)
    return text.getvalue()


def _harmless(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: what others wrote may begin like one."""
    return f"'{cell}" if cell[:1] in ("=", "+", "@", "\t", "\r") else cell


def write_folder(folder: Path, made: Mapping[str, str]) -> list[Path]:
    """Write texts under their names into a folder, which is made if need be; return what was written.

    Files appear whole or not at all. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        with whole_file(folder / name) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    return [folder / name for name in made]
