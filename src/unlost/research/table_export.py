"""Number formats for tables, and tables as CSV, JSON and files in one directory."""

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

from unlost.atomic import atomic_files
from unlost.report.format import ReportTable

MAX_TABLE_ROWS = 15
"""Of a table for people whose rows are without end; files have more."""
_MAX_FILE_ROWS = 10_000


def ratio(part: float, whole: float) -> float:
    """Return a share, 0 of nothing."""
    return part / whole if whole else 0.0


class NumberFormat:
    """How numbers are written. whole: for programs, without commas and with all digits."""

    def __init__(self, *, machine_readable: bool) -> None:
        self.is_machine_readable = machine_readable

    def number(self, value: float) -> str:
        """Return a count."""
        return str(value) if self.is_machine_readable else f"{value:,}"

    def decimal(self, value: float, digits: int = 2) -> str:
        """Return a number with so many digits, all of them for programs."""
        return repr(float(value)) if self.is_machine_readable else f"{value:,.{digits}f}"

    def number_if_known(self, value: float, digits: int = 0) -> str:
        """Return a number that is never 0 where it is known, empty where it is not."""
        if not value:
            return ""
        return self.decimal(value, digits) if digits else self.number(value)

    def percent(self, part: float, whole: float) -> str:
        """Return a share in per cent."""
        return repr(100 * ratio(part, whole)) if self.is_machine_readable else f"{100 * ratio(part, whole):.2f}"

    def limit_rows(self, rows: Sequence[tuple[str, ...]], most: int = MAX_TABLE_ROWS) -> Sequence[tuple[str, ...]]:
        """Return the first rows: so many for people."""
        return rows[: _MAX_FILE_ROWS if self.is_machine_readable else most]


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
