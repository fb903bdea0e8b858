"""Compacting MementoMaps to a size: the roll-ups are chosen so that as little as possible is answered wrongly."""

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike, fspath, truncate
from pathlib import Path
from shutil import copyfileobj
from typing import Literal

from unlost import _core
from unlost._core import MapShape, Progress
from unlost.errors import InputError, UsageError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.output import whole_paths
from unlost.formats.ukvs import Header, header_lines
from unlost.holdings._map_header import read_map_header, rules_of
from unlost.holdings.beside import write_filter
from unlost.holdings.compaction import Compaction
from unlost.holdings.division import divide
from unlost.holdings.map_file import with_row_bytes, write_row_bytes
from unlost.holdings.queries import QueryOptions, count_queries
from unlost.holdings.report import Report
from unlost.holdings.work import Watch, watched
from unlost.uri import RULE_SETS

GZIP_LEVEL = 6
"""Of the pinned compressor: a little larger, by up to 2 %, than `gzip -9` for all maps of the real lists."""

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
_BUDGET = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*)", re.ASCII)
_NEAR = 0.99
"""A map of so much of its budget is near enough."""
_TRIES = 10


@dataclass(frozen=True, slots=True)
class Budget:
    """How large a map may be: so many lines, headers and total not counted, or so many bytes of the compressed file.

    >>> Budget.parse("100000"), Budget.parse("1.5MB"), Budget.parse("64KiB")
    (Budget(size=100000, unit='lines'), Budget(size=1500000, unit='bytes'), Budget(size=65536, unit='bytes'))
    """

    size: int
    unit: Literal["lines", "bytes"]

    @classmethod
    def parse(cls, text: str) -> "Budget":
        """Return what was written as `100000` (lines) or `50MB`, `64KiB`, `900B` (bytes). Raises UsageError."""
        found = _BUDGET.fullmatch(text.strip())
        number, unit = found.groups() if found else ("", "")
        if found and not unit and "." not in number:
            return cls(int(number), "lines")
        if not found or unit.upper() not in _UNITS:
            raise UsageError(
                f"{text[:40]}: no budget: expected lines, such as 100000, or bytes, such as 50MB "
                "(B, KB, MB, GB of 1000; KiB, MiB, GiB of 1024)"
            )
        return cls(int(float(number) * _UNITS[unit.upper()]), "bytes")

    def text(self) -> str:
        """Return it as `parse` takes it."""
        return f"{self.size}{'B' if self.unit == 'bytes' else ''}"

    def __str__(self) -> str:
        """Return it for people."""
        return f"{self.size:,} {self.unit if self.unit == 'lines' else 'compressed bytes'}"


@dataclass(frozen=True, slots=True)
class Prior:
    """Where pages are expected that are asked for and not held, before anything is known about what was asked.

    page_discount: a node of n keys counts as n less this, so that a page alone in its folder is no sign of others.
    host: how much a host with a single page counts for where hosts are expected that nobody has heard of, as a part of
        what the map's hosts hold on average.
    host_discount: so many such hosts below a domain are no sign of others.
    beside: as many keys of unknown hosts are expected below a domain for each of its keys.
    strength: how many questions weigh as much as all this, at each node.

    Fitted on held-out pages of the real URL lists, as docs/budget.md tells.
    """

    page_discount: float = 0.9
    host_discount: float = 0.0
    host: float = 0.5
    beside: float = 0.02
    strength: float = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetOptions:
    """How a map is compacted to a budget.

    queries: files of what was asked, to learn from.
    query_options: what those are, where looking at them does not tell.
    protect_suffixes: never roll up a public suffix such as `uk,co`; a top-level domain never is.
    rollup, host_depth, path_depth: as `Compaction` has them.
    with_filter: write a filter to this file, and divide the budget between it and the map.
    made: when that is, 14 digits in UTC, for the filter's header: one that does not say how old it is denies nothing
        that a wildcard covers.
    prior: where misses are expected.
    memory: bytes of entries before temporary files are used; does not show in the result.
    """

    queries: Sequence[str | PathLike[str]] = ()
    query_options: QueryOptions = field(default_factory=QueryOptions)
    protect_suffixes: bool = True
    rollup: tuple[str, ...] = ()
    host_depth: int = 8
    path_depth: int = 9
    with_filter: str | PathLike[str] | None = None
    made: str | None = None
    prior: Prior = field(default_factory=Prior)
    memory: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if "*" in self.rollup:
            raise UsageError(
                "with everything rolled up there is nothing to choose: leave out --rollup '*' or the budget"
            )
        # It knows what is too deep, and what no wildcard is.
        Compaction(host_depth=self.host_depth, path_depth=self.path_depth, rollup=self.rollup)


