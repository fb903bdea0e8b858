"""The result of a comparison by media type, path depth, query and age."""

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

_MAX_TYPES = 40  # rows of media types; sites hardly have more real ones, but servers may send any text
_MAX_LABEL_LENGTH = 80
_MAX_DEPTH = 10  # deeper paths share one row

_DAY = 86_400  # seconds
_AGES = ((7, "under a week"), (30, "a week to a month"), (365, "a month to a year"), (5 * 365, "1 to 5 years"))
_LIMITS = [days * _DAY for days, _ in _AGES]
_OLDER = "over 5 years"


@dataclass(frozen=True, slots=True)
class BreakdownRow:
    """Resources of the original with a common property, counted by outcome.

    Attributes:
        label: The property.
        identical: Recovered unchanged.
        changed: Recovered with changes.
        similar: Changed, but with almost identical text.
        missing: Not recovered.
        held: Missing, but known to be in an archive.
        canonical: Recovered in the original format.
        migrated: Recovered in another format. The format of the other recovered resources is unknown.
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
        """Number of resources in the original."""
        return self.identical + self.changed + self.missing

    @property
    def recovered(self) -> int:
        """Number of resources that were recovered, changed or not."""
        return self.identical + self.changed

    @property
    def share(self) -> float | None:
        """The recovered share; None without resources.

        >>> BreakdownRow("images", identical=1, changed=1, missing=2).share
        0.5
        """
        return self.recovered / self.original if self.original else None


@dataclass(frozen=True, slots=True)
class BreakdownTable:
    """Resources grouped by one property. Added resources are not counted, since the original does not have them.

    Attributes:
        name: Machine-readable name.
        title: Human-readable title.
        rows: The groups.
        has_formats: Whether `canonical` and `migrated` are meaningful.
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
"""Outcome of a resource, and whether it is similar, held, migrated. Only a few combinations occur."""

_IDENTICAL: _OutcomeKey = (ComparisonOutcome.IDENTICAL, False, False, False)


class _ResourceGroup(NamedTuple):
    """The properties by which resources are grouped."""

    mime: str | None
    depth: str
    query: str
    age: str


def breakdowns(comparison: Comparison) -> tuple[BreakdownTable, ...]:
    """Return the tables by media type group, media type, depth, query and age."""
    columns = comparison.original.columns()
    outcomes = {each.name: (each.outcome, each.similar, each.held, each.migrated) for each in comparison.different}
    labels = zip(columns.mimes, map(_depth, columns.names), map(_query, columns.uris), age_labels(columns), strict=True)
    # There are far fewer combinations than resources, so they are counted once for all tables.
    counts = Counter(zip(labels, (outcomes.get(name, _IDENTICAL) for name in columns.names), strict=True))
    groups = [(_ResourceGroup(*group), outcome, count) for (group, outcome), count in counts.items()]

    def rows(label: Callable[[_ResourceGroup], str]) -> dict[str, BreakdownRow]:
        return _group_rows((label(group), outcome, count) for group, outcome, count in groups)

    return (
        BreakdownTable(
            "group", "HTML, images, other", _in_order(rows(lambda group: group_of(_mime(group))), _GROUPS), True
        ),
        BreakdownTable(
            "type", "Media type", _most_frequent(rows(lambda group: _mime(group)[:_MAX_LABEL_LENGTH])), True
        ),
        BreakdownTable("depth", "Path depth", _in_order(rows(lambda group: group.depth), _DEPTHS)),
        BreakdownTable("query", "Query", _in_order(rows(lambda group: group.query), _QUERIES)),
        BreakdownTable("age", "Age", _in_order(rows(lambda group: group.age), _ALL_AGES)),
    )


