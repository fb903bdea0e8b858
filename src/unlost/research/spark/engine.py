"""The Spark engine: counts splits where they are read, cuts the result by key ranges, and merges part by part."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Protocol

from unlost import _core
from unlost._core import Progress
from unlost.errors import ClusterError, InputError, UsageError
from unlost.index.ukvs import UkvsHeader
from unlost.mementomap.readers import InputOptions, InputReport, read_compatible_map_header
from unlost.problems import Problem
from unlost.research.spark.checkpoint import CheckpointStore
from unlost.research.spark.rows import (
    REPORT_PART,
    ROW_SCHEMA,
    PartialRow,
    TaskReport,
    read_batches,
    report_errors,
    task_directory,
    write_batches,
)
from unlost.research.spark.session import raise_task_failures, translate_spark_errors
from unlost.research.spark.splits import SparkFiles, Split, read_files, read_parquet, read_splits
from unlost.text_lines import MAX_LINE_BYTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from unlost._core import Tally


CutLevel = Literal["page", "host", "domain"]
_HOST = re.compile(rb"([a-z0-9._:,-]+)\)")
_DOMAIN = re.compile(rb"[a-z0-9-]+,[a-z0-9._:-]+(?=[,)])")
PART_BYTES = 64 << 20
"""Of counted lines, for each part: some seconds of work, and what has to be done again if a machine is lost."""
MAX_PARTS = 20_000


def choose_part_count(size: int, at_least: int) -> int:
    """Return how many parts so many bytes are cut into: enough for all processors, unless there is next to nothing.

    >>> choose_part_count(100, 8), choose_part_count(10_000_000, 8), choose_part_count(1 << 40, 8)
    (1, 8, 16384)
    """
    if size < 1 << 20:
        return 1
    return min(max(size // PART_BYTES, at_least), MAX_PARTS)


def choose_bounds(
    samples: Sequence[tuple[bytes, int]], parts: int, level: CutLevel, whole: Collection[bytes] = ()
) -> list[bytes]:
    r"""Return keys at which parts begin, in order: at most one fewer than parts are wanted.

    samples: keys, and the bytes that each stands for. level: what must not be cut.
    whole: top-level domains that must not be cut either.

    >>> keys = [(b"com,a)/", 1), (b"com,b)/x", 1), (b"com,b,c)/", 1), (b"org,d)/", 1)]
    >>> choose_bounds(keys, 4, "page")
    [b'com,b)/x', b'com,b,c)/', b'org,d)/']
    >>> choose_bounds(keys, 4, "domain")
    [b'com,b', b'org,d']
    >>> choose_bounds(keys, 4, "domain", {b"com"})
    [b'org,d']
    """
    total = sum(weight for _, weight in samples)
    bounds: list[bytes] = []
    done = 0
    for key, weight in sorted(samples):
        if done * parts >= (len(bounds) + 1) * total:
            bound = _unit_start(key, level)
            is_new = bound is not None and (not bounds or bound > bounds[-1])
            if bound is not None and is_new and bound.partition(b",")[0] not in whole:
                bounds.append(bound)
        done += weight
    return bounds[: max(parts - 1, 0)]


def _unit_start(key: bytes, level: CutLevel) -> bytes | None:
    """Return where the page, host or domain of a key begins.

    None where that is not sure: of names with other bytes, what lies below may stand apart.
    """
    if level == "page":
        return re.split(rb"[? ]", key, maxsplit=1)[0]
    if level == "host":
        host = _HOST.match(key)
        return host[1] if host else None
    domain = _DOMAIN.match(key)
    return domain[0] if domain else None


_TASKS_PER_RANGE = 1 << 22
"""More tasks than one leg of the reading has."""


class SplitTask(Protocol):
    """What is done with the pieces of files that one task reads."""

    def __call__(self, pieces: Iterator[Split], task: int) -> Iterator[PartialRow]:
        """Yield partial results, and a note."""


class PartTask(Protocol):
    """What is done with everything that belongs to one part of the result."""

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield the part's rows, in order, and a note."""


@dataclass(frozen=True, slots=True)
class _ReadTask:
    work: SplitTask
    files: Any  # a broadcast Files, without its frame
    first: int  # the number of the first task

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext  # noqa: PLC0415  an extra

        context = TaskContext.get()
        task = self.first + (context.partitionId() if context else 0)
        with task_directory() as place:
            pieces = read_splits(batches, self.files.value, place)
            yield from write_batches(report_errors(self.work(pieces, task)))


@dataclass(frozen=True, slots=True)
class _CutTask:
    cut: Callable[[PartialRow], Iterator[PartialRow]]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        return write_batches(row for whole in read_batches(batches) for row in self.cut(whole))


@dataclass(frozen=True, slots=True)
class _MergeTask:
    work: PartTask

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        def done() -> Iterator[PartialRow]:
            for part, rows in groupby(read_batches(batches), lambda row: row.part):
                yield from report_errors(self.work(part, rows))

        return write_batches(done())


