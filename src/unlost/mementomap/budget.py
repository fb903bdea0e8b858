"""Compacts MementoMaps to a size: roll-ups are chosen so that the fewest look-ups are answered wrongly.

A budget in bytes can be divided between the map and a filter of its pages.
"""

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
from unlost.atomic import atomic_paths
from unlost.errors import InputError, UsageError
from unlost.index.ukvs import UkvsHeader, format_header
from unlost.mementomap.compact import Compaction
from unlost.mementomap.filter import Filter
from unlost.mementomap.filter_builder import FilterOptions, build_filter
from unlost.mementomap.map_file import header_rules, read_map_header, with_row_bytes, write_row_bytes
from unlost.mementomap.query_logs import QueryLogOptions, count_queries
from unlost.mementomap.readers import InputReport, ProgressCallback, run_with_progress
from unlost.text_lines import MAX_LINE_BYTES
from unlost.uri import RULE_SETS

MAX_FILTER_BITS = 16
"""A filter of more bits for each key would be wrong less often than once in 65,536 times."""
FILTER_OVERHEAD = 1.13
"""Bits that a static filter takes for each bit of each key."""
FILTER_HEADER_BYTES = 1024
"""Bytes that a filter takes beside that, at most."""


def estimate_filter_bytes(keys: int, bits: int) -> int:
    """Return about how many bytes a filter of so many keys has; 0 for no bits, which is no filter.

    >>> estimate_filter_bytes(1_000_000, 8), estimate_filter_bytes(1_000_000, 0)
    (1131024, 0)
    """
    return round(FILTER_OVERHEAD * bits * keys / 8) + FILTER_HEADER_BYTES if bits else 0


def choose_filter_bits(budget: int, keys: int, smallest: float, loss_at: Callable[[float], float]) -> int:
    """Return how many bits the filter beside a map gets for each key, from 0 (none) to 16.

    A page is taken for held if map and filter say so. Of the pages that are not, a filter of b bits lets one in 2^b
    pass; so what is expected to be wrong is what the map gets wrong, `loss_at` of the bytes that are left to it, less
    that. `smallest` is how many bytes a map has at least. The fewest bits win where it makes no difference.

    >>> choose_filter_bits(100_000, 80_000, 10_000, lambda size: 1 - size / 1_000_000)
    7
    """
    best, fewest = 0, float("inf")
    for bits in range(MAX_FILTER_BITS + 1):
        left = budget - estimate_filter_bytes(keys, bits)
        if bits and left < smallest:
            break
        wrong = loss_at(left) / 2**bits
        if wrong < fewest:
            best, fewest = bits, wrong
    return best


def write_page_filter(
    source: str | PathLike[str], output: str | PathLike[str], bits: int, built_at: str | None = None
) -> int:
    """Write a filter of the pages of a map without wildcards, by its own rules; return how many bytes it has.

    made: when it is, 14 digits in UTC, for its header.
    """
    rules = header_rules(read_map_header(fspath(source)))
    build_filter([source], output, FilterOptions(bits=bits, key="hxpx", rules=rules, kind="map", built_at=built_at))
    return Path(output).stat().st_size


def lookup_keys_in_filter(filter_file: str | PathLike[str], keys: Sequence[str]) -> list[bool]:
    """Return for each key whether a filter says that it may be held."""
    return Filter.open(filter_file).lookup_keys_many(keys)


GZIP_LEVEL = 6
"""Of the pinned compressor: a little larger, by up to 2 %, than `gzip -9` for all maps of the real lists."""
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
_BUDGET_PATTERN = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*)", re.ASCII)
_MIN_FILL = 0.99
"""A map of so much of its budget is near enough."""
_MAX_TRIES = 10


