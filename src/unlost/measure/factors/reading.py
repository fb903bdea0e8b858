"""Reads recoveries once, as rows of numbers and as counts of what came back in each group."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path

from unlost.dates import to_datetime
from unlost.errors import DateError, InputError
from unlost.measure.factors.factor import (
    FACTORS,
    NUMERIC_FACTORS,
    TLDS,
    TYPES,
    UrlFeatures,
    extract_url_features,
    log10_or_unknown,
)
from unlost.measure.factors.rows import UNKNOWN_VALUE, ColumnFile
from unlost.recover.state.linked import LinkedResource
from unlost.recover.state.reading import StateReader
from unlost.uri.naming import path_depth

FACTOR_COLUMNS = (
    *(factor.name for factor in FACTORS[:NUMERIC_FACTORS]),
    *(f"type: {kind}" for kind in TYPES[1:]),
    *(f"domain: {tld}" for tld in TLDS[1:]),
    "came back",
)
"""The columns of rows: factors with numbers, one of 0 and 1 for each type but pages and for each domain but com, and
last what is to be explained."""

_YEAR_DAYS = 365.25  # days


@dataclass(slots=True)
class FactorCounts:
    """What was read, beside the rows.

    sites: folder, resources, and how many of them came back. came, all: by factor and group, how many came back, and
        of how many; the group of a number is the place of its mark.
    """

    recoveries: list[tuple[str, int, int]] = field(default_factory=list)
    recovered: Counter[tuple[str, int | str]] = field(default_factory=Counter)
    total: Counter[tuple[str, int | str]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class ExternalFactorData:
    """What others know. ranks, backlinks: by host. sizes: bytes of originals by the names of resources."""

    ranks: Mapping[str, float] = field(default_factory=dict)
    backlinks: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def recovered_hosts(folders: Sequence[Path]) -> set[str]:
    """Return the hosts whose resources recoveries looked for. Raises InputError, OSError."""
    found: set[str] = set()
    for folder in folders:
        with StateReader(folder) as state:
            found |= {extract_url_features(each.uri, each.link_kind).host for each in state.linked_resources()}
    return found - {""}


def read_factor_rows(folders: Sequence[Path], rows: ColumnFile, external: ExternalFactorData) -> FactorCounts:
    """Put every resource of recoveries into rows; return what else there is to say. Raises InputError, OSError."""
    gathered = FactorCounts()
    places = {folder.resolve() for folder in folders}
    if len(places) < len(folders):
        raise InputError("a recovery is named twice: name each once")
    for folder in folders:
        with StateReader(folder) as state:
            _add_site(folder, state, rows, external, gathered)
    return gathered


def _add_site(
    folder: Path, state: StateReader, rows: ColumnFile, known: ExternalFactorData, gathered: FactorCounts
) -> None:
    counts = state.counts()
    size = counts.get("recovered", 0) + counts.get("missing", 0)
    born = state.captures_by_year()[1:]
    birth_rate = sum(new / count for count, new in born) / len(born) if born else UNKNOWN_VALUE
    last = state.last_capture_datetime()
    came = total = 0
    for each in state.linked_resources():
        parts = extract_url_features(each.uri, each.link_kind)
        numbers = (
            log10_or_unknown(known.backlinks.get(parts.host), 1),
            log10_or_unknown(each.links, 1),
            log10_or_unknown(known.ranks.get(parts.host)),
            float(each.hops),
            float(path_depth(each.name)),
            float(parts.parameters),
            _years_between(each.since, last),
            birth_rate,
            log10_or_unknown(size),
            log10_or_unknown(known.sizes.get(each.name), 1),
        )
        _add_resource(each, parts, numbers, rows, gathered)
        total += 1
        came += each.is_recovered
    gathered.recoveries.append((str(folder), total, came))


def _add_resource(
    each: LinkedResource, parts: UrlFeatures, numbers: Sequence[float], rows: ColumnFile, gathered: FactorCounts
) -> None:
    types = (float(parts.kind == kind) for kind in TYPES[1:])
    domains = (float(parts.tld == tld) for tld in TLDS[1:])
    rows.add((*numbers, *types, *domains, float(each.is_recovered)))
    groups: list[tuple[str, int | str]] = [("type", parts.kind), ("top-level domain", parts.tld)]
    for factor, value in zip(FACTORS, numbers, strict=False):
        if not isnan(value):
            groups.append((factor.name, max(0, bisect_right(factor.bin_edges, value + 1e-9) - 1)))
    gathered.total.update(groups)
    if each.is_recovered:
        gathered.recovered.update(groups)


def _years_between(first: str | None, last: str | None) -> float:
    try:
        days = (to_datetime(last) - to_datetime(first)).days if first and last else None
    except (DateError, TypeError):
        return UNKNOWN_VALUE
    return UNKNOWN_VALUE if days is None else max(0, days) / _YEAR_DAYS