@dataclass(slots=True)
class BudgetReport(Report):
    """What came of it, beside what became of the map's lines.

    size: lines, or compressed bytes of the map as it is published, without its filter.
    expected: the share of pages asked for and not held that the map is expected to answer wrongly.
    asked: how many questions were learned from; of those, missed: for pages that are not in the map.
    questions: what became of the lines of the logs.
    bits: of the filter, for each key; 0 for none.
    filter_bytes: how large the filter is.
    """

    size: int = 0
    expected: float = 0.0
    asked: int = 0
    missed: int = 0
    questions: Report = field(default_factory=Report)
    bits: int = 0
    filter_bytes: int = 0


def compact_to_budget(
    source: str | PathLike[str],
    output: str | PathLike[str],
    budget: Budget,
    options: BudgetOptions | None = None,
    watch: Watch | None = None,
) -> BudgetReport:
    """Write a map that is no larger than the budget, and covers every page that the given one covers.

    Of all such maps it is, as far as can be told, the one with the fewest wrong answers; docs/budget.md explains how.
    It depends on nothing but the map, the questions and the options. Files appear under their names once they are
    whole. Raises InputError if the source is no sorted map, UsageError if no map is that small, OSError if the output
    cannot be written.
    """
    how = options or BudgetOptions()
    if how.with_filter is not None and budget.unit != "bytes":
        raise UsageError("a filter has no lines: give the budget in bytes, such as 50MB, to divide it")
    if how.with_filter is not None and Path(how.with_filter).resolve() == Path(output).resolve():
        raise UsageError(f"{fspath(output)}: both the map and its filter: give each a name of its own")
    name = fspath(source)
    header = read_map_header(name)
    if (how.queries or how.with_filter is not None) and rules_of(header) not in RULE_SETS:
        raise InputError(
            f"{name}: made by unknown rules, {ascii(rules_of(header))[:40]}: expected {' or '.join(RULE_SETS)}"
        )
    report = BudgetReport()
    with tempfile.TemporaryDirectory(prefix="unlost-budget-") as folder:
        asked = Path(folder, "asked.ukvs") if how.queries else None
        if asked is not None:
            report.questions = count_queries(how.queries, asked, rules_of(header), how.query_options)
        with _naming(name):
            scale = _weighed(name, header, budget, how, report, asked, watch)
            if how.with_filter is not None:
                report.bits = _bits(name, scale, budget)
            while not _is_written(scale, name, header, output, budget, how, report, Path(folder, "trial")):
                # How small a map can be is estimated when the bytes are divided, and may be wrong for small ones.
                report.bits -= 1
    return report


