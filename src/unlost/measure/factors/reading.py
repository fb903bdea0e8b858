"""Reads recoveries once, as rows of numbers and as counts of what came back in each group."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path

from unlost.dates import to_datetime
from unlost.errors import DateError, InputError
from unlost.measure.factors.factor import FACTORS, NUMBERS, TLDS, TYPES, Parts, parts_of, power
from unlost.measure.factors.rows import UNKNOWN, Rows
from unlost.recover.state.linked import Linked
from unlost.recover.state.reading import StateReading
from unlost.uri.naming import path_depth

COLUMNS = (
    *(factor.name for factor in FACTORS[:NUMBERS]),
    *(f"type: {kind}" for kind in TYPES[1:]),
    *(f"domain: {tld}" for tld in TLDS[1:]),
    "came back",
)
"""The columns of rows: factors with numbers, one of 0 and 1 for each type but pages and for each domain but com, and
last what is to be explained."""

_YEAR = 365.25  # days


@dataclass(slots=True)
class Gathered:
    """What was read, beside the rows.

    sites: folder, resources, and how many of them came back. came, all: by factor and group, how many came back, and
        of how many; the group of a number is the place of its mark.
    """

    sites: list[tuple[str, int, int]] = field(default_factory=list)
    came: Counter[tuple[str, int | str]] = field(default_factory=Counter)
    all: Counter[tuple[str, int | str]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Known:
    """What others know. ranks, backlinks: by host. sizes: bytes of originals by the names of resources."""

    ranks: Mapping[str, float] = field(default_factory=dict)
    backlinks: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def hosts_of(folders: Sequence[Path]) -> set[str]:
    """Return the hosts whose resources recoveries looked for. Raises InputError, OSError."""
    found: set[str] = set()
    for folder in folders:
        with StateReading(folder) as state:
            found |= {parts_of(each.uri, each.use).host for each in state.linked()}
    return found - {""}


def gather(folders: Sequence[Path], rows: Rows, known: Known) -> Gathered:
    """Put every resource of recoveries into rows; return what else there is to say. Raises InputError, OSError."""
    gathered = Gathered()
    places = {folder.resolve() for folder in folders}
    if len(places) < len(folders):
        raise InputError("a recovery is named twice: name each once")
    for folder in folders:
        with StateReading(folder) as state:
            _add_site(folder, state, rows, known, gathered)
    return gathered


def _add_site(folder: Path, state: StateReading, rows: Rows, known: Known, gathered: Gathered) -> None:
    counts = state.counts()
    size = counts.get("recovered", 0) + counts.get("missing", 0)
    born = state.births()[1:]
    birth_rate = sum(new / count for count, new in born) / len(born) if born else UNKNOWN
    last = state.last_copy()
    came = total = 0
    for each in state.linked():
        parts = parts_of(each.uri, each.use)
        numbers = (
            power(known.backlinks.get(parts.host), 1),
            power(each.links, 1),
            power(known.ranks.get(parts.host)),
            float(each.hops),
            float(path_depth(each.name)),
            float(parts.parameters),
            _years(each.since, last),
            birth_rate,
            power(size),
            power(known.sizes.get(each.name), 1),
        )
        _add(each, parts, numbers, rows, gathered)
        total += 1
        came += each.is_recovered
    gathered.sites.append((str(folder), total, came))


def _add(each: Linked, parts: Parts, numbers: Sequence[float], rows: Rows, gathered: Gathered) -> None:
    types = (float(parts.kind == kind) for kind in TYPES[1:])
    domains = (float(parts.tld == tld) for tld in TLDS[1:])
    rows.add((*numbers, *types, *domains, float(each.is_recovered)))
    groups: list[tuple[str, int | str]] = [("type", parts.kind), ("top-level domain", parts.tld)]
    for factor, value in zip(FACTORS, numbers, strict=False):
        if not isnan(value):
            groups.append((factor.name, max(0, bisect_right(factor.marks, value + 1e-9) - 1)))
    gathered.all.update(groups)
    if each.is_recovered:
        gathered.came.update(groups)


def _years(first: str | None, last: str | None) -> float:
    try:
        days = (to_datetime(last) - to_datetime(first)).days if first and last else None
    except (DateError, TypeError):
        return UNKNOWN
    return UNKNOWN if days is None else max(0, days) / _YEAR