@dataclass(frozen=True, slots=True)
class MapBudget:
    """How large a map may be: so many lines, headers and total not counted, or so many bytes of the compressed file.

    >>> MapBudget.parse("100000"), MapBudget.parse("1.5MB"), MapBudget.parse("64KiB")
    (MapBudget(size=100000, unit='lines'), MapBudget(size=1500000, unit='bytes'), MapBudget(size=65536, unit='bytes'))
    """

    size: int
    unit: Literal["lines", "bytes"]

    @classmethod
    def parse(cls, text: str) -> "MapBudget":
        """Return what was written as `100000` (lines) or `50MB`, `64KiB`, `900B` (bytes). Raises UsageError."""
        found = _BUDGET_PATTERN.fullmatch(text.strip())
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
class MissPrior:
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
    unknown_host_rate: float = 0.02
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
    query_options: QueryLogOptions = field(default_factory=QueryLogOptions)
    protect_suffixes: bool = True
    rollup: tuple[str, ...] = ()
    host_depth: int = 8
    path_depth: int = 9
    with_filter: str | PathLike[str] | None = None
    built_at: str | None = None
    prior: MissPrior = field(default_factory=MissPrior)
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
class BudgetReport(InputReport):
    """What came of it, beside what became of the map's lines.

    size: lines, or compressed bytes of the map as it is published, without its filter.
    expected: the share of pages asked for and not held that the map is expected to answer wrongly.
    asked: how many questions were learned from; of those, missed: for pages that are not in the map.
    questions: what became of the lines of the logs.
    bits: of the filter, for each key; 0 for none.
    filter_bytes: how large the filter is.
    """

    size: int = 0
    expected_error_rate: float = 0.0
    query_count: int = 0
    miss_count: int = 0
    query_report: InputReport = field(default_factory=InputReport)
    filter_bits: int = 0
    filter_bytes: int = 0


