"""The engine: lines are read where they are, counted there, and merged part by part.

Whatever is made on a cluster is two kinds of work, each a small object that travels to the machines:

- of pieces of files, partial results (`Engine.read`): lines with counts, hashes, or whatever can be merged;
- of partial results that belong to one part of the result, that part (`Engine.merge`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

from unlost import _core
from unlost.errors import ClusterError, InputError, UsageError
from unlost.formats.problems import Problem
from unlost.holdings.report import Report
from unlost.holdings.spark.bounds import Level, choose_bounds, parts_for
from unlost.holdings.spark.failures import explained, raise_failures
from unlost.holdings.spark.files import folder
from unlost.holdings.spark.keeping import Keeper
from unlost.holdings.spark.pieces import Files, Piece, pieces_in
from unlost.holdings.spark.rows import REPORT, SCHEMA, Note, Row, batches_of, guarded, rows_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_TASKS = 1 << 22
"""More tasks than one leg of the reading has."""


class PieceWork(Protocol):
    """What is done with the pieces of files that one task reads."""

    def __call__(self, pieces: Iterator[Piece], task: int) -> Iterator[Row]:
        """Yield partial results, and a note."""


class PartWork(Protocol):
    """What is done with everything that belongs to one part of the result."""

    def __call__(self, part: int, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the part's rows, in order, and a note."""


@dataclass(frozen=True, slots=True)
class _Reading:
    work: PieceWork
    files: Any  # a broadcast Files, without its frame
    first: int  # the number of the first task

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext  # noqa: PLC0415  an extra

        context = TaskContext.get()
        task = self.first + (context.partitionId() if context else 0)
        with folder() as place:
            pieces = pieces_in(batches, self.files.value, place)
            yield from batches_of(guarded(self.work(pieces, task)))


@dataclass(frozen=True, slots=True)
class _Cutting:
    cut: Callable[[Row], Iterator[Row]]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        return batches_of(row for whole in rows_in(batches) for row in self.cut(whole))


@dataclass(frozen=True, slots=True)
class _Merging:
    work: PartWork

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        def done() -> Iterator[Row]:
            for part, rows in groupby(rows_in(batches), lambda row: row.part):
                yield from guarded(self.work(part, rows))

        return batches_of(done())


@dataclass(frozen=True, slots=True)
class CutLines:
    """Cuts lines at bounds; of pages with `pages`, whatever their queries are."""

    bounds: Sequence[bytes]
    pages: bool = False

    def __call__(self, row: Row) -> Iterator[Row]:
        """Yield what of a row belongs to each part."""
        for part, lines in _core.cut_lines(row.data, self.bounds, self.pages):
            yield Row(part, row.source, row.place, lines)


@dataclass(slots=True)
class Stage:
    """What a stage of the work came to: rows that stay on the cluster's disks, and notes of all tasks.

    is_kept: the rows are where a `Keeper` keeps them, in no order.
    """

    frame: "DataFrame"
    notes: list[Note]
    is_kept: bool = False

    def bounds(self, parts: int | None, at_least: int, level: Level, whole: Sequence[bytes] = ()) -> list[bytes]:
        """Return where the result is cut, by the samples that tasks took."""
        samples = [sample for note in self.notes for sample in note.samples]
        wanted = parts or parts_for(sum(weight for _, weight in samples), at_least)
        return choose_bounds(samples, wanted, level, whole)

    def rows(self, source: int | None = None) -> Iterator[Row]:
        """Yield all rows, or those of one source, part by part, in order. Raises ClusterError."""
        from pyspark.sql import functions as f  # noqa: PLC0415  an extra

        last = (REPORT, REPORT)
        with explained():
            wanted = self.frame.where(f.col("part") != REPORT)
            if source is not None:
                wanted = wanted.where(f.col("source") == source)
            if self.is_kept:
                wanted = wanted.orderBy("part", "place")
            for found in wanted.toLocalIterator(prefetchPartitions=True):
                row = Row(found["part"], found["source"], found["place"], bytes(found["data"]))
                if (row.part, row.place) <= last:
                    raise ClusterError("parts came out of order from the cluster: nothing was written")
                last = (row.part, row.place)
                yield row

    def forget(self) -> None:
        """Let the cluster's disks go."""
        with explained():
            self.frame.unpersist()


