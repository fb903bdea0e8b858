"""Compacts MementoMaps to a size, choosing the roll-ups that cause the fewest wrong look-ups.

The Rust core weighs the tree and names the wildcards; the ordinary compaction then writes the map, with these as forced
roll-ups. So a budget never denies a page that was covered. Compressed sizes are estimated, then measured: maps are
written and compressed until one fits, which takes two or three rounds.

A budget in bytes can be divided between the map and a filter of its pages. docs/map.md explains the method.
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
from unlost._core import CompactionStats, Progress
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
"""Maximum bits per key, for a false-positive rate of 1 in 65,536."""
FILTER_OVERHEAD = 1.13
"""Bits of a static filter for each fingerprint bit of each key. An upper bound: filters of unlost take 1.11."""
FILTER_HEADER_BYTES = 1024
"""Maximum size of a filter's header and padding."""

GZIP_LEVEL = 6
"""Level of the bundled compressor, zlib-rs. Its output for maps is up to 2 % larger than that of `gzip -9`."""
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
_BUDGET_PATTERN = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*)", re.ASCII)
_MIN_FILL = 0.99
"""Share of the budget from which a map is accepted."""
_MAX_TRIES = 10
"""Maximum number of maps that are written and measured. Two or three are usual."""


def estimate_filter_bytes(keys: int, bits: int) -> int:
    """Return the approximate size of a filter in bytes; 0 bits mean no filter.

    >>> estimate_filter_bytes(1_000_000, 8), estimate_filter_bytes(1_000_000, 0)
    (1131024, 0)
    """
    return round(FILTER_OVERHEAD * bits * keys / 8) + FILTER_HEADER_BYTES if bits else 0


def choose_filter_bits(budget: int, keys: int, smallest: float, loss_at: Callable[[float], float]) -> int:
    """Return the number of bits per key of the filter next to a map, from 0 (no filter) to 16.

    A page counts as held if both the map and the filter say so. A filter of b bits passes one in 2^b pages that are not
    held, so the expected error is the map's error at its remaining size, divided by 2^b. Ties go to the fewest bits.

    Args:
        budget: Bytes for the map and the filter.
        keys: Number of keys of the filter.
        smallest: Minimum size of the map in bytes.
        loss_at: Returns the expected error of a map of a given size in bytes.

    >>> choose_filter_bits(100_000, 80_000, 10_000, lambda size: 1 - size / 1_000_000)
    7
    """
    best_bits, lowest_error = 0, float("inf")
    for bits in range(MAX_FILTER_BITS + 1):
        map_bytes = budget - estimate_filter_bytes(keys, bits)
        if bits and map_bytes < smallest:
            break
        error = loss_at(map_bytes) / 2**bits
        if error < lowest_error:
            best_bits, lowest_error = bits, error
    return best_bits


def write_page_filter(
    source: str | PathLike[str], output: str | PathLike[str], bits: int, built_at: str | None = None
) -> int:
    """Write a filter of the pages of a map without wildcards, by the map's rules, and return its size in bytes.

    Args:
        source: The map.
        output: The filter.
        bits: Bits of a fingerprint.
        built_at: Build time for the header, 14 digits in UTC.
    """
    rules = header_rules(read_map_header(fspath(source)))
    build_filter([source], output, FilterOptions(bits=bits, key="hxpx", rules=rules, kind="map", built_at=built_at))
    return Path(output).stat().st_size


def lookup_keys_in_filter(filter_file: str | PathLike[str], keys: Sequence[str]) -> list[bool]:
    """Return for each key whether a filter says that it may be held."""
    return Filter.open(filter_file).lookup_keys_many(keys)


