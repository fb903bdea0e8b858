"""The decision matrix: numbers of changed and unchanged pages by the behaviour of their headers.

A `DecisionMatrix` has nine cells, one for each combination of Last-Modified and ETag. The finer cells of all indicators
are numbered as in the Rust core.
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
"""How an indicator differs between two visits. Missing means missing on both; present on only one counts as changed."""
MATRIX_CELLS: Final = tuple(f"{date[0]}{tag[0]}" for date in INDICATOR_STATES for tag in INDICATOR_STATES)
"""The nine cells: first letter of the date's state, then of the ETag's."""
_COUNT_PAIR = re.compile(r"([\d,_]+)\s*/\s*([\d,_]+)", re.ASCII)

CELL_STATES: Final = (
    ("date", ("changed", "same", "missing", "now", "back", "half")),
    ("tag", ("changed", "same", "missing", "weak", "alike", "half")),
    ("length", ("changed", "same", "missing")),
    ("digest", ("changed", "same", "missing")),
    ("cache", ("silent", "fresh", "refused", "aged")),
)
"""The indicators and the states of each, in the order of the core's numbers. docs/refresh.md explains them."""
INDICATORS: Final = ("tags", "dates", "length", "digest", "cache")
"""Refinements beyond whether date and ETag changed, in the order of the core's bits: weak ETags and ETags that differ
in notation only; dates equal to the time of the response or going back; `Content-Length`; `Repr-Digest`; caching by
`Cache-Control`, `Expires` and `Age`.
"""
ALL_INDICATORS: Final = frozenset(INDICATORS)
CELL_COUNT: Final = 6 * 6 * 3 * 3 * 4
_GROUP_STATES: Final = (
    ("changed", "same", "missing"),  # date
    ("changed", "same", "missing"),  # tag; differences in notation are ignored
    ("changed", "same", "missing"),  # digest
    ("stale", "kept"),  # whether a cache may still use the previous response
    ("sized", "resized"),  # whether the length changed
)
GROUP_COUNT: Final = 3 * 3 * 3 * 2 * 2


@dataclass(frozen=True, slots=True)
class DecisionMatrix:
    """Counts of pairs of consecutive visits.

    Attributes:
        changed: Number of pairs with different bodies, for each cell of `MATRIX_CELLS`.
        unchanged: Number of pairs with equal bodies, for each cell of `MATRIX_CELLS`.
    """

    changed: tuple[int, ...]
    unchanged: tuple[int, ...]

    @classmethod
    def from_pairs(cls, cells: Sequence[tuple[int, int]]) -> "DecisionMatrix":
        """Return the matrix of nine (changed, unchanged) pairs."""
        return cls(tuple(cell[0] for cell in cells), tuple(cell[1] for cell in cells))

    @classmethod
    def parse(cls, text: str) -> "DecisionMatrix":
        r"""Parse nine pairs `changed/unchanged`, rows by date, columns by ETag. Raises UsageError.

        Other text is ignored.

        >>> DecisionMatrix.parse("1/2 3/4 5/6\n7/8 9/10 11/12\n0/0 0/0 1,300/2").changed[-1]
        1300
        """
        pairs = _COUNT_PAIR.findall(text)
        if len(pairs) != len(MATRIX_CELLS):
            raise UsageError(f"expected nine pairs such as 165594/84440, found {len(pairs)}")
        try:
            return cls.from_pairs([(_parse_count(changed), _parse_count(unchanged)) for changed, unchanged in pairs])
        except ValueError:
            raise UsageError("expected nine pairs of whole numbers such as 165594/84440") from None

    @property
    def all_changed(self) -> int:
        """Number of changed pages."""
        return sum(self.changed)

    @property
    def all_unchanged(self) -> int:
        """Number of unchanged pages."""
        return sum(self.unchanged)

    @property
    def total(self) -> int:
        """Number of all pairs."""
        return self.all_changed + self.all_unchanged

    @property
    def used_cells(self) -> int:
        """Bit mask of the cells that are not empty. Schemes that differ only in empty cells are equivalent."""
        return sum(
            1 << bit for bit, both in enumerate(zip(self.changed, self.unchanged, strict=True)) if both != (0, 0)
        )

    def restrict_to(self, cells: Sequence[str]) -> "DecisionMatrix":
        """Return the matrix with all other cells set to zero."""
        mask = [name in cells for name in MATRIX_CELLS]
        return DecisionMatrix(
            tuple(count if is_selected else 0 for count, is_selected in zip(self.changed, mask, strict=True)),
            tuple(count if is_selected else 0 for count, is_selected in zip(self.unchanged, mask, strict=True)),
        )


