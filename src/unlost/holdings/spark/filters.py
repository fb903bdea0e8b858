"""Filters on a cluster: hashes are brought together by their first bits, and partitions made where they are."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from os import PathLike
from pathlib import Path

from unlost import _core
from unlost._core import Progress
from unlost.formats.output import whole_path
from unlost.formats.ukvs import Header
from unlost.holdings.filtering import FilterOptions, FilterReport, choices, filter_builder, filter_date
from unlost.holdings.spark.counting import count_piece, headers_of, joined_dates, read_inputs, refuse_partial
from unlost.holdings.spark.engine import Engine, add_tallies
from unlost.holdings.spark.files import empty, folder
from unlost.holdings.spark.pieces import Piece
from unlost.holdings.spark.rows import CHUNK, PLACES, REPORT, Note, Row

_GROUP_KEYS = 1 << 20
"""Hashes that are sorted at a time: 8 megabytes."""

_MOST_GROUPS = 1 << 15
_BITS = 64


@dataclass(frozen=True, slots=True)
class HashPieces:
    """Hashes the keys of pieces: partial results are hashes in order, each once."""

    options: FilterOptions
    is_only: bool

    def __call__(self, pieces: Iterator[Piece], task: int) -> Iterator[Row]:
        """Yield hashes, and a note with dates."""
        note = Note()
        builder = filter_builder(replace(self.options, threads=1))
        like = Header(keys=("surt",), meta={"rules": self.options.rules})
        for piece in pieces:
            tally = count_piece(piece, builder, like, self.options, is_only=self.is_only, maps=note.maps)
            note.tallies.append((piece.source, piece.start, piece.added, piece.added_lines, tally))
        with folder() as place:
            path = empty(Path(place, "hashes"))
            note.counts["keys"], note.dates = builder.write_hashes(path, Progress())
            with path.open("rb") as file:
                number = task * PLACES
                while hashes := file.read(CHUNK):
                    yield Row(0, 0, number, hashes)
                    number += 1
        yield note.row()


@dataclass(frozen=True, slots=True)
class CutHashes:
    """Puts hashes apart by their first bits, so many of them."""

    bits: int

    def __call__(self, row: Row) -> Iterator[Row]:
        """Yield what of a row, which is in order, belongs to each group."""
        hashes = memoryview(row.data).cast("Q")
        first = 0
        while first < len(hashes):
            group = hashes[first] >> (_BITS - self.bits) if self.bits else 0
            end = bisect_left(hashes, (group + 1) << (_BITS - self.bits), first)
            yield Row(group, row.source, row.place, bytes(hashes[first:end].cast("B")))
            first = end


@dataclass(frozen=True, slots=True)
class UniteHashes:
    """Brings the hashes of one group into order, each once."""

    options: FilterOptions

    def __call__(self, part: int, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the group's hashes, and a note with their number."""
        builder = filter_builder(replace(self.options, threads=1))
        for row in rows:
            builder.add_hashes(row.data)
        with folder() as place:
            path = empty(Path(place, "hashes"))
            keys, _ = builder.write_hashes(path, Progress())
            with path.open("rb") as file:
                number = 0
                while hashes := file.read(CHUNK):
                    yield Row(part, 0, number, hashes)
                    number += 1
        yield Note(counts={"keys": keys}).row()


@dataclass(frozen=True, slots=True)
class Regroup:
    """Brings groups together that make one partition."""

    shift: int

    def __call__(self, row: Row) -> Iterator[Row]:
        """Yield the row as one of its new group, behind those of the groups before it."""
        yield Row(row.part >> self.shift, 0, row.part * PLACES + row.place, row.data)


@dataclass(frozen=True, slots=True)
class MakePartitions:
    """Makes the partitions of one group."""

    partitions: int
    groups: int
    bits: int

    def __call__(self, part: int, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the entries of the directory (source 0), then the bytes (source 1)."""
        hashes = b"".join(row.data for row in rows)
        each = self.partitions // self.groups
        directory, body = _core.make_filter_partitions(
            hashes, part * each, (part + 1) * each, self.partitions, self.bits
        )
        yield Row(part, 0, 0, directory)
        for number, start in enumerate(range(0, len(body), CHUNK), 1):
            yield Row(part, 1, number, body[start : start + CHUNK])
        yield Note().row()


def _whole(rows: Iterator[Row], groups: int, work: MakePartitions) -> Iterator[Row]:
    """Yield the rows of all groups: one without a hash nobody made, and its partitions are empty."""
    made = 0
    for part, some in groupby(rows, lambda row: row.part):
        yield from _without_hashes(range(made, part), work)
        yield from some
        made = part + 1
    yield from _without_hashes(range(made, groups), work)


def _without_hashes(groups: range, work: MakePartitions) -> Iterator[Row]:
    for group in groups:
        yield from (row for row in work(group, iter(())) if row.part != REPORT)


def build_filter(
    engine: Engine,
    inputs: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    options: FilterOptions | None = None,
    columns: Mapping[str, str] | None = None,
) -> FilterReport:
    """Write a filter of what the inputs hold, as `unlost.holdings.build_filter` does, byte for byte.

    columns: of Parquet files. Raises InputError for an input that cannot be read, ClusterError if the cluster gives up.
    """
    wanted = options or FilterOptions()
    wanted.check()
    refuse_partial(wanted)
    report = FilterReport()
    with whole_path(output) as aside:
        files = read_inputs(engine, inputs, wanted.kind, columns)
        hashed = engine.read(files, HashPieces(wanted, len(files.names) == 1))
        add_tallies(hashed.notes, files, report)
        report.refuse_damage(allow_partial=False)
        report.refuse_empty(inputs)
        report.refuse_bad(wanted.max_bad)
        most = sum(note.counts["keys"] for note in hashed.notes)
        bits = min((engine.parts or -(-most // _GROUP_KEYS) or 1).bit_length() - 1, _MOST_GROUPS.bit_length() - 1)
        united = engine.merge(hashed, CutHashes(bits), 1 << bits, UniteHashes(wanted))
        hashed.forget()
        report.keys = sum(note.counts["keys"] for note in united.notes)
        partitions = _core.filter_partitions_of(report.keys)
        groups = min(partitions, 1 << bits)
        regroup = Regroup(bits - groups.bit_length() + 1)
        work = MakePartitions(partitions, groups, wanted.wanted_bits())
        made = engine.merge(united, regroup, groups, work)
        united.forget()
        with folder() as place:
            # The directory stands before what comes behind it, and is known last.
            body = Path(place, "body")
            directory = []
            with body.open("wb") as file:
                for row in _whole(made.rows(), groups, work):
                    if row.source:
                        file.write(row.data)
                    else:
                        directory.append(row.data)
            size = body.stat().st_size
            head = _core.filter_head(
                wanted.rules,
                wanted.key == "urir",
                wanted.wanted_bits(),
                report.keys,
                joined_dates(hashed.notes),
                filter_date(wanted, headers_of(hashed.notes)),
                choices(wanted),
                b"".join(directory),
                size,
            )
            with aside.open("wb") as out, body.open("rb") as file:
                out.write(head)
                while text := file.read(CHUNK):
                    out.write(text)
        made.forget()
        report.bytes = len(head) + size
    return report