class Engine:
    """Work on a cluster.

    session: of Spark. parts: how many a result is cut into; as many as its size asks for if None. keeper: of what was
    read, for a run that ends before it is done. Nothing of it shows in the result.
    """

    def __init__(self, session: "SparkSession", parts: int | None = None, keeper: Keeper | None = None) -> None:
        self.session = session
        self.parts = parts
        self.keeper = keeper

    @property
    def at_once(self) -> int:
        """How many tasks run at a time, as far as Spark tells."""
        return self.session.sparkContext.defaultParallelism

    def read(self, files: Files, work: PieceWork) -> Stage:
        """Return what the pieces of files come to. Raises InputError for what cannot be read."""
        from dataclasses import replace  # noqa: PLC0415  start-up

        shared = self.session.sparkContext.broadcast(replace(files, rows=None))  # type: ignore[arg-type]
        with explained():
            if self.keeper is None:
                return self._kept(files.rows.mapInArrow(_Reading(work, shared, 0), SCHEMA))
            notes: list[Note] = []
            frames = []
            for number, leg in enumerate(self.keeper.legs(files, work)):
                reading = _Reading(work, shared, number * _TASKS)
                frames.append(self.keeper.kept(leg.rows(files.rows).mapInArrow(reading, SCHEMA), leg))
                try:
                    notes += self._notes(frames[-1])
                except (InputError, UsageError):
                    # What is wrong with the input is no work that was done.
                    self.keeper.forget()
                    raise
            return Stage(reduce(lambda one, other: one.unionAll(other), frames), notes, is_kept=True)

    def merge(self, stage: Stage, cut: Callable[[Row], Iterator[Row]], parts: int, work: PartWork) -> Stage:
        """Return the parts of a result: rows are cut, those of a part brought together, in order, and merged."""
        from pyspark.sql import functions as f  # noqa: PLC0415  an extra

        with explained():
            frame = stage.frame.where(f.col("part") != REPORT).mapInArrow(_Cutting(cut), SCHEMA)
            frame = frame.repartitionById(parts, f.col("part")).sortWithinPartitions("part", "source", "place")
            return self._kept(frame.mapInArrow(_Merging(work), SCHEMA))

    def _kept(self, frame: "DataFrame") -> Stage:
        """Do the work, once, and keep what it comes to; a machine that is lost has its share done again by others."""
        from pyspark import StorageLevel  # noqa: PLC0415  an extra

        kept = frame.persist(StorageLevel.DISK_ONLY)
        return Stage(kept, self._notes(kept))

    @staticmethod
    def _notes(frame: "DataFrame") -> list[Note]:
        """Return the notes of all tasks. Raises what one of them found wrong with the input."""
        from pyspark.sql import functions as f  # noqa: PLC0415  an extra

        notes = [Note.of(bytes(row["data"])) for row in frame.where(f.col("part") == REPORT).collect()]
        raise_failures(notes)
        return notes


def add_tallies(notes: Sequence[Note], files: Files, report: Report) -> None:
    """Add what became of lines to a report, files in their order. Lines have no numbers in a piece of a file."""
    from unlost.holdings.report import MESSAGES  # noqa: PLC0415

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
            message = f"{MESSAGES.get(kind, 'no key can be made of it')}: `{found}`"
            number = line - added_lines if start == 0 else None
            report.problems.add(Problem(kind, files.shown(source), number, start + offset - added, message), count)


def check_order(notes: Sequence[Note], files: Files, *, strictly: bool) -> None:
    """Raise InputError if the pieces of a file do not follow each other in order."""
    before: tuple[int, bytes] | None = None
    for edge in sorted(edge for note in notes for edge in note.edges):
        if before and before[0] == edge.source and (edge.first < before[1] or (strictly and edge.first == before[1])):
            found = edge.first[:60].decode(errors="replace")
            raise InputError(
                f"{files.shown(edge.source)}: not in order at byte {edge.start}, before {found!a}: its parts are not "
                "sorted, or not all of them"
            )
        before = (edge.source, edge.last)
