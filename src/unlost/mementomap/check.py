"""Validates MementoMaps: order, keys, totals, expired exclusions, truncation."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from os import PathLike, fspath

from unlost import _core
from unlost.errors import InputError, UriError
from unlost.index.ukvs import Frequency, UkvsHeader, UkvsReader
from unlost.mementomap.map_file import open_map_source, refuse_unknown_version, row_expiry_date, truncation_problem
from unlost.problems import Problem, Problems
from unlost.uri import RULE_SETS, key

_WILDCARD_END = re.compile(r"[,/]?\*$")

MAP_PROBLEM_KINDS = {
    "bad-wildcard": "a `*` that does not end the key behind `,` or `/`: nothing will ever match it",
    "not-normal": "a key in another form than look-ups have: it will not be found",
    "expired": "an exclusion whose time is over; `unlost map exclude` drops it",
    "bad-total": "the `*` line says less than the others come to at least",
    "no-rows": "a map without rows",
    "unknown-rules": "the header names rules that do not exist",
}
"""Kinds of problems in addition to those of `unlost.index.ukvs`, with their messages."""


@dataclass(frozen=True, slots=True)
class MapCheckResult:
    """Result of validating a map.

    Attributes:
        header: The header, unmodified.
        lines: Number of rows, without totals.
        wildcards: Number of wildcard rows.
        exclusions: Number of exclusions.
        sum: Sum of the frequencies of the rows.
        stated: Sum of the `*` rows, one per year in a map by year; None if there are none.
        problems: Problems by kind.
        expiring: Number of exclusions with an expiry date.
        first_expiry: Earliest of these dates; None if there are none.
    """

    header: UkvsHeader
    lines: int
    wildcards: int
    exclusions: int
    sum: Frequency
    stated: Frequency | None
    problems: Problems
    expiring: int = 0
    first_expiry: date | None = None


def check_map(
    path: str | PathLike[str], today: date | None = None, on_read: Callable[[int], object] | None = None
) -> MapCheckResult:
    """Read a map to its end and report its problems.

    Args:
        path: The map.
        today: Exclusions that have expired by then are problems; None to accept all.
        on_read: Called periodically with the number of bytes read.

    Raises:
        InputError: The file cannot be read, is not a map judging by its first row, or has a later format version, so
            that look-ups reject it, too. A truncated map is not an error but a problem (`truncated`).
    """
    source = open_map_source(path)
    problems = Problems()
    reader = UkvsReader(path, problems, on_read=on_read)
    rules = str(reader.header.meta.get("rules", RULE_SETS[0]))
    name = fspath(path)
    _check_source(name, reader.header, source, problems)
    del source

    def add_problem(kind: str, message: str) -> None:
        problems.add(Problem(kind, name, None, 0, message))

    if rules not in RULE_SETS:
        add_problem("unknown-rules", f"expected {' or '.join(RULE_SETS)}, found {rules[:40]!a}")
        rules = RULE_SETS[0]
    lines = wildcards = exclusions = mementos = resources = at_least = 0
    expiring = 0
    first_expiry: date | None = None
    stated: Frequency | None = None
    is_limit = True
    for row in reader:
        surt = row.keys[0]
        frequency = row.frequency or Frequency()
        if surt == "*":
            stated = frequency if stated is None else _add_frequencies(stated, frequency)
            is_limit &= frequency.mementos is not None and frequency.mementos_bound in ("", "-")
            continue
        lines += 1
        wildcards += surt.endswith("*")
        exclusions += frequency.is_exclusion
        mementos += frequency.mementos or 0
        resources += frequency.resources or 0
        at_least += frequency.mementos or 0 if frequency.mementos_bound in ("", "+") else 0
        if day := row_expiry_date(row):
            expiring += 1
            first_expiry = min(day, first_expiry or day)
            if today is not None and day <= today:
                add_problem("expired", f"{MAP_PROBLEM_KINDS['expired']}: {surt[:60]!a}, {day}")
        if kind := _key_problem(surt, rules):
            add_problem(kind, f"{MAP_PROBLEM_KINDS[kind]}: {surt[:60]!a}")
    if not lines and stated is None:
        add_problem("no-rows", MAP_PROBLEM_KINDS["no-rows"])
    if stated is not None and is_limit and (stated.mementos or 0) < at_least:
        add_problem("bad-total", f"{MAP_PROBLEM_KINDS['bad-total']}: {stated.mementos} against {at_least}")
    total = Frequency(mementos, "", resources or None)
    return MapCheckResult(reader.header, lines, wildcards, exclusions, total, stated, problems, expiring, first_expiry)


def _check_source(name: str, header: UkvsHeader, source: _core.MapSource, problems: Problems) -> None:
    """Record a truncated map as a problem. Raises InputError for a later format version."""
    try:
        refuse_unknown_version(header)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    if message := truncation_problem(header, source):
        problems.add(Problem("truncated", name, None, 0, message))


def _add_frequencies(first: Frequency, second: Frequency) -> Frequency:
    """Return the sum of the totals of two years, ignoring their bounds."""
    resources = (first.resources or 0) + (second.resources or 0)
    return Frequency((first.mementos or 0) + (second.mementos or 0), "", resources or None)


def _key_problem(surt: str, rules: str) -> str | None:
    """Return the kind of problem that makes a key unreachable by look-ups; None if it is reachable."""
    node = _WILDCARD_END.sub("", surt)
    if "*" in node or (node != surt and surt.endswith("*") and not surt.endswith((",*", "/*"))):
        return "bad-wildcard"
    is_host = ")" not in node
    full_key = node if not is_host else f"{node})/"
    try:
        normal = key(full_key, rules)
    except UriError:
        return "not-normal"
    if is_host:
        normal = normal.removesuffix(")/")
    elif node != surt:
        normal = normal.removesuffix("/") if normal.endswith(")/") else normal
    return None if normal == node and "?" not in node else "not-normal"
