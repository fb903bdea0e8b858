"""The Spark engine: counts splits, cuts the partial results at key bounds, and merges them part by part.

An error in the input is a row with a report, not an exception: Spark would try a task that cannot succeed four times,
and hide the message in a Java stack trace.
"""

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
    read_arrow_batches,
    report_errors,
    task_directory,
    write_batches,
)
from unlost.research.spark.session import raise_task_failures, translate_spark_errors
from unlost.research.spark.splits import SparkFiles, Split, read_files, read_parquet, read_splits
from unlost.text_lines import MAX_LINE_BYTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from unlost._core import LineStats


CutLevel = Literal["page", "host", "domain"]
_HOST = re.compile(rb"([a-z0-9._:,-]+)\)")
_DOMAIN = re.compile(rb"[a-z0-9-]+,[a-z0-9._:-]+(?=[,)])")
PART_BYTES = 64 << 20
"""Size of the partial rows of a part: some seconds of work, which are repeated if an executor is lost."""
MAX_PARTS = 20_000

_TASKS_PER_RANGE = 1 << 22
"""Upper bound for the number of tasks of a checkpoint range."""


def choose_part_count(size: int, at_least: int) -> int:
    """Return the number of parts for `size` bytes: at least one per processor (`at_least`), unless the data is tiny.

    >>> choose_part_count(100, 8), choose_part_count(10_000_000, 8), choose_part_count(1 << 40, 8)
    (1, 8, 16384)
    """
    if size < 1 << 20:
        return 1
    return min(max(size // PART_BYTES, at_least), MAX_PARTS)


def choose_bounds(
    samples: Sequence[tuple[bytes, int]], parts: int, level: CutLevel, undivided_tlds: Collection[bytes] = ()
) -> list[bytes]:
    r"""Return the first key of each part except the first, sorted; at most `parts` - 1 keys.

    Args:
        samples: Sampled keys with the bytes that each represents.
        parts: Number of parts.
        level: Unit that must not be divided.
        undivided_tlds: Top-level domains that must not be divided.

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
    covered = 0
    for key, weight in sorted(samples):
        if covered * parts >= (len(bounds) + 1) * total:
            bound = _unit_start(key, level)
            is_new = bound is not None and (not bounds or bound > bounds[-1])
            if bound is not None and is_new and bound.partition(b",")[0] not in undivided_tlds:
                bounds.append(bound)
        covered += weight
    return bounds[: max(parts - 1, 0)]


def _unit_start(key: bytes, level: CutLevel) -> bytes | None:
    """Return the first key of the page, host or domain of a key; None for a key with unusual bytes.

    The subtree of such a key may not be contiguous in byte order.
    """
    if level == "page":
        return re.split(rb"[? ]", key, maxsplit=1)[0]
    if level == "host":
        host = _HOST.match(key)
        return host[1] if host else None
    domain = _DOMAIN.match(key)
    return domain[0] if domain else None


class SplitTask(Protocol):
    """Work of the reading stage: processes the splits of a task."""

    def __call__(self, splits: Iterator[Split], task: int) -> Iterator[PartialRow]:
        """Yield partial rows, and a report."""


class PartTask(Protocol):
    """Work of the merge stage: processes all rows of a part."""

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield the rows of the part in order, and a report."""


@dataclass(frozen=True, slots=True)
class _ReadTask:
    work: SplitTask
    files: Any  # broadcast SparkFiles without its frame
    first: int  # number of the first task

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext  # noqa: PLC0415  an extra

        context = TaskContext.get()
        task = self.first + (context.partitionId() if context else 0)
        with task_directory() as folder:
            splits = read_splits(batches, self.files.value, folder)
            yield from write_batches(report_errors(self.work(splits, task)))


@dataclass(frozen=True, slots=True)
class _CutTask:
    cut: Callable[[PartialRow], Iterator[PartialRow]]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        return write_batches(cut_row for row in read_arrow_batches(batches) for cut_row in self.cut(row))


@dataclass(frozen=True, slots=True)
class _MergeTask:
    work: PartTask

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        def merged_rows() -> Iterator[PartialRow]:
            for part, rows in groupby(read_arrow_batches(batches), lambda row: row.part):
                yield from report_errors(self.work(part, rows))

        return write_batches(merged_rows())


@dataclass(frozen=True, slots=True)
class LineCutter:
    """Divides lines at key bounds; with `pages`, by page key without query."""

    bounds: Sequence[bytes]
    pages: bool = False

    def __call__(self, row: PartialRow) -> Iterator[PartialRow]:
        """Yield the lines of a row for each part."""
        for part, lines in _core.split_lines(row.data, self.bounds, self.pages):
            yield PartialRow(part, row.source, row.place, lines)


@dataclass(slots=True)
class SparkStage:
    """Result of a stage: rows on the cluster, and the reports of all tasks.

    Attributes:
        frame: The rows.
        reports: The reports.
        is_checkpointed: Whether the rows are read from a checkpoint, in undefined order.
    """

    frame: "DataFrame"
    reports: list[TaskReport]
    is_checkpointed: bool = False

    def choose_bounds(
        self, parts: int | None, at_least: int, level: CutLevel, undivided_tlds: Sequence[bytes] = ()
    ) -> list[bytes]:
        """Return the bounds of the parts, from the keys sampled by the tasks.

        Args:
            parts: Number of parts; None to choose by size.
            at_least: Minimum number of parts if chosen by size.
            level: Unit that must not be divided.
            undivided_tlds: Top-level domains that must not be divided.
        """
        samples = [sample for task_report in self.reports for sample in task_report.samples]
        part_count = parts or choose_part_count(sum(weight for _, weight in samples), at_least)
        return choose_bounds(samples, part_count, level, undivided_tlds)

    def rows(self, source: int | None = None) -> Iterator[PartialRow]:
        """Yield all rows, or those of one source, in order.

        Raises:
            ClusterError: The rows arrived out of order.
        """
        from pyspark.sql import functions as f  # noqa: PLC0415  an extra

        last = (REPORT_PART, REPORT_PART)
        with translate_spark_errors():
            frame = self.frame.where(f.col("part") != REPORT_PART)
            if source is not None:
                frame = frame.where(f.col("source") == source)
            if self.is_checkpointed:
                frame = frame.orderBy("part", "place")
            for record in frame.toLocalIterator(prefetchPartitions=True):
                row = PartialRow(record["part"], record["source"], record["place"], bytes(record["data"]))
                if (row.part, row.place) <= last:
                    raise ClusterError("parts came out of order from the cluster: nothing was written")
                last = (row.part, row.place)
                yield row

    def release(self) -> None:
        """Free the rows on the cluster."""
        with translate_spark_errors():
            self.frame.unpersist()


class SparkEngine:
    """Runs stages on a cluster. No setting affects the output.

    Args:
        session: Spark session.
        parts: Number of parts of a result; None to choose by size.
        checkpoints: Stores the reading stage, so that an interrupted job can be resumed; None for no checkpoints.
    """

    def __init__(
        self, session: "SparkSession", parts: int | None = None, checkpoints: CheckpointStore | None = None
    ) -> None:
        self.session = session
        self.parts = parts
        self.checkpoints = checkpoints

    @property
    def parallelism(self) -> int:
        """Number of concurrent tasks according to Spark."""
        return self.session.sparkContext.defaultParallelism

    def read(self, files: SparkFiles, work: SplitTask) -> SparkStage:
        """Run the reading stage.

        Raises:
            InputError: A file cannot be read.
        """
        from dataclasses import replace  # noqa: PLC0415  start-up

        shared = self.session.sparkContext.broadcast(replace(files, rows=None))  # type: ignore[arg-type]
        with translate_spark_errors():
            if self.checkpoints is None:
                return self._persist(files.rows.mapInArrow(_ReadTask(work, shared, 0), ROW_SCHEMA))
            task_reports: list[TaskReport] = []
            frames = []
            for number, checkpoint in enumerate(self.checkpoints.split_into_ranges(files, work)):
                read_task = _ReadTask(work, shared, number * _TASKS_PER_RANGE)
                frames.append(
                    self.checkpoints.load_or_compute(
                        checkpoint.filter_rows(files.rows).mapInArrow(read_task, ROW_SCHEMA), checkpoint
                    )
                )
                try:
                    task_reports += self._collect_reports(frames[-1])
                except (InputError, UsageError):
                    # Checkpoints of an invalid input are useless.
                    self.checkpoints.delete()
                    raise
            return SparkStage(
                reduce(lambda first, second: first.unionAll(second), frames), task_reports, is_checkpointed=True
            )

    def merge(
        self, stage: SparkStage, cut: Callable[[PartialRow], Iterator[PartialRow]], parts: int, work: PartTask
    ) -> SparkStage:
        """Run the merge stage: cut rows into parts, shuffle and sort them, and merge each part."""
        from pyspark.sql import functions as f  # noqa: PLC0415  an extra

        with translate_spark_errors():
            frame = stage.frame.where(f.col("part") != REPORT_PART).mapInArrow(_CutTask(cut), ROW_SCHEMA)
            frame = frame.repartitionById(parts, f.col("part")).sortWithinPartitions("part", "source", "place")
            return self._persist(frame.mapInArrow(_MergeTask(work), ROW_SCHEMA))

    def _persist(self, frame: "DataFrame") -> SparkStage:
        """Compute a frame once and store it on the executors' disks. Spark recomputes the rows of a lost executor."""
        from pyspark import StorageLevel  # noqa: PLC0415  an extra

        persisted = frame.persist(StorageLevel.DISK_ONLY)
        return SparkStage(persisted, self._collect_reports(persisted))

    @staticmethod
    def _collect_reports(frame: "DataFrame") -> list[TaskReport]:
        """Return the reports of all tasks; raise the error of a failed one."""
        from pyspark.sql import functions as f  # noqa: PLC0415  an extra

        task_reports = [
            TaskReport.from_bytes(bytes(row["data"])) for row in frame.where(f.col("part") == REPORT_PART).collect()
        ]
        raise_task_failures(task_reports)
        return task_reports


def add_line_stats(task_reports: Sequence[TaskReport], files: SparkFiles, report: InputReport) -> None:
    """Add the line counts of all tasks to a report, in file order. Line numbers are unknown within a split."""
    from unlost.mementomap.readers import LINE_PROBLEM_MESSAGES  # noqa: PLC0415

    tallies = sorted(
        (tally for task_report in task_reports for tally in task_report.tallies), key=lambda each: each[:2]
    )
    for source, start, added, added_lines, tally in tallies:
        lines, counted, foreign, filtered, repaired, problems = tally
        report.lines += lines - added_lines
        report.counted += counted
        report.foreign += foreign
        report.filtered += filtered
        report.repaired += repaired
        for kind, count, line, offset, example in problems:
            excerpt = ascii(example.decode("utf-8", "replace"))[1:-1][:60]
            message = f"{LINE_PROBLEM_MESSAGES.get(kind, 'no key can be made of it')}: `{excerpt}`"
            number = line - added_lines if start == 0 else None
            report.problems.add(
                Problem(kind, files.display_name(source), number, start + offset - added, message), count
            )


def check_split_order(task_reports: Sequence[TaskReport], files: SparkFiles, *, strictly: bool) -> None:
    """Raise InputError if the splits of a file are not sorted."""
    previous: tuple[int, bytes] | None = None
    for edge in sorted(edge for task_report in task_reports for edge in task_report.edges):
        if (
            previous
            and previous[0] == edge.source
            and (edge.first < previous[1] or (strictly and edge.first == previous[1]))
        ):
            excerpt = edge.first[:60].decode(errors="replace")
            raise InputError(
                f"{files.display_name(edge.source)}: not in order at byte {edge.start}, before {excerpt!a}: its "
                "parts are not "
                "sorted, or not all of them"
            )
        previous = (edge.source, edge.last)


class _FileCounter(Protocol):
    def add_file(
        self, path: str | PathLike[str], progress: Progress, urls: bool = False, column: int | None = None
    ) -> "tuple[LineStats, str | None]": ...


def read_inputs(
    engine: SparkEngine, inputs: Sequence[str | PathLike[str]], kind: object, columns: Mapping[str, str] | None
) -> SparkFiles:
    """Return the input files: text, or Parquet if columns are given."""
    if columns is not None:
        return read_parquet(engine.session, inputs, columns)
    return read_files(engine.session, inputs, kind)  # type: ignore[arg-type]


def refuse_partial(options: InputOptions) -> None:
    """Raise UsageError for `allow_partial`: Spark cannot read the undamaged part of a file."""
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
) -> "LineStats":
    """Count the rows of a split and return their tally.

    Args:
        split: The split.
        builder: Receives the rows.
        expected_header: Header that maps must be compatible with.
        options: Options for reading.
        is_only: Whether the input is a single file.
        map_headers: Receives the `!meta` of a map, as JSON.

    Raises:
        InputError: The split cannot be read.
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


def collect_map_headers(task_reports: Iterable[TaskReport]) -> list[UkvsHeader]:
    """Return the headers of all maps read; a header may occur several times."""
    return [UkvsHeader(meta=json.loads(text)) for task_report in task_reports for text in task_report.maps]


def merge_capture_dates(task_reports: Iterable[TaskReport]) -> tuple[str, str] | None:
    """Return the dates of the first and the last capture."""
    ranges = [task_report.dates for task_report in task_reports if task_report.dates]
    return (min(first for first, _ in ranges), max(last for _, last in ranges)) if ranges else None


def count_split_rows(split: Split, builder: _FileCounter, options: InputOptions) -> "LineStats":
    """Count the rows of a split of an index or a URL list."""
    column = None if options.column is None else options.column - 1
    try:
        tally, _ = builder.add_file(split.path, Progress(), split.kind == "urls", column)
    except InputError as error:
        raise _add_name(split, error) from error
    if split.has_hint:
        lines, counted, foreign, filtered, repaired, problems = tally
        is_foreign = hint_is_foreign(options)
        tally = (lines, counted, foreign - is_foreign, filtered - (not is_foreign), repaired, problems)
    return tally


def hint_is_foreign(options: InputOptions) -> bool:
    """Return whether the layout hint is counted as foreign. Otherwise the options filter it out before."""
    return "-" in (options.status or "-") and "text/dns" in (options.mime or ["text/dns"])


def _add_name(split: Split, error: InputError) -> InputError:
    return InputError(f"{split.name}: {str(error).removeprefix(f'{split.path}: ')}")
