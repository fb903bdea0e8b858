"""Builds filters on a Spark cluster.

The partitions of a filter are divided by the first bits of the hashes, so groups of hashes can be built independently
and concatenated.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from os import PathLike
from pathlib import Path

from unlost import _core
from unlost._core import Progress
from unlost.atomic import atomic_path
from unlost.index.ukvs import UkvsHeader
from unlost.mementomap.filter_builder import (
    FilterOptions,
    FilterReport,
    create_filter_builder,
    filter_build_date,
    row_selectors,
)
from unlost.research.spark.engine import (
    SparkEngine,
    add_line_stats,
    collect_map_headers,
    count_split,
    merge_capture_dates,
    read_inputs,
    refuse_partial,
)
from unlost.research.spark.rows import (
    CHUNK_BYTES,
    PLACES_PER_TASK,
    REPORT_PART,
    PartialRow,
    TaskReport,
    create_empty_file,
    task_directory,
)
from unlost.research.spark.splits import Split

_GROUP_KEYS = 1 << 20
"""Hashes sorted at a time: 8 MiB."""

_MAX_GROUPS = 1 << 15
_HASH_BITS = 64


@dataclass(frozen=True, slots=True)
class HashSplits:
    """Hashes the keys of splits. Partial rows are sorted distinct hashes."""

    options: FilterOptions
    is_only: bool

    def __call__(self, splits: Iterator[Split], task: int) -> Iterator[PartialRow]:
        """Yield hashes, and a report with dates."""
        task_report = TaskReport()
        builder = create_filter_builder(replace(self.options, threads=1))
        expected_header = UkvsHeader(keys=("surt",), meta={"rules": self.options.rules})
        for split in splits:
            tally = count_split(
                split, builder, expected_header, self.options, is_only=self.is_only, map_headers=task_report.maps
            )
            task_report.tallies.append((split.source, split.start, split.prefix_bytes, split.prefix_lines, tally))
        with task_directory() as folder:
            path = create_empty_file(Path(folder, "hashes"))
            task_report.counts["keys"], task_report.dates = builder.write_hashes(path, Progress())
            with path.open("rb") as file:
                number = task * PLACES_PER_TASK
                while hashes := file.read(CHUNK_BYTES):
                    yield PartialRow(0, 0, number, hashes)
                    number += 1
        yield task_report.to_row()


@dataclass(frozen=True, slots=True)
class HashCutter:
    """Divides hashes into 2^`bits` groups by their first bits."""

    bits: int

    def __call__(self, row: PartialRow) -> Iterator[PartialRow]:
        """Yield the hashes of a sorted row for each group."""
        hashes = memoryview(row.data).cast("Q")
        first = 0
        while first < len(hashes):
            group = hashes[first] >> (_HASH_BITS - self.bits) if self.bits else 0
            end = bisect_left(hashes, (group + 1) << (_HASH_BITS - self.bits), first)
            yield PartialRow(group, row.source, row.place, bytes(hashes[first:end].cast("B")))
            first = end


@dataclass(frozen=True, slots=True)
class MergeHashes:
    """Sorts and deduplicates the hashes of a group."""

    options: FilterOptions

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield the hashes of the group, and a report with their number."""
        builder = create_filter_builder(replace(self.options, threads=1))
        for row in rows:
            builder.add_hashes(row.data)
        with task_directory() as folder:
            path = create_empty_file(Path(folder, "hashes"))
            keys, _ = builder.write_hashes(path, Progress())
            with path.open("rb") as file:
                number = 0
                while hashes := file.read(CHUNK_BYTES):
                    yield PartialRow(part, 0, number, hashes)
                    number += 1
        yield TaskReport(counts={"keys": keys}).to_row()


@dataclass(frozen=True, slots=True)
class HashRegrouper:
    """Combines groups into larger ones."""

    shift: int

    def __call__(self, row: PartialRow) -> Iterator[PartialRow]:
        """Yield the row in its new group, after the rows of preceding groups."""
        yield PartialRow(row.part >> self.shift, 0, row.part * PLACES_PER_TASK + row.place, row.data)