@dataclass(frozen=True, slots=True)
class MapBudget:
    """Maximum size of a map: lines, without headers and the `*` line, or bytes of the file compressed with gzip.

    >>> MapBudget.parse("100000"), MapBudget.parse("1.5MB")
    (MapBudget(size=100000, unit='lines'), MapBudget(size=1500000, unit='bytes'))
    >>> MapBudget.parse("64KiB")
    MapBudget(size=65536, unit='bytes')
    """

    size: int
    unit: Literal["lines", "bytes"]

    @classmethod
    def parse(cls, text: str) -> "MapBudget":
        """Parse `100000` (lines) or `50MB`, `64KiB`, `900B` (bytes). Raises UsageError."""
        match = _BUDGET_PATTERN.fullmatch(text.strip())
        number, unit = match.groups() if match else ("", "")
        if match and not unit and "." not in number:
            return cls(int(number), "lines")
        if not match or unit.upper() not in _UNITS:
            raise UsageError(
                f"{text[:40]}: no budget: expected lines, such as 100000, or bytes, such as 50MB "
                "(B, KB, MB, GB of 1000; KiB, MiB, GiB of 1024)"
            )
        return cls(int(float(number) * _UNITS[unit.upper()]), "bytes")

    def text(self) -> str:
        """Return the budget as `parse` accepts it."""
        return f"{self.size}{'B' if self.unit == 'bytes' else ''}"

    def __str__(self) -> str:
        """Return the budget for messages."""
        return f"{self.size:,} {self.unit if self.unit == 'lines' else 'compressed bytes'}"


@dataclass(frozen=True, slots=True)
class MissPrior:
    """Prior distribution of requests for pages that are not held, which query logs refine.

    Fitted on held-out pages of two real URL lists; see docs/map.md.

    Attributes:
        page_discount: Subtracted from the number of keys under a node: a single page is weak evidence of others.
        host_discount: Subtracted from the number of single-page hosts under a domain.
        host: Weight of a host with a single page as evidence of unknown hosts, relative to the average number of keys
            of the map's hosts. A fixed number fitted either deep crawls of few hosts or broad crawls of many.
        unknown_host_rate: Expected keys of unknown hosts under a domain for each of its keys.
        strength: Number of queries that weigh as much as the prior, at each node.
    """

    page_discount: float = 0.9
    host_discount: float = 0.0
    host: float = 0.5
    unknown_host_rate: float = 0.02
    strength: float = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetOptions:
    """How a map is compacted to a budget.

    Attributes:
        queries: Query logs to learn from.
        query_options: Format of these logs, where it cannot be detected.
        protect_suffixes: Never roll up a public suffix such as `uk,co`. A top-level domain is never rolled up.
        rollup: As in `Compaction`.
        host_depth: As in `Compaction`.
        path_depth: As in `Compaction`.
        with_filter: Write a filter to this file, and divide the budget between the filter and the map.
        built_at: Build time for the filter's header, 14 digits in UTC. A filter without one denies nothing that a
            wildcard covers.
        prior: Expected distribution of misses.
        memory: Maximum bytes of entries in memory; does not affect the result.
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
        """Raise UsageError for contradictory options."""
        if "*" in self.rollup:
            raise UsageError(
                "with everything rolled up there is nothing to choose: leave out --rollup '*' or the budget"
            )
        # Validates the depths and the wildcards.
        Compaction(host_depth=self.host_depth, path_depth=self.path_depth, rollup=self.rollup)


@dataclass(slots=True)
class BudgetReport(InputReport):
    """Report of `compact_to_budget`, in addition to the counts of lines.

    Attributes:
        size: Lines, or bytes of the compressed map, without its filter.
        expected_error_rate: Expected share of requests for pages that are not held for which the map says held.
        query_count: Number of queries learned from.
        miss_count: Number of these queries for pages that the map does not hold.
        query_report: Counts of the lines of the query logs.
        filter_bits: Bits per key of the filter; 0 for none.
        filter_bytes: Size of the filter.
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
    """Write a map within the budget that covers every page that the source covers.

    Of all such maps, it has the lowest estimated number of wrong answers; docs/map.md explains how. The result
    depends only on the map, the queries and the options. Files are replaced atomically.

    Raises:
        InputError: The source is not a sorted map.
        UsageError: No map is that small.
        OSError: The output cannot be written.
    """
    opts = options or BudgetOptions()
    if opts.with_filter is not None and budget.unit != "bytes":
        raise UsageError("a filter has no lines: give the budget in bytes, such as 50MB, to divide it")
    if opts.with_filter is not None and Path(opts.with_filter).resolve() == Path(output).resolve():
        raise UsageError(f"{fspath(output)}: both the map and its filter: give each a name of its own")
    name = fspath(source)
    header = read_map_header(name)
    if (opts.queries or opts.with_filter is not None) and header_rules(header) not in RULE_SETS:
        raise InputError(
            f"{name}: made by unknown rules, {ascii(header_rules(header))[:40]}: expected {' or '.join(RULE_SETS)}"
        )
    report = BudgetReport()
    with tempfile.TemporaryDirectory(prefix="unlost-budget-") as folder:
        query_map = Path(folder, "asked.ukvs") if opts.queries else None
        if query_map is not None:
            report.query_report = count_queries(opts.queries, query_map, header_rules(header), opts.query_options)
        with _prefix_errors(name):
            planner = _build_planner(name, header, budget, opts, report, query_map, on_progress)
            if opts.with_filter is not None:
                report.filter_bits = _filter_bits(name, planner, budget)
            while not _try_write(planner, name, header, output, budget, opts, report, Path(folder, "trial")):
                # The division relies on an estimate of the smallest map, which may be too low for small maps.
                report.filter_bits -= 1
    return report


