"""A comparison by what resources are: their type, how deep they lie, whether they have a query, how old they are."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, reduce

from unlost.dates import to_datetime
from unlost.errors import DateError
from unlost.formats.media_types import UNKNOWN, group_of
from unlost.measure.comparison import Compared, Comparison, Outcome

_MOST_TYPES = 40  # rows of types: there are about so many that mean anything, and headers can have any
_MOST_LETTERS = 80  # of a type
_DEEPEST = 10  # the last row of depths

_AGES = ((7, "under a week"), (30, "a week to a month"), (365, "a month to a year"), (5 * 365, "1 to 5 years"))
_OLDER = "over 5 years"


@dataclass(frozen=True, slots=True)
class Row:
    """Resources of the original that have something in common, and what became of them.

    similar: of the changed. held: of the missing. migrated, canonical: of those that came back: in another format, or
    in their own; the format of the rest is not known.
    """

    label: str
    identical: int = 0
    changed: int = 0
    similar: int = 0
    missing: int = 0
    held: int = 0
    canonical: int = 0
    migrated: int = 0

    @property
    def original(self) -> int:
        """How many the original has."""
        return self.identical + self.changed + self.missing

    @property
    def recovered(self) -> int:
        """How many came back, changed or not."""
        return self.identical + self.changed

    @property
    def share(self) -> float | None:
        """The share that came back; None of nothing.

        >>> Row("images", identical=1, changed=1, missing=2).share
        0.5
        """
        return self.recovered / self.original if self.original else None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows by one property. What was added is in none: the original has nothing of it.

    name: one word, for programs. title: for people. has_formats: whether it tells canonical and migrated ones apart.
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    has_formats: bool = False


_GROUPS = ("HTML", "images", "other")
_DEPTHS = (*(str(depth) for depth in range(_DEEPEST)), f"{_DEEPEST} or more")
_QUERIES = ("without ?", "with ?")
_ALL_AGES = (*(label for _, label in _AGES), _OLDER, UNKNOWN)

_Fate = tuple[Outcome, bool, bool, bool | None]
"""What became of a resource: its outcome, whether it is similar, held, migrated. There are few different ones."""


def breakdowns(comparison: Comparison) -> tuple[Table, ...]:
    """Return the tables: by group of types, type, depth, query and age."""
    all_of = [each for each in comparison.resources if each.outcome is not Outcome.ADDED]
    fates = [(each.outcome, each.similar, each.held, each.migrated) for each in all_of]

    def rows(label: Callable[[Compared], str]) -> dict[str, Row]:
        return _rows(zip(map(label, all_of), fates, strict=True))

    return (
        Table("group", "HTML, images, other", _in_order(rows(lambda each: group_of(each.mime)), _GROUPS), True),
        Table("type", "Media type", _most_frequent(rows(lambda each: each.mime[:_MOST_LETTERS])), True),
        Table("depth", "Depth of the path", _in_order(rows(_depth), _DEPTHS)),
        Table("query", "Query", _in_order(rows(_query), _QUERIES)),
        Table("age", "Age", _in_order(rows(Ages(all_of).of), _ALL_AGES)),
    )


def _rows(labelled: Iterable[tuple[str, _Fate]]) -> dict[str, Row]:
    """Return the rows by their labels. Equal ones are counted first, and then added: most are."""
    found: dict[str, Row] = {}
    for (label, fate), count in Counter(labelled).items():
        found[label] = _sum(found.get(label, Row(label)), _row_of(fate, count))
    return found


def _row_of(fate: _Fate, count: int) -> Row:
    outcome, similar, held, migrated = fate
    is_back = outcome is not Outcome.MISSING
    return Row(
        "",
        **{outcome.value: count},
        similar=count if similar else 0,
        held=count if held else 0,
        canonical=count if is_back and migrated is False else 0,
        migrated=count if is_back and migrated is True else 0,
    )


def _sum(first: Row, second: Row) -> Row:
    """Return both as one row, with the label of the first."""
    return replace(first, **{name: getattr(first, name) + getattr(second, name) for name in _COUNTED})


_COUNTED = ("identical", "changed", "similar", "missing", "held", "canonical", "migrated")


def _in_order(rows: Mapping[str, Row], order: Iterable[str]) -> tuple[Row, ...]:
    """Return the rows that have anything in them."""
    return tuple(rows[label] for label in order if label in rows)


def _most_frequent(rows: Mapping[str, Row]) -> tuple[Row, ...]:
    """Return the rows, the most frequent first; rare ones are one row if there are very many."""
    ordered = sorted(rows.values(), key=lambda row: (-row.original, row.label))
    shown, rest = ordered[:_MOST_TYPES], ordered[_MOST_TYPES:]
    if rest:
        shown.append(reduce(_sum, rest, Row(f"{len(rest):,} other types")))
    return tuple(shown)


def depth_of(name: str) -> int:
    """Return how many segments the path of a page has, by its name.

    >>> [depth_of(name) for name in ("a.example/", "a.example/~bar", "a.example/~bar/x.html?y=/z/")]
    [0, 1, 2]
    """
    path = name.partition("?")[0].partition("/")[2]
    return sum(segment != "" for segment in path.split("/"))


def _depth(each: Compared) -> str:
    depth = depth_of(each.name)
    return str(depth) if depth < _DEEPEST else f"{_DEEPEST} or more"


def _query(each: Compared) -> str:
    return "with ?" if "?" in each.uri.partition("#")[0] else "without ?"


class Ages:
    """How old resources of a site were when it was last looked at.

    That is the latest date of a copy in it; in a folder, where there are none, the latest change.
    """

    def __init__(self, resources: Iterable[Compared]) -> None:
        """resources: all of the original."""
        found = [each.resource for each in resources]
        seen = _moments(each.datetime for each in found)
        self._last = max(seen, default=None) or max(_moments(each.modified for each in found), default=None)

    def of(self, each: Compared) -> str:
        """Return its age in words: since the older of its copy and its last change; `unknown` without either."""
        known = _moments((each.resource.datetime, each.resource.modified))
        if not known or self._last is None:
            return UNKNOWN
        days = (self._last - min(known)).total_seconds() / 86_400
        return next((label for limit, label in _AGES if days < limit), _OLDER)


def _moments(found: Iterable[str | None]) -> list[datetime]:
    """Return the dates that there are."""
    return [moment for digits in found if digits and (moment := _moment(digits)) is not None]


@lru_cache(maxsize=1 << 16)
def _moment(digits: str) -> datetime | None:
    """Return a date; None for what is none: servers write anything into the place of one."""
    try:
        return to_datetime(digits)
    except DateError:
        return None