@dataclass(frozen=True, slots=True)
class LineCutter:
    """Cuts lines at bounds; of pages with `pages`, whatever their queries are."""

    bounds: Sequence[bytes]
    pages: bool = False

    def __call__(self, row: PartialRow) -> Iterator[PartialRow]:
        """Yield what of a row belongs to each part."""
        for part, lines in _core.cut_lines(row.data, self.bounds, self.pages):
            yield PartialRow(part, row.source, row.place, lines)


@dataclass(slots=True)
class SparkStage:
    """What a stage of the work came to: rows that stay on the cluster's disks, and notes of all tasks.

    is_kept: the rows are where a `Keeper` keeps them, in no order.
    """

    frame: "DataFrame"
    reports: list[TaskReport]
    is_checkpointed: bool = False

    def choose_bounds(
        self, parts: int | None, at_least: int, level: CutLevel, whole: Sequence[bytes] = ()
    ) -> list[bytes]:
        """Return where the result is cut, by the samples that tasks took."""
        samples = [sample for note in self.reports for sample in note.samples]
        wanted = parts or choose_part_count(sum(weight for _, weight in samples), at_least)
        return choose_bounds(samples, wanted, level, whole)

    def rows(self, source: int | None = None) -> Iterator[PartialRow]:
        """Yield all rows, or those of one source, part by part, in order. Raises ClusterError."""
        from pyspark.sql import functions as f  # noqa: PLC0415  an extra

        last = (REPORT_PART, REPORT_PART)
        with translate_spark_errors():
            wanted = self.frame.where(f.col("part") != REPORT_PART)
            if source is not None:
                wanted = wanted.where(f.col("source") == source)
            if self.is_checkpointed:
                wanted = wanted.orderBy("part", "place")
            for found in wanted.toLocalIterator(prefetchPartitions=True):
                row = PartialRow(found["part"], found["source"], found["place"], bytes(found["data"]))
                if (row.part, row.place) <= last:
                    raise ClusterError("parts came out of order from the cluster: nothing was written")
                last = (row.part, row.place)
                yield row

    def release(self) -> None:
        """Let the cluster's disks go."""
        with translate_spark_errors():
            self.frame.unpersist()


class SparkEngine:
    """Work on a cluster.

    session: of Spark. parts: how many a result is cut into; as many as its size asks for if None. keeper: of what was
    read, for a run that ends before it is done. Nothing of it shows in the result.
    """

    def __init__(
        self, session: "SparkSession", parts: int | None = None, checkpoints: CheckpointStore | None = None
    ) -> None:
        self.session = session
        self.parts = parts
        self.checkpoints = checkpoints

    @property
    def parallelism(self) -> int:
        """How many tasks run at a time, as far as Spark tells."""
        return self.session.sparkContext.defaultParallelism

    def read(self, files: SparkFiles, work: SplitTask) -> SparkStage:
        """Return what the pieces of files come to. Raises InputError for what cannot be read."""
        from dataclasses import replace  # noqa: PLC0415  start-up

        shared = self.session.sparkContext.broadcast(replace(files, rows=None))  # type: ignore[arg-type]
        with translate_spark_errors():
            if self.checkpoints is None:
                return self._persist(files.rows.mapInArrow(_ReadTask(work, shared, 0), ROW_SCHEMA))
            notes: list[TaskReport] = []
            frames = []
            for number, leg in enumerate(self.checkpoints.split_into_ranges(files, work)):
                reading = _ReadTask(work, shared, number * _TASKS_PER_RANGE)
                frames.append(
                    self.checkpoints.load_or_compute(leg.filter_rows(files.rows).mapInArrow(reading, ROW_SCHEMA), leg)
                )
                try:
                    notes += self._collect_reports(frames[-1])
                except (InputError, UsageError):
                    # What is wrong with the input is no work that was done.
                    self.checkpoints.delete()
                    raise
            return SparkStage(reduce(lambda one, other: one.unionAll(other), frames), notes, is_checkpointed=True)

    def merge(
        self, stage: SparkStage, cut: Callable[[PartialRow], Iterator[PartialRow]], parts: int, work: PartTask
    ) -> SparkStage:
        """Return the parts of a result: rows are cut, those of a part brought together, in order, and merged."""
        from pyspark.sql import functions as f  # noqa: PLC0415  an extra

        with translate_spark_errors():
            frame = stage.frame.where(f.col("part") != REPORT_PART).mapInArrow(_CutTask(cut), ROW_SCHEMA)
            frame = frame.repartitionById(parts, f.col("part")).sortWithinPartitions("part", "source", "place")
            return self._persist(frame.mapInArrow(_MergeTask(work), ROW_SCHEMA))

    def _persist(self, frame: "DataFrame") -> SparkStage:
        """Do the work, once, and keep what it comes to; a machine that is lost has its share done again by others."""
        from pyspark import StorageLevel  # noqa: PLC0415  an extra

        kept = frame.persist(StorageLevel.DISK_ONLY)
        return SparkStage(kept, self._collect_reports(kept))

    @staticmethod
    def _collect_reports(frame: "DataFrame") -> list[TaskReport]:
        """Return the notes of all tasks. Raises what one of them found wrong with the input."""
        from pyspark.sql import functions as f  # noqa: PLC0415  an extra

        notes = [
            TaskReport.from_bytes(bytes(row["data"])) for row in frame.where(f.col("part") == REPORT_PART).collect()
        ]
        raise_task_failures(notes)
        return notes