def _group_rows(labelled: Iterable[tuple[str, _OutcomeKey, int]]) -> dict[str, BreakdownRow]:
    """Return the rows by label. Equal outcomes are counted before rows are added, since most are equal."""
    counts: Counter[tuple[str, _OutcomeKey]] = Counter()
    for label, outcome, count in labelled:
        counts[label, outcome] += count
    rows: dict[str, BreakdownRow] = {}
    for (label, outcome), count in counts.items():
        rows[label] = _add_rows(rows.get(label, BreakdownRow(label)), _make_row(outcome, count))
    return rows


def _make_row(key: _OutcomeKey, count: int) -> BreakdownRow:
    outcome, similar, held, migrated = key
    is_recovered = outcome is not ComparisonOutcome.MISSING
    return BreakdownRow(
        "",
        **{outcome.value: count},
        similar=count if similar else 0,
        held=count if held else 0,
        canonical=count if is_recovered and migrated is False else 0,
        migrated=count if is_recovered and migrated is True else 0,
    )


def _add_rows(first: BreakdownRow, second: BreakdownRow) -> BreakdownRow:
    """Return the sum of two rows, with the label of the first."""
    return replace(first, **{name: getattr(first, name) + getattr(second, name) for name in _COUNTED})


_COUNTED = ("identical", "changed", "similar", "missing", "held", "canonical", "migrated")


def _in_order(rows: Mapping[str, BreakdownRow], order: Iterable[str]) -> tuple[BreakdownRow, ...]:
    """Return the rows in a fixed order."""
    return tuple(rows[label] for label in order if label in rows)


def _most_frequent(rows: Mapping[str, BreakdownRow]) -> tuple[BreakdownRow, ...]:
    """Return the rows by size. Rows beyond `_MAX_TYPES` are merged into one."""
    ordered = sorted(rows.values(), key=lambda row: (-row.original, row.label))
    shown, others = ordered[:_MAX_TYPES], ordered[_MAX_TYPES:]
    if others:
        shown.append(reduce(_add_rows, others, BreakdownRow(f"{len(others):,} other types")))
    return tuple(shown)


def _depth(name: str) -> str:
    return _DEPTHS[min(path_depth(name), _MAX_DEPTH)]


def _query(uri: str) -> str:
    return "with ?" if "?" in uri.partition("#")[0] else "without ?"


def _mime(group: _ResourceGroup) -> str:
    return group.mime or UNKNOWN_TYPE


def age_labels(columns: ResourceColumns) -> list[str]:
    """Return the age of each resource as text.

    The age is counted from the older of a resource's capture date and its last modification, until the latest capture
    of the site; in a directory, which has no captures, until the latest modification. It is `unknown` without any date.
    """
    captured = list(map(_date_seconds, columns.datetimes))
    modified = list(map(_date_seconds, columns.modified))
    last = max(filter(None, captured), default=None) or max(filter(None, modified), default=None)
    return [
        _age(capture or modification, modification or capture, last)
        for capture, modification in zip(captured, modified, strict=True)
    ]


def _age(captured: int | None, modified: int | None, last: int | None) -> str:
    """Return the age at `last` of a resource, given two dates in seconds."""
    if captured is None or modified is None or last is None:
        return UNKNOWN_TYPE
    return _ALL_AGES[bisect_right(_LIMITS, last - min(captured, modified))]


def _date_seconds(digits: int) -> int | None:
    """Return a date of 14 digits in seconds, never 0; None for an invalid date, which servers may send."""
    minute, second = divmod(digits, 100)
    seconds = _seconds(minute)
    # A leap second counts as the second before it, as in `unlost.dates`.
    return None if seconds is None or second > 60 else seconds + min(second, 59)


@lru_cache(maxsize=1 << 16)
def _seconds(minute: int) -> int | None:
    """Return the seconds from the day before year 1 until a minute of 12 digits; None if it is invalid."""
    try:
        parsed = to_datetime(f"{minute:012d}00")
    except DateError:
        return None
    return parsed.toordinal() * _DAY + parsed.hour * 3_600 + parsed.minute * 60