def _try_write(
    planner: "_core.RollupPlanner",
    name: str,
    header: UkvsHeader,
    output: str | PathLike[str],
    budget: MapBudget,
    options: BudgetOptions,
    report: BudgetReport,
    trial_file: Path,
) -> bool:
    """Write the map, and a filter of `report.filter_bits` next to it; return whether both fit.

    Raises UsageError if the map does not fit without a filter.
    """
    map_budget = budget
    report.filter_bytes = 0
    outputs = [output, *([options.with_filter] if report.filter_bits and options.with_filter is not None else [])]
    try:
        with atomic_paths(outputs) as (map_path, *filter_paths):
            for filter_file in filter_paths:
                report.filter_bytes = write_page_filter(name, filter_file, report.filter_bits, options.built_at)
                map_budget = replace(budget, size=budget.size - report.filter_bytes)
            head = format_header(with_row_bytes(_budget_header(header, budget, report)))
            trial = _TrialMap(name, len(header.keys), head, options.memory, trial_file, map_budget)
            run_with_progress(lambda progress: _write_map(planner, map_budget, trial, map_path, report, progress))
    except UsageError:
        if not report.filter_bits:
            raise
        return False
    return True


@contextmanager
def _prefix_errors(name: str) -> Iterator[None]:
    """Prefix InputError messages with the name of the file."""
    try:
        yield
    except InputError as error:
        raise error if str(error).startswith(name) else InputError(f"{name}: {error}") from error


def _build_planner(
    name: str,
    header: UkvsHeader,
    budget: MapBudget,
    options: BudgetOptions,
    report: BudgetReport,
    query_map: Path | None,
    on_progress: ProgressCallback | None,
) -> "_core.RollupPlanner":
    prior = options.prior
    prior_values = (prior.page_discount, prior.host_discount, prior.host, prior.unknown_host_rate, prior.strength)

    def work(progress: Progress) -> "_core.RollupPlanner":
        return _core.RollupPlanner(
            name,
            len(header.keys),
            MAX_LINE_BYTES,
            queries=query_map,
            by_compressed_size=budget.unit == "bytes",
            depths=(options.host_depth, options.path_depth),
            protect_suffixes=options.protect_suffixes,
            forced_keys=[key.encode() for key in options.rollup],
            prior=prior_values,
            memory=options.memory,
            progress=progress,
        )

    planner = run_with_progress(work, on_progress)
    report.add_line_stats(planner.line_stats(), name)
    report.query_count, report.miss_count = planner.missed_queries + planner.hit_queries, planner.missed_queries
    return planner


