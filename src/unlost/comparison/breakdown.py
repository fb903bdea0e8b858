"""A comparison by media type, path depth, query and age."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import NamedTuple

from unlost.comparison.compare import Comparison, ComparisonOutcome
from unlost.comparison.site import ResourceColumns
from unlost.dates import to_datetime
from unlost.errors import DateError
from unlost.media_types import UNKNOWN_TYPE, group_of
from unlost.uri.names import path_depth

_MAX_TYPES = 40  # rows of types: there are about so many that mean anything, and headers can have any
_MAX_LABEL_LENGTH = 80  # of a type
_MAX_DEPTH = 10  # the last row of depths

_DAY = 86_400  # seconds
_AGES = ((7, "under a week"), (30, "a week to a month"), (365, "a month to a year"), (5 * 365, "1 to 5 years"))
_LIMITS = [days * _DAY for days, _ in _AGES]
_OLDER = "over 5 years"


@dataclass(frozen=True, slots=True)
class BreakdownRow:
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

        >>> BreakdownRow("images", identical=1, changed=1, missing=2).share
        0.5
        """
        return self.recovered / self.original if self.original else None


@dataclass(frozen=True, slots=True)
class BreakdownTable:
    """Rows by one property. What was added is in none: the original has nothing of it.

    name: one word, for programs. title: for people. has_formats: whether it tells canonical and migrated ones apart.
    """

    name: str
    title: str
    rows: tuple[BreakdownRow, ...]
    has_formats: bool = False


_GROUPS = ("HTML", "images", "other")
_DEPTHS = (*(str(depth) for depth in range(_MAX_DEPTH)), f"{_MAX_DEPTH} or more")
_QUERIES = ("without ?", "with ?")
_ALL_AGES = (*(label for _, label in _AGES), _OLDER, UNKNOWN_TYPE)

_OutcomeKey = tuple[ComparisonOutcome, bool, bool, bool | None]
"""What became of a resource: its outcome, whether it is similar, held, migrated. There are few different ones."""

_IDENTICAL: _OutcomeKey = (ComparisonOutcome.IDENTICAL, False, False, False)


class _ResourceGroup(NamedTuple):
    """What tables tell resources apart by."""

    mime: str | None
    depth: str
    query: str
    age: str


def breakdowns(comparison: Comparison) -> tuple[BreakdownTable, ...]:
    """Return the tables: by group of types, type, depth, query and age."""
    columns = comparison.original.columns()
    fates = {each.name: (each.outcome, each.similar, each.held, each.migrated) for each in comparison.different}
    labels = zip(columns.mimes, map(_depth, columns.names), map(_query, columns.uris), age_labels(columns), strict=True)
    # There are far fewer kinds than resources, so all tables are made from these.
    counted = Counter(zip(labels, (fates.get(name, _IDENTICAL) for name in columns.names), strict=True))
    kinds = [(_ResourceGroup(*kind), fate, count) for (kind, fate), count in counted.items()]

    def rows(label: Callable[[_ResourceGroup], str]) -> dict[str, BreakdownRow]:
        return _group_rows((label(kind), fate, count) for kind, fate, count in kinds)

    return (
        BreakdownTable(
            "group", "HTML, images, other", _in_order(rows(lambda kind: group_of(_mime(kind))), _GROUPS), True
        ),
        BreakdownTable("type", "Media type", _most_frequent(rows(lambda kind: _mime(kind)[:_MAX_LABEL_LENGTH])), True),
        BreakdownTable("depth", "Depth of the path", _in_order(rows(lambda kind: kind.depth), _DEPTHS)),
        BreakdownTable("query", "Query", _in_order(rows(lambda kind: kind.query), _QUERIES)),
        BreakdownTable("age", "Age", _in_order(rows(lambda kind: kind.age), _ALL_AGES)),
    )


