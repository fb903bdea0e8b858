"""Filters on a Spark cluster."""

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
"""Hashes that are sorted at a time: 8 megabytes."""

_MAX_GROUPS = 1 << 15
_HASH_BITS = 64


@dataclass(frozen=True, slots=True)
class HashSplits:
    """Hashes the keys of pieces: partial results are hashes in order, each once."""

    options: FilterOptions
    is_only: bool

    def __call__(self, pieces: Iterator[Split], task: int) -> Iterator[PartialRow]:
        """Yield hashes, and a note with dates."""
        note = TaskReport()
        builder = create_filter_builder(replace(self.options, threads=1))
        like = UkvsHeader(keys=("surt",), meta={"rules": self.options.rules})
        for piece in pieces:
            tally = count_split(piece, builder, like, self.options, is_only=self.is_only, map_headers=note.maps)
            note.tallies.append((piece.source, piece.start, piece.prefix_bytes, piece.prefix_lines, tally))
        with task_directory() as place:
            path = create_empty_file(Path(place, "hashes"))
            note.counts["keys"], note.dates = builder.write_hashes(path, Progress())
            with path.open("rb") as file:
                number = task * PLACES_PER_TASK
                while hashes := file.read(CHUNK_BYTES):
                    yield PartialRow(0, 0, number, hashes)
                    number += 1
        yield note.to_row()


@dataclass(frozen=True, slots=True)
class HashCutter:
    """Puts hashes apart by their first bits, so many of them."""

    bits: int

    def __call__(self, row: PartialRow) -> Iterator[PartialRow]:
        """Yield what of a row, which is in order, belongs to each group."""
        hashes = memoryview(row.data).cast("Q")
        first = 0
        while first < len(hashes):
            group = hashes[first] >> (_HASH_BITS - self.bits) if self.bits else 0
            end = bisect_left(hashes, (group + 1) << (_HASH_BITS - self.bits), first)
            yield PartialRow(group, row.source, row.place, bytes(hashes[first:end].cast("B")))
            first = end


@dataclass(frozen=True, slots=True)
class MergeHashes:
    """Brings the hashes of one group into order, each once."""

    options: FilterOptions

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield the group's hashes, and a note with their number."""
        builder = create_filter_builder(replace(self.options, threads=1))
        for row in rows:
            builder.add_hashes(row.data)
        with task_directory() as place:
            path = create_empty_file(Path(place, "hashes"))
            keys, _ = builder.write_hashes(path, Progress())
            with path.open("rb") as file:
                number = 0
                while hashes := file.read(CHUNK_BYTES):
                    yield PartialRow(part, 0, number, hashes)
                    number += 1
        yield TaskReport(counts={"keys": keys}).to_row()


@dataclass(frozen=True, slots=True)
class HashRegrouper:
    """Brings groups together that make one partition."""

    shift: int

    def __call__(self, row: PartialRow) -> Iterator[PartialRow]:
        """Yield the row as one of its new group, behind those of the groups before it."""
        yield PartialRow(row.part >> self.shift, 0, row.part * PLACES_PER_TASK + row.place, row.data)


@dataclass(frozen=True, slots=True)
class BuildFilterPartitions:
    """Makes the partitions of one group."""

    partitions: int
    groups: int
    bits: int

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield the entries of the directory (source 0), then the bytes (source 1)."""
        hashes = b"".join(row.data for row in rows)
        each = self.partitions // self.groups
        directory, body = _core.make_filter_partitions(
            hashes, part * each, (part + 1) * each, self.partitions, self.bits
        )
        yield PartialRow(part, 0, 0, directory)
        for number, start in enumerate(range(0, len(body), CHUNK_BYTES), 1):
            yield PartialRow(part, 1, number, body[start : start + CHUNK_BYTES])
        yield TaskReport().to_row()


def _fill_empty_groups(rows: Iterator[PartialRow], groups: int, work: BuildFilterPartitions) -> Iterator[PartialRow]:
    """Yield the rows of all groups: one without a hash nobody made, and its partitions are empty."""
    made = 0
    for part, some in groupby(rows, lambda row: row.part):
        yield from _empty_groups(range(made, part), work)
        yield from some
        made = part + 1
    yield from _empty_groups(range(made, groups), work)


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
    """Write a filter of what the inputs hold, as `unlost.mementomap.build_filter` does, byte for byte.

    columns: of Parquet files. Raises InputError for an input that cannot be read, ClusterError if the cluster gives up.
    """
    wanted = options or FilterOptions()
    wanted.validate()
    refuse_partial(wanted)
    report = FilterReport()
    with atomic_path(output) as aside:
        files = read_inputs(engine, inputs, wanted.kind, columns)
        hashed = engine.read(files, HashSplits(wanted, len(files.names) == 1))
        add_line_stats(hashed.reports, files, report)
        report.refuse_damage(allow_partial=False)
        report.refuse_empty(inputs)
        report.refuse_bad(wanted.max_bad)
        most = sum(note.counts["keys"] for note in hashed.reports)
        bits = min((engine.parts or -(-most // _GROUP_KEYS) or 1).bit_length() - 1, _MAX_GROUPS.bit_length() - 1)
        united = engine.merge(hashed, HashCutter(bits), 1 << bits, MergeHashes(wanted))
        hashed.release()
        report.keys = sum(note.counts["keys"] for note in united.reports)
        partitions = _core.filter_partitions_of(report.keys)
        groups = min(partitions, 1 << bits)
        regroup = HashRegrouper(bits - groups.bit_length() + 1)
        work = BuildFilterPartitions(partitions, groups, wanted.effective_bits())
        made = engine.merge(united, regroup, groups, work)
        united.release()
        with task_directory() as place:
            # The directory stands before what comes behind it, and is known last.
            body = Path(place, "body")
            directory = []
            with body.open("wb") as file:
                for row in _fill_empty_groups(made.rows(), groups, work):
                    if row.source:
                        file.write(row.data)
                    else:
                        directory.append(row.data)
            size = body.stat().st_size
            head = _core.filter_head(
                wanted.rules,
                wanted.key == "urir",
                wanted.effective_bits(),
                report.keys,
                merge_capture_dates(hashed.reports),
                filter_build_date(wanted, collect_map_headers(hashed.reports)),
                row_selectors(wanted),
                b"".join(directory),
                size,
            )
            with aside.open("wb") as out, body.open("rb") as file:
                out.write(head)
                while text := file.read(CHUNK_BYTES):
                    out.write(text)
        made.release()
        report.bytes = len(head) + size
    return report
