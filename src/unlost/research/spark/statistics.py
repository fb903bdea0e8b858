"""Index statistics on a Spark cluster: exact, whatever the order of the rows."""

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
"""Sources of rows: lines that are brought together, and what was counted already."""


def _create_counter(options: IndexCountOptions) -> "_core.StatisticsPart":
    return _core.StatisticsPart(
        rules=options.rules,
        line_limit=MAX_LINE_BYTES,
        status=options.statuses(),
        mime=options.media_types(),
        exclude=sorted(options.exclude),
        memory=options.memory,
    )


def _counts_row(part: int, place: int, found: Mapping[str, Any], **other: object) -> PartialRow:
    """Return what was counted as what travels."""
    counted = replace(exact_counts(dict(found)), **other)  # type: ignore[arg-type]
    return PartialRow(part, _COUNTS_SOURCE, place, counted.to_json().encode())


@dataclass(frozen=True, slots=True)
class CountIndexRows:
    """Counts the rows of pieces: partial results are URI-Rs in order, each with what is known of its captures."""

    options: IndexCountOptions

    def __call__(self, pieces: Iterator[Split], task: int) -> Iterator[PartialRow]:
        """Yield lines of URI-Rs, what was counted by row, and a note."""
        note = TaskReport()
        part = _create_counter(self.options)
        added = hints = 0
        for piece in pieces:
            if piece.kind == "map":
                raise InputError(f"{piece.name}: a map, not an index: `unlost map check` says what is in it")
            tally = count_split_rows(piece, part, self.options)
            note.tallies.append((piece.source, piece.start, piece.prefix_bytes, piece.prefix_lines, tally))
            added += piece.prefix_bytes
            hints += piece.has_hint and hint_is_foreign(self.options)
        with task_directory() as place:
            path = create_empty_file(Path(place, "uris"))
            found = part.write(path)
            note.samples = sample_keys(path)
            for number, text in enumerate(read_line_chunks(path)):
                yield PartialRow(0, _LINES_SOURCE, task * PLACES_PER_TASK + number, text)
        foreign = {scheme: count - hints * (scheme == LAYOUT_HINT_SCHEME) for scheme, count in found["schemes"]}
        found["schemes"] = [(scheme, count) for scheme, count in foreign.items() if count]
        yield _counts_row(0, task * PLACES_PER_TASK, found, text_bytes=found["text_bytes"] - added)
        yield note.to_row()


@dataclass(frozen=True, slots=True)
class CountHostPaths:
    """Counts what is told of the paths of hosts, all of whose URI-Rs are here."""

    options: IndexCountOptions

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield a line for each host, what was counted, and a note."""
        counter = _create_counter(self.options)
        for row in rows:
            counter.add_runs(row.data)
        with task_directory() as place:
            path = create_empty_file(Path(place, "hosts"))
            found = counter.gather(path)
            note = TaskReport(samples=sample_keys(path))
            for number, text in enumerate(read_line_chunks(path)):
                # Parts follow each other where they are cut again.
                yield PartialRow(part, _LINES_SOURCE, part * PLACES_PER_TASK + number, text)
        yield _counts_row(part, part * PLACES_PER_TASK, found)
        yield note.to_row()


@dataclass(frozen=True, slots=True)
class CountDomainHosts:
    """Counts what is told of the hosts of domains, all of which are here."""

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield what was counted, and a note."""
        counter = _core.StatisticsHosts()
        for row in rows:
            counter.add_hosts(row.data)
        yield _counts_row(part, 0, counter.finish())
        yield TaskReport().to_row()


@dataclass(frozen=True, slots=True)
class _LinesOnlyCutter:
    """Cuts lines, and leaves out what was counted already."""

    cut: LineCutter

    def __call__(self, row: PartialRow) -> Iterator[PartialRow]:
        return self.cut(row) if row.source == _LINES_SOURCE else iter(())


def count_index(
    engine: SparkEngine,
    inputs: Sequence[str | PathLike[str]],
    options: IndexCountOptions | None = None,
    columns: Mapping[str, str] | None = None,
) -> tuple[IndexCounts, InputReport]:
    """Return what the inputs hold, in numbers, and what became of their lines.

    The numbers are those of `unlost.research.index_counts.gather` of the same files in order. Only a host whose
    URI-Rs take more memory than `options` allow is counted in parts, as there, and perhaps in others.
    Raises InputError for an input that cannot be read, ClusterError if the cluster gives up.
    """
    wanted = options or IndexCountOptions()
    report = InputReport()
    files = read_inputs(engine, inputs, wanted.kind, columns)
    read = engine.read(files, CountIndexRows(wanted))
    add_line_stats(read.reports, files, report)
    hosts = _merge_at(engine, read, "host", CountHostPaths(wanted))
    total = merge_counts(_stage_counts(read))
    read.release()
    ends = _merge_at(engine, hosts, "domain", CountDomainHosts())
    for stage in (hosts, ends):
        total = merge_counts([total, *_stage_counts(stage)])
        stage.release()
    about = IndexCounts(
        files=len(files.names),
        lines=report.lines,
        filtered=report.filtered,
        problems=dict(report.problems.counts),
    )
    return total.merge(about).sorted_by_name(), report


def _merge_at(
    engine: SparkEngine, stage: SparkStage, level: CutLevel, work: "CountHostPaths | CountDomainHosts"
) -> SparkStage:
    bounds = stage.choose_bounds(engine.parts, engine.parallelism, level)
    return engine.merge(stage, _LinesOnlyCutter(LineCutter(bounds)), len(bounds) + 1, work)


def _stage_counts(stage: SparkStage) -> Iterator[IndexCounts]:
    """Yield what was counted, one after the other, so that memory is that of one."""
    return (IndexCounts.from_json(row.data.decode()) for row in stage.rows(_COUNTS_SOURCE))
