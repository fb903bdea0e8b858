"""How numbers are written in tables: for people, or for programs."""

from collections.abc import Sequence

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
