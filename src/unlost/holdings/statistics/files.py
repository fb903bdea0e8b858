"""Tables as CSV and JSON, and files that go into one folder."""

import csv
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from unlost.formats.output import atomic_files
from unlost.shown.table import ReportTable


def table_to_json(table: ReportTable) -> list[dict[str, object]]:
    """Return the rows of a table whose numbers are written for programs, each by the heads."""
    return [
        {
            head: cell if at in table.words else _parse_cell(cell)
            for at, (head, cell) in enumerate(zip(table.heads, row, strict=True))
        }
        for row in table.rows
    ]


def _parse_cell(cell: str) -> object:
    try:
        return int(cell)
    except ValueError:
        try:
            return float(cell)
        except ValueError:
            return cell


def table_to_csv(table: ReportTable) -> str:
    """Return a table as CSV, its heads first."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.heads)
    writer.writerows([_escape_formula(cell) for cell in row] for row in table.rows)
    return text.getvalue()


def _escape_formula(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: what others wrote may begin like one."""
    is_formula = cell.startswith(("=", "+", "@", "\t", "\r", "\n"))
    return (
        f"'{cell}" if is_formula or (cell[:1] == "-" and cell != "-" and isinstance(_parse_cell(cell), str)) else cell
    )


def write_text_files(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts under their names into a folder, which is made if need be; return what was written.

    None appears before all of them are on the disk. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_files([folder / name for name in texts]) as files:
        for file, text in zip(files, texts.values(), strict=True):
            file.write(text.encode("utf-8", "backslashreplace"))
    return [folder / name for name in texts]