@dataclass(frozen=True, slots=True)
class BuildFilterPartitions:
    """Builds the filter partitions of a group."""

    partitions: int
    groups: int
    bits: int

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield the directory entries (source 0), then the partitions (source 1)."""
        hashes = b"".join(row.data for row in rows)
        per_group = self.partitions // self.groups
        directory, body = _core.make_filter_partitions(
            hashes, part * per_group, (part + 1) * per_group, self.partitions, self.bits
        )
        yield PartialRow(part, 0, 0, directory)
        for number, start in enumerate(range(0, len(body), CHUNK_BYTES), 1):
            yield PartialRow(part, 1, number, body[start : start + CHUNK_BYTES])
        yield TaskReport().to_row()


def _fill_empty_groups(rows: Iterator[PartialRow], groups: int, work: BuildFilterPartitions) -> Iterator[PartialRow]:
    """Yield the rows of all groups, including empty ones.

    Groups without hashes have no rows in the stage; their empty partitions are built here.
    """
    next_group = 0
    for part, group_rows in groupby(rows, lambda row: row.part):
        yield from _empty_groups(range(next_group, part), work)
        yield from group_rows
        next_group = part + 1
    yield from _empty_groups(range(next_group, groups), work)


def _empty_groups(groups: range, work: BuildFilterPartitions) -> Iterator[PartialRow]:
    for group in groups:
        yield from (row for row in work(group, iter(())) if row.part != REPORT_PART)


def build_filter(
    engine: SparkEngine,
    inputs: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    options: FilterOptions | None = None,
    columns: Mapping[str, str] | None = None,
) -> FilterReport:
    """Write a filter on the cluster, byte for byte as `unlost.mementomap.build_filter` does.

    Args:
        engine: The engine.
        inputs: Input files.
        output: File to write.
        options: Options of the filter.
        columns: Columns of Parquet files.

    Raises:
        InputError: An input cannot be read.
        ClusterError: The job failed.
    """
    options = options or FilterOptions()
    options.validate()
    refuse_partial(options)
    report = FilterReport()
    with atomic_path(output) as temporary:
        files = read_inputs(engine, inputs, options.kind, columns)
        hashed = engine.read(files, HashSplits(options, len(files.names) == 1))
        add_line_stats(hashed.reports, files, report)
        report.refuse_damage(allow_partial=False)
        report.refuse_empty(inputs)
        report.refuse_bad(options.max_bad)
        max_keys = sum(task_report.counts["keys"] for task_report in hashed.reports)
        bits = min((engine.parts or -(-max_keys // _GROUP_KEYS) or 1).bit_length() - 1, _MAX_GROUPS.bit_length() - 1)
        merged = engine.merge(hashed, HashCutter(bits), 1 << bits, MergeHashes(options))
        hashed.release()
        report.keys = sum(task_report.counts["keys"] for task_report in merged.reports)
        partitions = _core.filter_partitions_of(report.keys)
        groups = min(partitions, 1 << bits)
        regroup = HashRegrouper(bits - groups.bit_length() + 1)
        work = BuildFilterPartitions(partitions, groups, options.effective_bits())
        built = engine.merge(merged, regroup, groups, work)
        merged.release()
        with task_directory() as folder:
            # The directory precedes the partitions in the file, but is known last.
            body = Path(folder, "body")
            directory = []
            with body.open("wb") as file:
                for row in _fill_empty_groups(built.rows(), groups, work):
                    if row.source:
                        file.write(row.data)
                    else:
                        directory.append(row.data)
            size = body.stat().st_size
            header = _core.filter_header(
                options.rules,
                options.key == "urir",
                options.effective_bits(),
                report.keys,
                merge_capture_dates(hashed.reports),
                filter_build_date(options, collect_map_headers(hashed.reports)),
                row_selectors(options),
                b"".join(directory),
                size,
            )
            with temporary.open("wb") as target, body.open("rb") as file:
                target.write(header)
                while chunk := file.read(CHUNK_BYTES):
                    target.write(chunk)
        built.release()
        report.bytes = len(header) + size
    return report
