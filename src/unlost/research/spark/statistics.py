"""Index statistics on a Spark cluster, which are exact even for unsorted indexes.

URI-Rs are shuffled to the others of their host, as one line each with a summary of their captures, then hosts to the
others of their domain. That costs a shuffle of the distinct URI-Rs, and needs no sketches.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from unlost import _core
from unlost.errors import InputError
from unlost.mementomap.readers import InputReport
from unlost.research.index_counts import IndexCountOptions, IndexCounts, exact_counts, merge_counts
from unlost.research.spark.engine import (
    CutLevel,
    LineCutter,
    SparkEngine,
    SparkStage,
    add_line_stats,
    count_split_rows,
    hint_is_foreign,
    read_inputs,
)
from unlost.research.spark.rows import (
    PLACES_PER_TASK,
    PartialRow,
    TaskReport,
    create_empty_file,
    read_line_chunks,
    sample_keys,
    task_directory,
)
from unlost.research.spark.splits import LAYOUT_HINT_SCHEME, Split
from unlost.text_lines import MAX_LINE_BYTES

_LINES_SOURCE, _COUNTS_SOURCE = 0, 1
"""Sources of rows: lines to shuffle, and finished counts."""


def _create_counter(options: IndexCountOptions) -> "_core.StatisticsPart":
    return _core.StatisticsPart(
        rules=options.rules,
        line_limit=MAX_LINE_BYTES,
        status=options.statuses(),
        mime=options.media_types(),
        exclude=sorted(options.exclude),
        memory=options.memory,
    )


def _counts_row(part: int, place: int, raw: Mapping[str, Any], **changes: object) -> PartialRow:
    counts = replace(exact_counts(dict(raw)), **changes)  # type: ignore[arg-type]
    return PartialRow(part, _COUNTS_SOURCE, place, counts.to_json().encode())


@dataclass(frozen=True, slots=True)
class CountIndexRows:
    """Counts the rows of splits. Partial rows are sorted URI-Rs with a summary of their captures."""

    options: IndexCountOptions

    def __call__(self, splits: Iterator[Split], task: int) -> Iterator[PartialRow]:
        """Yield lines of URI-Rs, row counts, and a report."""
        task_report = TaskReport()
        counter = _create_counter(self.options)
        prefix_bytes = hints = 0
        for split in splits:
            if split.kind == "map":
                raise InputError(f"{split.name}: a map, not an index: `unlost map check` says what is in it")
            tally = count_split_rows(split, counter, self.options)
            task_report.tallies.append((split.source, split.start, split.prefix_bytes, split.prefix_lines, tally))
            prefix_bytes += split.prefix_bytes
            hints += split.has_hint and hint_is_foreign(self.options)
        with task_directory() as folder:
            path = create_empty_file(Path(folder, "uris"))
            raw = counter.write(path)
            task_report.samples = sample_keys(path)
            for number, text in enumerate(read_line_chunks(path)):
                yield PartialRow(0, _LINES_SOURCE, task * PLACES_PER_TASK + number, text)
        foreign = {scheme: count - hints * (scheme == LAYOUT_HINT_SCHEME) for scheme, count in raw["schemes"]}
        raw["schemes"] = [(scheme, count) for scheme, count in foreign.items() if count]
        yield _counts_row(0, task * PLACES_PER_TASK, raw, text_bytes=raw["text_bytes"] - prefix_bytes)
        yield task_report.to_row()


@dataclass(frozen=True, slots=True)
class CountHostPaths:
    """Counts paths by host; a part contains all URI-Rs of its hosts."""

    options: IndexCountOptions

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield a line for each host, counts, and a report."""
        counter = _create_counter(self.options)
        for row in rows:
            counter.add_runs(row.data)
        with task_directory() as folder:
            path = create_empty_file(Path(folder, "hosts"))
            raw = counter.count_paths(path)
            task_report = TaskReport(samples=sample_keys(path))
            for number, text in enumerate(read_line_chunks(path)):
                # The places preserve the order of parts for the next stage.
                yield PartialRow(part, _LINES_SOURCE, part * PLACES_PER_TASK + number, text)
        yield _counts_row(part, part * PLACES_PER_TASK, raw)
        yield task_report.to_row()


@dataclass(frozen=True, slots=True)
class CountDomainHosts:
    """Counts hosts by domain; a part contains all hosts of its domains."""

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield counts, and a report."""
        counter = _core.StatisticsHosts()
        for row in rows:
            counter.add_hosts(row.data)
        yield _counts_row(part, 0, counter.finish())
        yield TaskReport().to_row()


@dataclass(frozen=True, slots=True)
class _LinesOnlyCutter:
    """Cuts lines, and drops finished counts."""

    cut: LineCutter

    def __call__(self, row: PartialRow) -> Iterator[PartialRow]:
        return self.cut(row) if row.source == _LINES_SOURCE else iter(())


def count_index(
    engine: SparkEngine,
    inputs: Sequence[str | PathLike[str]],
    options: IndexCountOptions | None = None,
    columns: Mapping[str, str] | None = None,
) -> tuple[IndexCounts, InputReport]:
    """Count index files on the cluster.

    The counts equal those of `unlost.research.index_counts.count_index` for sorted input. Only a host whose URI-Rs
    exceed the memory limit is counted in several parts, which may differ.

    Args:
        engine: The engine.
        inputs: Input files.
        options: What to count.
        columns: Columns of Parquet files.

    Returns:
        Counts, and a report on the lines read.

    Raises:
        InputError: An input cannot be read.
        ClusterError: The job failed.
    """
    options = options or IndexCountOptions()
    report = InputReport()
    files = read_inputs(engine, inputs, options.kind, columns)
    read_stage = engine.read(files, CountIndexRows(options))
    add_line_stats(read_stage.reports, files, report)
    hosts = _merge_at(engine, read_stage, "host", CountHostPaths(options))
    total = merge_counts(_stage_counts(read_stage))
    read_stage.release()
    domains = _merge_at(engine, hosts, "domain", CountDomainHosts())
    for stage in (hosts, domains):
        total = merge_counts([total, *_stage_counts(stage)])
        stage.release()
    file_counts = IndexCounts(
        files=len(files.names),
        lines=report.lines,
        filtered=report.filtered,
        problems=dict(report.problems.counts),
    )
    return total.merge(file_counts).sorted_by_name(), report


def _merge_at(
    engine: SparkEngine, stage: SparkStage, level: CutLevel, work: "CountHostPaths | CountDomainHosts"
) -> SparkStage:
    bounds = stage.choose_bounds(engine.parts, engine.parallelism, level)
    return engine.merge(stage, _LinesOnlyCutter(LineCutter(bounds)), len(bounds) + 1, work)


def _stage_counts(stage: SparkStage) -> Iterator[IndexCounts]:
    """Yield the counts of a stage one by one, to bound memory."""
    return (IndexCounts.from_json(row.data.decode()) for row in stage.rows(_COUNTS_SOURCE))
