"""Number formats for tables, and tables as CSV, JSON and files in one directory."""

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

from unlost.atomic import atomic_files
from unlost.report.format import ReportTable

MAX_TABLE_ROWS = 15
"""Rows of an unbounded table on an HTML page or terminal; files have more."""
_MAX_FILE_ROWS = 10_000


def ratio(part: float, whole: float) -> float:
    """Return the quotient; 0 if the divisor is 0."""
    return part / whole if whole else 0.0


class NumberFormat:
    """Number format of a table: rounded with thousands separators, or plain and exact if machine-readable."""

    def __init__(self, *, machine_readable: bool) -> None:
        self.is_machine_readable = machine_readable

    def number(self, value: float) -> str:
        """Format a count."""
        return str(value) if self.is_machine_readable else f"{value:,}"

    def decimal(self, value: float, digits: int = 2) -> str:
        """Format a number with this many decimal places, or exactly if machine-readable."""
        return repr(float(value)) if self.is_machine_readable else f"{value:,.{digits}f}"

    def number_if_known(self, value: float, digits: int = 0) -> str:
        """Format a number for which 0 means unknown; return an empty string for 0."""
        if not value:
            return ""
        return self.decimal(value, digits) if digits else self.number(value)

    def percent(self, part: float, whole: float) -> str:
        """Format a ratio as a percentage."""
        return repr(100 * ratio(part, whole)) if self.is_machine_readable else f"{100 * ratio(part, whole):.2f}"

    def limit_rows(self, rows: Sequence[tuple[str, ...]], most: int = MAX_TABLE_ROWS) -> Sequence[tuple[str, ...]]:
        """Return the first rows: `most`, or more if machine-readable."""
        return rows[: _MAX_FILE_ROWS if self.is_machine_readable else most]


def table_to_json(table: ReportTable) -> list[dict[str, object]]:
    """Return the rows of a machine-readable table as objects."""
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
    """Return a table as CSV with a header row."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.heads)
    writer.writerows([_escape_formula(cell) for cell in row] for row in table.rows)
    return text.getvalue()


def _escape_formula(cell: str) -> str:
    """Prefix a cell that a spreadsheet would execute as a formula with an apostrophe (CSV injection)."""
    is_formula = cell.startswith(("=", "+", "@", "\t", "\r", "\n"))
    return (
        f"'{cell}" if is_formula or (cell[:1] == "-" and cell != "-" and isinstance(_parse_cell(cell), str)) else cell
    )


def write_text_files(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts by file name into a folder atomically, creating the folder if needed; return the paths.

    Raises:
        OSError: A file could not be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_files([folder / name for name in texts]) as files:
        for file, text in zip(files, texts.values(), strict=True):
            file.write(text.encode("utf-8", "backslashreplace"))
    return [folder / name for name in texts]