def _filter_bits(name: str, planner: "_core.RollupPlanner", budget: MapBudget) -> int:
    """Return the number of filter bits per key with the lowest expected error. Raises InputError for wildcards."""
    if planner.wildcards:
        raise InputError(
            f"{name}: has wildcards, which stand for pages that a filter cannot know of: give the map as it was built "
            "from the index"
        )
    return choose_filter_bits(
        budget.size, planner.keys, planner.smallest[0] / 8, lambda size: planner.evaluate(size * 8)[1]
    )


def _budget_header(header: UkvsHeader, budget: MapBudget, report: BudgetReport) -> UkvsHeader:
    meta: dict[str, object] = {**header.meta, "budget": budget.text()}
    if report.query_count:
        meta["asked"] = report.query_count
    if report.filter_bits:
        meta["filter_bits"] = report.filter_bits
    return replace(header, meta=meta)


@dataclass(slots=True)
class _TrialMap:
    """Writes maps to measure their size. The last one is kept, since it usually is the result."""

    source: str
    fields: int
    head: bytes
    memory: int | None
    path: Path
    budget: MapBudget
    rollups: "_core.Rollups | None" = None
    shape: CompactionStats | None = None

    def write(self, rollups: "_core.Rollups", progress: Progress) -> CompactionStats:
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
    """Return the size of a file compressed with gzip, which is the same on every platform."""
    return _core.gzip_size(path, GZIP_LEVEL, progress or Progress())


def _write_map(
    planner: "_core.RollupPlanner",
    budget: MapBudget,
    trial: _TrialMap,
    output: Path,
    report: BudgetReport,
    progress: Progress,
) -> None:
    rollups, report.size = fit_to_budget(planner, budget, lambda chosen: trial.size(chosen, progress))
    report.shape = trial.shape if trial.rollups is rollups else trial.write(rollups, progress)
    with trial.path.open("rb") as source, output.open("wb") as file:
        copyfileobj(source, file, 1 << 20)
    # Rounding may leave a sum of differences slightly below 0.
    report.expected_error_rate = max(0.0, rollups.loss) / 2**report.filter_bits


def fit_to_budget(
    planner: "_core.RollupPlanner", budget: MapBudget, measure: "Callable[[_core.Rollups], int]"
) -> "tuple[_core.Rollups, int]":
    """Return the roll-ups that use most of the budget without exceeding it, and their measured size.

    The core counts lines exactly but only estimates compressed bytes. So maps are written and measured, and the limit
    is corrected by the error of the estimate until a map fits. Raises UsageError, with the smallest size, if none fits.
    """
    bits = 8 if budget.unit == "bytes" else 1
    limit = float(budget.size * bits)
    low, high = 0.0, float("inf")
    best: tuple[_core.Rollups, int] | None = None
    for _ in range(_MAX_TRIES):
        rollups = planner.choose(limit)
        size = measure(rollups)
        if size <= budget.size:
            if best is None or size >= best[1]:
                best = rollups, size
            low = max(low, limit)
            if rollups.is_complete or size >= _MIN_FILL * budget.size or budget.unit == "lines":
                break
        elif rollups.cost <= planner.smallest[0]:
            raise UsageError(f"a budget of {budget} is too small: the smallest possible is {size:,} {budget.unit}")
        else:
            high = min(high, limit)
        # Not below the cost of the smallest map, whose size must be measured before the budget is called too small.
        corrected = max(limit * budget.size / size * (1 + _MIN_FILL) / 2, planner.smallest[0])
        limit = corrected if low < corrected < high else (low + min(high, 2 * limit)) / 2
    if best is None:
        # The estimate was too far off, which happens with maps of a few lines.
        rollups = planner.choose(planner.smallest[0])
        size = measure(rollups)
        if size > budget.size:
            raise UsageError(f"a budget of {budget} is too small: the smallest possible is {size:,} {budget.unit}")
        best = rollups, size
    return best
