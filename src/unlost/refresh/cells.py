"""Cells of all indicators: names for them, and how many indicators tell them apart."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from unlost._core import project_cell, visit_cell
from unlost.errors import InputError
from unlost.refresh.visit import Visit

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

    >>> bits_of(frozenset(["tags", "length"]))
    5
    """
    return sum(1 << at for at, name in enumerate(INDICATORS) if name in indicators)


@lru_cache(maxsize=CELL_COUNT)
def format_cell(cell: int) -> str:
    """Return the states of a cell, between dots.

    >>> cell_name(0), cell_name(COUNT - 1)
    ('changed.changed.changed.changed.silent', 'half.half.missing.missing.aged')
    """
    return _format_states(cell, [states for _, states in CELL_STATES])


@lru_cache(maxsize=GROUP_COUNT)
def format_group(group: int) -> str:
    """Return the states of a group, between dots.

    >>> group_name(0), group_name(GROUPS - 1)
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

    >>> cell_number("half.half.missing.missing.aged") == COUNT - 1
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
    >>> cell_name(cell_of(before, now))
    'missing.alike.missing.missing.silent'
    """
    return visit_cell(last.row, this.row)


@lru_cache(maxsize=1 << 14)
def project_to_indicators(cell: int, bits: int) -> tuple[int, int, int]:
    """Return the cell with these indicators alone, the one of the nine of `unlost.refresh.matrix`, and its group.

    In a group, what a host did before tells what it will do.
    """
    return project_cell(cell, bits)