def _is_written(
    scale: "_core.MapScale",
    name: str,
    header: Header,
    output: str | PathLike[str],
    budget: Budget,
    how: BudgetOptions,
    report: BudgetReport,
    trial_file: Path,
) -> bool:
    """Write the map, and a filter of the report's bits beside it; return whether it fits beside the filter.

    Raises UsageError if it does not fit without one.
    """
    left = budget
    report.filter_bytes = 0
    outputs = [output, *([how.with_filter] if report.bits and how.with_filter is not None else [])]
    try:
        with whole_paths(outputs) as (aside, *beside):
            for filter_file in beside:
                report.filter_bytes = write_filter(name, filter_file, report.bits, how.made)
                left = replace(budget, size=budget.size - report.filter_bytes)
            head = header_lines(with_row_bytes(_budgeted(header, budget, report)))
            trial = _Trial(name, len(header.keys), head, how.memory, trial_file, left)
            watched(lambda progress: _write(scale, left, trial, aside, report, progress))
    except UsageError:
        if not report.bits:
            raise
        return False
    return True


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say in errors which file they are about."""
    try:
        yield
    except InputError as error:
        raise error if str(error).startswith(name) else InputError(f"{name}: {error}") from error


def _weighed(
    name: str,
    header: Header,
    budget: Budget,
    how: BudgetOptions,
    report: BudgetReport,
    asked: Path | None,
    watch: Watch | None,
) -> "_core.MapScale":
    prior = how.prior
    terms = (prior.page_discount, prior.host_discount, prior.host, prior.beside, prior.strength)

    def work(progress: Progress) -> "_core.MapScale":
        return _core.MapScale(
            name,
            len(header.keys),
            MAX_LINE_BYTES,
            queries=asked,
            weighs=budget.unit == "bytes",
            depths=(how.host_depth, how.path_depth),
            protects=how.protect_suffixes,
            forced=[key.encode() for key in how.rollup],
            prior=terms,
            memory=how.memory,
            progress=progress,
        )

    scale = watched(work, watch)
    report.add(scale.tally(), name)
    report.asked, report.missed = scale.missed + scale.hit, scale.missed
    return scale


def _bits(name: str, scale: "_core.MapScale", budget: Budget) -> int:
    """Return how many bits of filter for each key leave the fewest wrong answers."""
    if scale.wildcards:
        raise InputError(
            f"{name}: has wildcards, which stand for pages that a filter cannot know of: give the map as it was built "
            "from the index"
        )
    return divide(budget.size, scale.keys, scale.smallest[0] / 8, lambda size: scale.weigh(size * 8)[1])


def _budgeted(header: Header, budget: Budget, report: BudgetReport) -> Header:
    """Return the header of the result, which says what it was made to fit."""
    meta: dict[str, object] = {**header.meta, "budget": budget.text()}
    if report.asked:
        meta["asked"] = report.asked
    if report.bits:
        meta["filter_bits"] = report.bits
    return replace(header, meta=meta)


@dataclass(slots=True)
class _Trial:
    """Writes maps to see how large they become. The last one, and what is in it, is kept."""

    source: str
    fields: int
    head: bytes
    memory: int | None
    path: Path
    budget: Budget
    rollups: "_core.Rollups | None" = None
    shape: MapShape | None = None

    def write(self, rollups: "_core.Rollups", progress: Progress) -> MapShape:
        self.path.touch()
        truncate(self.path, 0)
        self.rollups = rollups
        self.shape = rollups.write(
            self.source, self.fields, MAX_LINE_BYTES, self.path, self.head, self.memory, progress
        )
        write_row_bytes(self.path)
        return self.shape

    def size(self, rollups: "_core.Rollups", progress: Progress) -> int:
        """Return the size of the map in the budget's unit."""
        shape = self.write(rollups, progress)
        return shape.lines_out if self.budget.unit == "lines" else published_size(self.path, progress)


def published_size(path: str | PathLike[str], progress: Progress | None = None) -> int:
    """Return how many bytes a file has once it is compressed by gzip, the same everywhere."""
    return _core.gzip_size(path, GZIP_LEVEL, progress or Progress())


def _write(
    scale: "_core.MapScale", budget: Budget, trial: _Trial, aside: Path, report: BudgetReport, progress: Progress
) -> None:
    rollups, report.size = fit_size(scale, budget, lambda chosen: trial.size(chosen, progress))
    report.shape = trial.shape if trial.rollups is rollups else trial.write(rollups, progress)
    with trial.path.open("rb") as made, aside.open("wb") as file:
        copyfileobj(made, file, 1 << 20)
    # A sum of differences, which rounding leaves a little below nothing.
    report.expected = max(0.0, rollups.loss) / 2**report.bits


def fit_size(
    scale: "_core.MapScale", budget: Budget, measure: "Callable[[_core.Rollups], int]"
) -> "tuple[_core.Rollups, int]":
    """Return the roll-ups that use nearly all of the budget and no more, with the size that was measured.

    The core knows lines exactly and estimates bytes; so maps are written and measured, and the limit corrected by how
    wrong the estimate was, until one fits. Raises UsageError, with the smallest size, if none does.
    """
    bits = 8 if budget.unit == "bytes" else 1
    limit = float(budget.size * bits)
    low, high = 0.0, float("inf")
    best: tuple[_core.Rollups, int] | None = None
    for _ in range(_TRIES):
        rollups = scale.choose(limit)
        size = measure(rollups)
        if size <= budget.size:
            if best is None or size >= best[1]:
                best = rollups, size
            low = max(low, limit)
            if rollups.is_all or size >= _NEAR * budget.size or budget.unit == "lines":
                break
        elif rollups.cost <= scale.smallest[0]:
            raise UsageError(f"a budget of {budget} is too small: the smallest possible is {size:,} {budget.unit}")
        else:
            high = min(high, limit)
        # Never below what the smallest map costs: whether that fits must be seen, not estimated.
        corrected = max(limit * budget.size / size * (1 + _NEAR) / 2, scale.smallest[0])
        limit = corrected if low < corrected < high else (low + min(high, 2 * limit)) / 2
    if best is None:
        # The estimate never came near it, as may be for maps of a few lines.
        rollups = scale.choose(scale.smallest[0])
        size = measure(rollups)
        if size > budget.size:
            raise UsageError(f"a budget of {budget} is too small: the smallest possible is {size:,} {budget.unit}")
        best = rollups, size
    return best