def _group_rows(labelled: Iterable[tuple[str, _OutcomeKey, int]]) -> dict[str, BreakdownRow]:
    """Return the rows by their labels. Equal ones are counted first, and then added: most are."""
    counted: Counter[tuple[str, _OutcomeKey]] = Counter()
    for label, fate, count in labelled:
        counted[label, fate] += count
    found: dict[str, BreakdownRow] = {}
    for (label, fate), count in counted.items():
        found[label] = _add_rows(found.get(label, BreakdownRow(label)), _make_row(fate, count))
    return found


def _make_row(fate: _OutcomeKey, count: int) -> BreakdownRow:
    outcome, similar, held, migrated = fate
    is_back = outcome is not ComparisonOutcome.MISSING
    return BreakdownRow(
        "",
        **{outcome.value: count},
        similar=count if similar else 0,
        held=count if held else 0,
        canonical=count if is_back and migrated is False else 0,
        migrated=count if is_back and migrated is True else 0,
    )


def _add_rows(first: BreakdownRow, second: BreakdownRow) -> BreakdownRow:
    """Return both as one row, with the label of the first."""
    return replace(first, **{name: getattr(first, name) + getattr(second, name) for name in _COUNTED})


_COUNTED = ("identical", "changed", "similar", "missing", "held", "canonical", "migrated")


def _in_order(rows: Mapping[str, BreakdownRow], order: Iterable[str]) -> tuple[BreakdownRow, ...]:
    """Return the rows that have anything in them."""
    return tuple(rows[label] for label in order if label in rows)


def _most_frequent(rows: Mapping[str, BreakdownRow]) -> tuple[BreakdownRow, ...]:
    """Return the rows, the most frequent first; rare ones are one row if there are very many."""
    ordered = sorted(rows.values(), key=lambda row: (-row.original, row.label))
    shown, rest = ordered[:_MAX_TYPES], ordered[_MAX_TYPES:]
    if rest:
        shown.append(reduce(_add_rows, rest, BreakdownRow(f"{len(rest):,} other types")))
    return tuple(shown)


def _depth(name: str) -> str:
    return _DEPTHS[min(path_depth(name), _MAX_DEPTH)]


def _query(uri: str) -> str:
    return "with ?" if "?" in uri.partition("#")[0] else "without ?"


def _mime(kind: _ResourceGroup) -> str:
    return kind.mime or UNKNOWN_TYPE


def age_labels(columns: ResourceColumns) -> list[str]:
    """Return in words how old each resource of a site was when that was last looked at.

    That is the latest date of a copy in it; in a folder, where there are none, the latest change. Ages are counted from
    the older of a resource's copy and its last change; `unknown` without either.
    """
    seen = list(map(_date_seconds, columns.datetimes))
    changed = list(map(_date_seconds, columns.modified))
    last = max(filter(None, seen), default=None) or max(filter(None, changed), default=None)
    return [_age(one or other, other or one, last) for one, other in zip(seen, changed, strict=True)]


def _age(seen: int | None, changed: int | None, last: int | None) -> str:
    """Return in words how long before the last moment the first of two was."""
    if seen is None or changed is None or last is None:
        return UNKNOWN_TYPE
    return _ALL_AGES[bisect_right(_LIMITS, last - min(seen, changed))]


def _date_seconds(digits: int) -> int | None:
    """Return a number of 14 digits as seconds, which are never 0; None for what is no date: servers write anything."""
    minute, second = divmod(digits, 100)
    seconds = _seconds(minute)
    # A leap second is the second before it, as in `unlost.dates`.
    return None if seconds is None or second > 60 else seconds + min(second, 59)


@lru_cache(maxsize=1 << 16)
def _seconds(minute: int) -> int | None:
    """Return the seconds from the day before the year 1 to a minute of 12 digits; None if it is none."""
    try:
        found = to_datetime(f"{minute:012d}00")
    except DateError:
        return None
    return found.toordinal() * _DAY + found.hour * 3_600 + found.minute * 60
