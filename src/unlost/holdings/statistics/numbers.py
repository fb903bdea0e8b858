"""How numbers are written in tables: for people, or for programs."""

from collections.abc import Sequence

MOST_ROWS = 15
"""Of a table for people whose rows are without end; files have more."""

_MOST_IN_FILES = 10_000


def ratio(part: float, whole: float) -> float:
    """Return a share, 0 of nothing."""
    return part / whole if whole else 0.0


class Shown:
    """How numbers are written. whole: for programs, without commas and with all digits."""

    def __init__(self, *, whole: bool) -> None:
        self.is_whole = whole

    def number(self, value: float) -> str:
        """Return a count."""
        return str(value) if self.is_whole else f"{value:,}"

    def real(self, value: float, digits: int = 2) -> str:
        """Return a number with so many digits, all of them for programs."""
        return repr(float(value)) if self.is_whole else f"{value:,.{digits}f}"

    def known(self, value: float, digits: int = 0) -> str:
        """Return a number that is never 0 where it is known, empty where it is not."""
        if not value:
            return ""
        return self.real(value, digits) if digits else self.number(value)

    def percent(self, part: float, whole: float) -> str:
        """Return a share in per cent."""
        return repr(100 * ratio(part, whole)) if self.is_whole else f"{100 * ratio(part, whole):.2f}"

    def cut(self, rows: Sequence[tuple[str, ...]], most: int = MOST_ROWS) -> Sequence[tuple[str, ...]]:
        """Return the first rows: so many for people."""
        return rows[: _MOST_IN_FILES if self.is_whole else most]
