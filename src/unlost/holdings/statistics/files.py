"""Tables as CSV and JSON, and files that go into one folder."""

import csv
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from unlost.formats.output import whole_files
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
    is_formula = cell.startswith(("=", "+", "@", "\t", "\r", "\n"))
    return f"'{cell}" if is_formula or (cell[:1] == "-" and cell != "-" and isinstance(_value(cell), str)) else cell


def write_folder(folder: Path, made: Mapping[str, str]) -> list[Path]:
    """Write texts under their names into a folder, which is made if need be; return what was written.

    None appears before all of them are on the disk. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with whole_files([folder / name for name in made]) as files:
        for file, text in zip(files, made.values(), strict=True):
            file.write(text.encode("utf-8", "backslashreplace"))
    return [folder / name for name in made]
