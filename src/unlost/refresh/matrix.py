"""The decision matrix: how many pages had changed and how many had not, by what date and tag claim."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from unlost.errors import UsageError

INDICATOR_STATES: Final = ("changed", "same", "missing")
"""What an indicator does between two visits. There on one of them only counts as changed."""

MATRIX_CELLS: Final = tuple(f"{date[0]}{tag[0]}" for date in INDICATOR_STATES for tag in INDICATOR_STATES)
"""The nine cells: what the date does, then what the tag does, by their first letters."""

_COUNT_PAIR = re.compile(r"([\d,_]+)\s*/\s*([\d,_]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class DecisionMatrix:
    """Counts of pairs of consecutive visits.

    changed, unchanged: for each cell of `CELLS`, how many pages had a new body, and how many the same.
    """

    changed: tuple[int, ...]
    unchanged: tuple[int, ...]

    @classmethod
    def from_pairs(cls, cells: Sequence[tuple[int, int]]) -> "DecisionMatrix":
        """Return the matrix of nine pairs of numbers."""
        return cls(tuple(cell[0] for cell in cells), tuple(cell[1] for cell in cells))

    @classmethod
    def parse(cls, text: str) -> "DecisionMatrix":
        r"""Return the matrix that a text has: nine pairs `changed/unchanged`, rows by date, columns by tag.

        Whatever else stands between them is not looked at, so that a table can be copied as it is. Raises UsageError.

        >>> Matrix.parse("1/2 3/4 5/6\n7/8 9/10 11/12\n0/0 0/0 1,300/2").changed[-1]
        1300
        """
        found = _COUNT_PAIR.findall(text)
        if len(found) != len(MATRIX_CELLS):
            raise UsageError(f"expected nine pairs such as 165594/84440, found {len(found)}")
        try:
            return cls.from_pairs([(_parse_count(changed), _parse_count(unchanged)) for changed, unchanged in found])
        except ValueError:
            raise UsageError("expected nine pairs of whole numbers such as 165594/84440") from None

    @property
    def all_changed(self) -> int:
        """Pages that had changed."""
        return sum(self.changed)

    @property
    def all_unchanged(self) -> int:
        """Pages that had not."""
        return sum(self.unchanged)

    @property
    def total(self) -> int:
        """All pairs."""
        return self.all_changed + self.all_unchanged

    @property
    def used_cells(self) -> int:
        """The cells that hold anything, a bit for each. Schemes that differ elsewhere do the same."""
        return sum(1 << at for at, both in enumerate(zip(self.changed, self.unchanged, strict=True)) if both != (0, 0))

    def restrict_to(self, cells: Sequence[str]) -> "DecisionMatrix":
        """Return the matrix with all other cells empty."""
        kept = [name in cells for name in MATRIX_CELLS]
        return DecisionMatrix(
            tuple(count if keep else 0 for count, keep in zip(self.changed, kept, strict=True)),
            tuple(count if keep else 0 for count, keep in zip(self.unchanged, kept, strict=True)),
        )


def _parse_count(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))