def add_line_stats(notes: Sequence[TaskReport], files: SparkFiles, report: InputReport) -> None:
    """Add what became of lines to a report, files in their order. Lines have no numbers in a piece of a file."""
    from unlost.mementomap.readers import LINE_PROBLEM_MESSAGES  # noqa: PLC0415

    every = sorted((tally for note in notes for tally in note.tallies), key=lambda each: each[:2])
    for source, start, added, added_lines, tally in every:
        lines, counted, foreign, filtered, repaired, problems = tally
        report.lines += lines - added_lines
        report.counted += counted
        report.foreign += foreign
        report.filtered += filtered
        report.repaired += repaired
        for kind, count, line, offset, example in problems:
            found = ascii(example.decode("utf-8", "replace"))[1:-1][:60]
            message = f"{LINE_PROBLEM_MESSAGES.get(kind, 'no key can be made of it')}: `{found}`"
            number = line - added_lines if start == 0 else None
            report.problems.add(
                Problem(kind, files.display_name(source), number, start + offset - added, message), count
            )


def check_split_order(notes: Sequence[TaskReport], files: SparkFiles, *, strictly: bool) -> None:
    """Raise InputError if the pieces of a file do not follow each other in order."""
    before: tuple[int, bytes] | None = None
    for edge in sorted(edge for note in notes for edge in note.edges):
        if before and before[0] == edge.source and (edge.first < before[1] or (strictly and edge.first == before[1])):
            found = edge.first[:60].decode(errors="replace")
            raise InputError(
                f"{files.display_name(edge.source)}: not in order at byte {edge.start}, before {found!a}: its "
                "parts are not "
                "sorted, or not all of them"
            )
        before = (edge.source, edge.last)


class _FileCounter(Protocol):
    def add_file(
        self, path: str | PathLike[str], progress: Progress, urls: bool = False, column: int | None = None
    ) -> "tuple[Tally, str | None]": ...


def read_inputs(
    engine: SparkEngine, inputs: Sequence[str | PathLike[str]], kind: object, columns: Mapping[str, str] | None
) -> SparkFiles:
    """Return what is counted: lines, or the rows of Parquet files if columns are given."""
    if columns is not None:
        return read_parquet(engine.session, inputs, columns)
    return read_files(engine.session, inputs, kind)  # type: ignore[arg-type]


def refuse_partial(options: InputOptions) -> None:
    """Raise UsageError if damaged files are to be read as far as possible: Spark reads them whole or not at all."""
    if options.allow_partial:
        raise UsageError("--allow-partial is not supported on a cluster: leave it out, or leave out --engine spark")


def count_split(
    split: Split,
    builder: "_core.MapBuilder | _core.FilterBuilder",
    expected_header: UkvsHeader,
    options: InputOptions,
    *,
    is_only: bool,
    map_headers: list[str] | None = None,
) -> "Tally":
    """Count what a piece of a file holds, and return what became of its lines. Raises InputError.

    maps: gets the `!meta` of a map, as JSON.
    """
    if split.kind != "map":
        return count_split_rows(split, builder, options)
    try:
        header = read_compatible_map_header(str(split.path), expected_header, is_whole=False)
        if map_headers is not None:
            map_headers.append(json.dumps(header.meta))
        return builder.add_map(split.path, len(header.keys), MAX_LINE_BYTES, is_only, Progress())
    except InputError as error:
        raise _add_name(split, error) from error


def collect_map_headers(notes: Iterable[TaskReport]) -> list[UkvsHeader]:
    """Return what the maps say about themselves that were counted, some of them more than once."""
    return [UkvsHeader(meta=json.loads(text)) for note in notes for text in note.maps]


def merge_capture_dates(notes: Iterable[TaskReport]) -> tuple[str, str] | None:
    """Return the dates of the first and the last capture of all that was counted."""
    found = [note.dates for note in notes if note.dates]
    return (min(first for first, _ in found), max(last for _, last in found)) if found else None


def count_split_rows(split: Split, builder: _FileCounter, options: InputOptions) -> "Tally":
    """Do the same for a piece of an index or a list."""
    at = None if options.column is None else options.column - 1
    try:
        tally, _ = builder.add_file(split.path, Progress(), split.kind == "urls", at)
    except InputError as error:
        raise _add_name(split, error) from error
    if split.has_hint:
        lines, counted, foreign, filtered, repaired, problems = tally
        is_foreign = hint_is_foreign(options)
        tally = (lines, counted, foreign - is_foreign, filtered - (not is_foreign), repaired, problems)
    return tally


def hint_is_foreign(options: InputOptions) -> bool:
    """Return whether a hint counts as no web page: a row that is not asked for is left out before anybody looks."""
    return "-" in (options.status or "-") and "text/dns" in (options.mime or ["text/dns"])


def _add_name(piece: Split, error: InputError) -> InputError:
    return InputError(f"{piece.name}: {str(error).removeprefix(f'{piece.path}: ')}")