def _parse_count(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))


@dataclass(frozen=True, slots=True)
class IndicatorQuality:
    """Quality of an indicator.

    Attributes:
        name: `date` or `tag`.
        present: Pairs in which it was present on at least one visit.
        missed: Changed pages for which it stayed the same.
        unnecessary: Unchanged pages for which it changed.
    """

    name: str
    present: int
    missed: int
    unnecessary: int


def measure_indicator(matrix: DecisionMatrix, name: str) -> IndicatorQuality:
    """Return the quality of `date` or `tag`.

    >>> matrix = DecisionMatrix((0, 0, 0, 5, 0, 7, 0, 0, 0), (3, 0, 0, 0, 0, 0, 0, 0, 2))
    >>> measure_indicator(matrix, "date")
    IndicatorQuality(name='date', present=15, missed=12, unnecessary=3)
    """
    position = ("date", "tag").index(name)
    states = [cell[position] for cell in MATRIX_CELLS]
    pairs = list(zip(states, matrix.changed, matrix.unchanged, strict=True))
    return IndicatorQuality(
        name,
        sum(changed + unchanged for state, changed, unchanged in pairs if state != "m"),
        sum(changed for state, changed, _ in pairs if state == "s"),
        sum(unchanged for state, _, unchanged in pairs if state == "c"),
    )


def restrict_to_both_present(matrix: DecisionMatrix) -> DecisionMatrix:
    """Return the matrix of pairs with both Last-Modified and ETag."""
    return matrix.restrict_to([cell for cell in MATRIX_CELLS if "m" not in cell])


def indicator_bits(indicators: frozenset[str]) -> int:
    """Return indicators as a bit mask for the core.

    >>> indicator_bits(frozenset(["tags", "length"]))
    5
    """
    return sum(1 << bit for bit, name in enumerate(INDICATORS) if name in indicators)


@lru_cache(maxsize=CELL_COUNT)
def format_cell(cell: int) -> str:
    """Return the states of a cell, separated by dots.

    >>> format_cell(0), format_cell(CELL_COUNT - 1)
    ('changed.changed.changed.changed.silent', 'half.half.missing.missing.aged')
    """
    return _format_states(cell, [states for _, states in CELL_STATES])


@lru_cache(maxsize=GROUP_COUNT)
def format_group(group: int) -> str:
    """Return the states of a group, separated by dots.

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
    """Reverse `format_group`. Raises InputError."""
    return _parse_states(name, _GROUP_STATES)


def parse_cell(name: str) -> int:
    """Reverse `format_cell`. Raises InputError.

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
    """Return the cell of two visits to a page; the first one is the last visit with a stored body.

    >>> before, now = Visit("http://a.example/", etag='"1"', time=0), Visit("http://a.example/", etag='W/"1"', time=9)
    >>> format_cell(compute_cell(before, now))
    'missing.alike.missing.missing.silent'
    """
    return visit_cell(last.row, this.row)


@lru_cache(maxsize=1 << 14)
def project_to_indicators(cell: int, bits: int) -> tuple[int, int, int]:
    """Return the cell restricted to these indicators, its index in the decision matrix, and its group.

    A group is a set of cells within which the past behaviour of a host predicts its future behaviour.
    """
    return project_cell(cell, bits)