def compact_to_budget(
    source: str | PathLike[str],
    output: str | PathLike[str],
    budget: MapBudget,
    options: BudgetOptions | None = None,
    on_progress: ProgressCallback | None = None,
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
    if (how.queries or how.with_filter is not None) and header_rules(header) not in RULE_SETS:
        raise InputError(
            f"{name}: made by unknown rules, {ascii(header_rules(header))[:40]}: expected {' or '.join(RULE_SETS)}"
        )
    report = BudgetReport()
    with tempfile.TemporaryDirectory(prefix="unlost-budget-") as folder:
        asked = Path(folder, "asked.ukvs") if how.queries else None
        if asked is not None:
            report.query_report = count_queries(how.queries, asked, header_rules(header), how.query_options)
        with _errors_naming(name):
            scale = _build_scale(name, header, budget, how, report, asked, on_progress)
            if how.with_filter is not None:
                report.filter_bits = _filter_bits(name, scale, budget)
            while not _try_write(scale, name, header, output, budget, how, report, Path(folder, "trial")):
                # How small a map can be is estimated when the bytes are divided, and may be wrong for small ones.
                report.filter_bits -= 1
    return report


def _try_write(
    scale: "_core.MapScale",
    name: str,
    header: UkvsHeader,
    output: str | PathLike[str],
    budget: MapBudget,
    how: BudgetOptions,
    report: BudgetReport,
    trial_file: Path,
) -> bool:
    """Write the map, and a filter of the report's bits beside it; return whether it fits beside the filter.

    Raises UsageError if it does not fit without one.
    """
    left = budget
    report.filter_bytes = 0
    outputs = [output, *([how.with_filter] if report.filter_bits and how.with_filter is not None else [])]
    try:
        with atomic_paths(outputs) as (aside, *beside):
            for filter_file in beside:
                report.filter_bytes = write_page_filter(name, filter_file, report.filter_bits, how.built_at)
                left = replace(budget, size=budget.size - report.filter_bytes)
            head = format_header(with_row_bytes(_budget_header(header, budget, report)))
            trial = _TrialMap(name, len(header.keys), head, how.memory, trial_file, left)
            run_with_progress(lambda progress: _write_map(scale, left, trial, aside, report, progress))
    except UsageError:
        if not report.filter_bits:
            raise
        return False
    return True


@contextmanager
def _errors_naming(name: str) -> Iterator[None]:
    """Say in errors which file they are about."""
    try:
        yield
    except InputError as error:
        raise error if str(error).startswith(name) else InputError(f"{name}: {error}") from error


def _build_scale(
    name: str,
    header: UkvsHeader,
    budget: MapBudget,
    how: BudgetOptions,
    report: BudgetReport,
    asked: Path | None,
    watch: ProgressCallback | None,
) -> "_core.MapScale":
    prior = how.prior
    terms = (prior.page_discount, prior.host_discount, prior.host, prior.unknown_host_rate, prior.strength)

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

    scale = run_with_progress(work, watch)
    report.add_line_stats(scale.tally(), name)
    report.query_count, report.miss_count = scale.missed + scale.hit, scale.missed
    return scale


def _filter_bits(name: str, scale: "_core.MapScale", budget: MapBudget) -> int:
    """Return how many bits of filter for each key leave the fewest wrong answers."""
    if scale.wildcards:
        raise InputError(
            f"{name}: has wildcards, which stand for pages that a filter cannot know of: give the map as it was built "
            "from the index"
        )
    return choose_filter_bits(budget.size, scale.keys, scale.smallest[0] / 8, lambda size: scale.weigh(size * 8)[1])


def _budget_header(header: UkvsHeader, budget: MapBudget, report: BudgetReport) -> UkvsHeader:
    """Return the header of the result, which says what it was made to fit."""
    meta: dict[str, object] = {**header.meta, "budget": budget.text()}
    if report.query_count:
        meta["asked"] = report.query_count
    if report.filter_bits:
        meta["filter_bits"] = report.filter_bits
    return replace(header, meta=meta)


@dataclass(slots=True)
class _TrialMap:
    """Writes maps to see how large they become. The last one, and what is in it, is kept."""

    source: str
    fields: int
    head: bytes
    memory: int | None
    path: Path
    budget: MapBudget
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
        return shape.lines_out if self.budget.unit == "lines" else compressed_size(self.path, progress)


def compressed_size(path: str | PathLike[str], progress: Progress | None = None) -> int:
    """Return how many bytes a file has once it is compressed by gzip, the same everywhere."""
    return _core.gzip_size(path, GZIP_LEVEL, progress or Progress())


def _write_map(
    scale: "_core.MapScale", budget: MapBudget, trial: _TrialMap, aside: Path, report: BudgetReport, progress: Progress
) -> None:
    rollups, report.size = fit_to_budget(scale, budget, lambda chosen: trial.size(chosen, progress))
    report.shape = trial.shape if trial.rollups is rollups else trial.write(rollups, progress)
    with trial.path.open("rb") as made, aside.open("wb") as file:
        copyfileobj(made, file, 1 << 20)
    # A sum of differences, which rounding leaves a little below nothing.
    report.expected_error_rate = max(0.0, rollups.loss) / 2**report.filter_bits


def fit_to_budget(
    scale: "_core.MapScale", budget: MapBudget, measure: "Callable[[_core.Rollups], int]"
) -> "tuple[_core.Rollups, int]":
    """Return the roll-ups that use nearly all of the budget and no more, with the size that was measured.

    The core knows lines exactly and estimates bytes; so maps are written and measured, and the limit corrected by how
    wrong the estimate was, until one fits. Raises UsageError, with the smallest size, if none does.
    """
    bits = 8 if budget.unit == "bytes" else 1
    limit = float(budget.size * bits)
    low, high = 0.0, float("inf")
    best: tuple[_core.Rollups, int] | None = None
    for _ in range(_MAX_TRIES):
        rollups = scale.choose(limit)
        size = measure(rollups)
        if size <= budget.size:
            if best is None or size >= best[1]:
                best = rollups, size
            low = max(low, limit)
            if rollups.is_all or size >= _MIN_FILL * budget.size or budget.unit == "lines":
                break
        elif rollups.cost <= scale.smallest[0]:
            raise UsageError(f"a budget of {budget} is too small: the smallest possible is {size:,} {budget.unit}")
        else:
            high = min(high, limit)
        # Never below what the smallest map costs: whether that fits must be seen, not estimated.
        corrected = max(limit * budget.size / size * (1 + _MIN_FILL) / 2, scale.smallest[0])
        limit = corrected if low < corrected < high else (low + min(high, 2 * limit)) / 2
    if best is None:
        # The estimate never came near it, as may be for maps of a few lines.
        rollups = scale.choose(scale.smallest[0])
        size = measure(rollups)
        if size > budget.size:
            raise UsageError(f"a budget of {budget} is too small: the smallest possible is {size:,} {budget.unit}")
        best = rollups, size
    return best
