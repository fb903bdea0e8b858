"""The decision matrix: how many pages changed and how many did not, by what their headers claim.

A cell of `DecisionMatrix` is one combination of Last-Modified and ETag. The finer cells of all indicators are numbered
as in the Rust core.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from unlost._core import project_cell, visit_cell
from unlost.errors import InputError, UsageError
from unlost.refresh.visit import Visit

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

        >>> DecisionMatrix.parse("1/2 3/4 5/6\n7/8 9/10 11/12\n0/0 0/0 1,300/2").changed[-1]
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


@dataclass(frozen=True, slots=True)
class IndicatorQuality:
    """How good an indicator is, of all pairs.

    present: pairs in which it was there at least once. missed: changed pages for which it said the same.
    unnecessary: unchanged ones for which it said changed.
    """

    name: str
    present: int
    missed: int
    unnecessary: int


def measure_indicator(matrix: DecisionMatrix, name: str) -> IndicatorQuality:
    """Return how good the `date` or the `tag` is.

    >>> measure_indicator(DecisionMatrix((0, 0, 0, 5, 0, 7, 0, 0, 0), (3, 0, 0, 0, 0, 0, 0, 0, 2)), "date")
    IndicatorQuality(name='date', present=15, missed=12, unnecessary=3)
    """
    place = ("date", "tag").index(name)
    states = [cell[place] for cell in MATRIX_CELLS]
    pairs = list(zip(states, matrix.changed, matrix.unchanged, strict=True))
    return IndicatorQuality(
        name,
        sum(changed + unchanged for state, changed, unchanged in pairs if state != "m"),
        sum(changed for state, changed, _ in pairs if state == "s"),
        sum(unchanged for state, _, unchanged in pairs if state == "c"),
    )


def restrict_to_both_present(matrix: DecisionMatrix) -> DecisionMatrix:
    """Return the pairs in which date and tag are there."""
    return matrix.restrict_to([cell for cell in MATRIX_CELLS if "m" not in cell])


CELL_STATES: Final = (
    ("date", ("changed", "same", "missing", "now", "back", "half")),
    ("tag", ("changed", "same", "missing", "weak", "alike", "half")),
    ("length", ("changed", "same", "missing")),
    ("digest", ("changed", "same", "missing")),
    ("cache", ("silent", "fresh", "refused", "aged")),
)
"""The indicators and the states of each, in the order of the core's numbers. docs/refresh.md says what they mean."""
INDICATORS: Final = ("tags", "dates", "length", "digest", "cache")
"""What is looked at beside whether date and tag changed, in the order of the core's bits: tags that are weak or differ
in their spelling only; dates that are the moment of the answer or go back; `Content-Length`; `Repr-Digest`;
`Cache-Control`, `Expires` and `Age`."""
ALL_INDICATORS: Final = frozenset(INDICATORS)
CELL_COUNT: Final = 6 * 6 * 3 * 3 * 4
_GROUP_STATES: Final = (
    ("changed", "same", "missing"),  # date
    ("changed", "same", "missing"),  # tag; one that differs in its spelling only is the same
    ("changed", "same", "missing"),  # digest
    ("stale", "kept"),  # whether a cache says that it is the same
    ("sized", "resized"),  # whether the length changed
)
GROUP_COUNT: Final = 3 * 3 * 3 * 2 * 2


def indicator_bits(indicators: frozenset[str]) -> int:
    """Return indicators as the core takes them.

    >>> indicator_bits(frozenset(["tags", "length"]))
    5
    """
    return sum(1 << at for at, name in enumerate(INDICATORS) if name in indicators)


@lru_cache(maxsize=CELL_COUNT)
def format_cell(cell: int) -> str:
    """Return the states of a cell, between dots.

    >>> format_cell(0), format_cell(CELL_COUNT - 1)
    ('changed.changed.changed.changed.silent', 'half.half.missing.missing.aged')
    """
    return _format_states(cell, [states for _, states in CELL_STATES])


@lru_cache(maxsize=GROUP_COUNT)
def format_group(group: int) -> str:
    """Return the states of a group, between dots.

    >>> format_group(0), format_group(GROUP_COUNT - 1)
    ('changed.changed.changed.stale.sized', 'missing.missing.missing.kept.resized')
    """
    return _format_states(group, _GROUP_STATES)


def _format_states(number: int, indicators: Sequence[Sequence[str]]) -> str:
    names = []
    for states in reversed(indicators):
        number, state = divmod(number, len(states))
        names.append(states[state])
    return ".".join(reversed(names))


def parse_group(name: str) -> int:
    """Return the number of a group. Raises InputError."""
    return _parse_states(name, _GROUP_STATES)


def parse_cell(name: str) -> int:
    """Return the number of a cell. Raises InputError.

    >>> parse_cell("half.half.missing.missing.aged") == CELL_COUNT - 1
    True
    """
    return _parse_states(name, [states for _, states in CELL_STATES])


def _parse_states(name: str, indicators: Sequence[Sequence[str]]) -> int:
    try:
        number = 0
        for word, states in zip(name.split("."), indicators, strict=True):
            number = number * len(states) + states.index(word)
    except ValueError:
        raise InputError(f"expected states such as {_format_states(0, indicators)}, found `{name[:60]}`") from None
    return number


def compute_cell(last: Visit, this: Visit) -> int:
    """Return the cell of two visits to a page, the first of which is the last whose body is held.

    >>> before, now = Visit("http://a.example/", etag='"1"', time=0), Visit("http://a.example/", etag='W/"1"', time=9)
    >>> format_cell(compute_cell(before, now))
    'missing.alike.missing.missing.silent'
    """
    return visit_cell(last.row, this.row)


@lru_cache(maxsize=1 << 14)
def project_to_indicators(cell: int, bits: int) -> tuple[int, int, int]:
    """Return the cell with these indicators alone, its cell of the nine of the decision matrix, and its group.

    In a group, what a host did before tells what it will do.
    """
    return project_cell(cell, bits)
