"""Maps on a cluster: built, compacted, merged."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from unlost import _core
from unlost._core import Progress
from unlost.errors import UsageError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.ukvs import Header, header_lines
from unlost.holdings.build import EXCLUDABLE, MapOptions, map_builder
from unlost.holdings.compaction import NO_LIMIT, Compaction, compacted_header
from unlost.holdings.map_file import map_file, with_row_bytes
from unlost.holdings.provenance import add_provenance, capture_range, input_digests, oldest_update
from unlost.holdings.report import Report
from unlost.holdings.spark.bounds import Level
from unlost.holdings.spark.counting import count_piece, headers_of, joined_dates, read_inputs, refuse_partial
from unlost.holdings.spark.engine import CutLines, Engine, Stage, add_tallies, check_order
from unlost.holdings.spark.files import chunks, empty, folder, samples, with_totals, without_totals
from unlost.holdings.spark.map_reading import ReadMaps, read_headers
from unlost.holdings.spark.pieces import Files, Piece, read_files
from unlost.holdings.spark.rows import PLACES, Edges, Note, Row

if TYPE_CHECKING:
    from unlost._core import CompactionCurves


@dataclass(slots=True)
class CompactReport(Report):
    """What compacting on a cluster came to: lines read and written, without totals."""

    lines_in: int = 0
    lines_out: int = 0


@dataclass(frozen=True, slots=True)
class CountPieces:
    """Counts pieces under their keys: partial results are counted keys in order."""

    options: MapOptions
    is_only: bool

    def __call__(self, pieces: Iterator[Piece], task: int) -> Iterator[Row]:
        """Yield counted keys, and a note."""
        note = Note()
        builder = map_builder(replace(self.options, threads=1))
        for piece in pieces:
            if self.options.sorted and piece.kind == "index":
                note.edges.append(_edges(piece))
            header = self.options.header()
            tally = count_piece(piece, builder, header, self.options, is_only=self.is_only, maps=note.maps)
            note.tallies.append((piece.source, piece.start, piece.added, piece.added_lines, tally))
        note.dates = builder.dates()
        with folder() as place:
            counted = empty(Path(place, "counts"))
            builder.write_counts(counted, Progress())
            note.samples = samples(counted)
            for number, text in enumerate(chunks(counted)):
                yield Row(0, 0, task * PLACES + number, text)
        yield note.row()


def _edges(piece: Piece) -> Edges:
    """Return the first and the last key column of a piece."""
    with piece.path.open("rb") as file:
        file.seek(piece.added)
        first = b""
        for line in file:
            if line.strip() and line[:1] not in b"!@ ":
                first = line.split(b" ", 1)[0]
                break
        size = piece.path.stat().st_size
        file.seek(max(piece.added, size - MAX_LINE_BYTES if size > MAX_LINE_BYTES else 0, size - (1 << 16)))
        last = file.read().rstrip().rpartition(b"\n")[2].split(b" ", 1)[0]
    return Edges(piece.source, piece.start, first, last or first)


@dataclass(frozen=True, slots=True)
class BuildPart:
    """Adds up what was counted of one part, and writes its lines."""

    options: MapOptions
    curves: "CompactionCurves | None"

    def __call__(self, part: int, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the part's lines, and a note with its total."""
        builder = map_builder(replace(self.options, threads=1, sorted=False))
        fields = 2 if self.options.by_year else 1
        for row in rows:
            builder.add_counts(row.data, fields)
        with folder() as place:
            path = empty(Path(place, "part"))
            builder.write(path, b"", self.curves, Progress())
            yield from _finished(part, path)


def _finished(part: int, path: Path) -> Iterator[Row]:
    """Yield the lines of a part that was written, and its total in a note."""
    totals, lines = without_totals(path)
    note = Note(summed={0: totals}, samples=samples(path))
    count = 0
    for number, text in enumerate(lines):
        count += text.count(b"\n")
        # Parts follow each other where they are cut again.
        yield Row(part, 0, part * PLACES + number, text)
    note.counts["lines"] = count
    yield note.row()


@dataclass(frozen=True, slots=True)
class CompactPart:
    """Compacts one part, whose lines come in order."""

    fields: int
    curves: "CompactionCurves"

    def __call__(self, part: int, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the lines that are left, and a note."""
        with folder() as place:
            source, path = Path(place, "source"), empty(Path(place, "part"))
            with source.open("wb") as file:
                for row in rows:
                    file.write(row.data)
            _core.compact_map(source, self.fields, MAX_LINE_BYTES, path, b"", self.curves, None, Progress())
            yield from _finished(part, path)


def build_map(
    engine: Engine,
    inputs: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    options: MapOptions | None = None,
    columns: Mapping[str, str] | None = None,
) -> Report:
    """Write the map of what the inputs hold, as `unlost.holdings.build_map` does, byte for byte.

    Only the header's `inputs` are left out unless all inputs are files of this machine: others are not read here.
    inputs: names as Spark takes them; see `unlost.holdings.spark.pieces`. columns: of Parquet files.
    Raises InputError for an input that cannot be read, ClusterError if the cluster gives up; nothing is written then.
    """
    wanted = options or MapOptions()
    refuse_partial(wanted)
    if unknown := wanted.exclude - set(EXCLUDABLE):
        raise UsageError(f"{min(unknown)}: cannot be left out: expected {' or '.join(EXCLUDABLE)}")
    report = Report()
    fields = 2 if wanted.by_year else 1
    with map_file(output) as aside:
        files = read_inputs(engine, inputs, wanted.kind, columns)
        counted = engine.read(files, CountPieces(wanted, len(files.names) == 1))
        add_tallies(counted.notes, files, report)
        report.refuse_damage(allow_partial=False)
        report.refuse_empty(inputs)
        report.refuse_bad(wanted.max_bad)
        check_order(counted.notes, files, strictly=False)
        compaction = wanted.compacts()
        first, second = _steps(compaction)
        level = _level(compaction) if second is None else "host"
        stage = _part_by_part(
            engine, counted, level, first, BuildPart(wanted, first.curves() if first else None), wanted.urir
        )
        totals = _core.add_totals(b"".join(note.summed.get(0, b"") for note in stage.notes), fields)
        counted.forget()
        if second is not None:
            stage = _part_by_part(engine, stage, "domain", second, CompactPart(fields, second.curves()))
        is_everything = compaction is not None and "*" in compaction.rollup
        head = header_lines(with_row_bytes(_header(wanted, counted.notes, files)))
        write_parts(aside, head, totals, stage, is_everything=is_everything)
    return report


def _header(wanted: MapOptions, notes: Sequence[Note], files: Files) -> Header:
    """Return the header of a map that was built."""
    maps = headers_of(notes)
    made = oldest_update(maps, wanted.made) if wanted.made else None
    is_local = all(name.startswith("file:") for name in files.names)
    digests = input_digests(map(files.shown, range(len(files.names)))) if wanted.made and is_local else []
    return add_provenance(wanted.header(), made, capture_range(maps, joined_dates(notes)), digests)


def _steps(compaction: Compaction | None) -> tuple[Compaction | None, Compaction | None]:
    """Return what is compacted first and what then.

    Paths are compacted by hosts, of which no domain has so many that one machine would work long for it alone, and only
    then hosts: compacting again gives what compacting once would have given.
    """
    if compaction is None or "*" in compaction.rollup:
        return compaction, None
    rolls_hosts = compaction.host_weight != NO_LIMIT or compaction.rollup
    rolls_paths = compaction.path_weight != NO_LIMIT
    if not (rolls_hosts and rolls_paths):
        return compaction, None
    return replace(compaction.weighing(NO_LIMIT, compaction.path_weight), rollup=()), compaction


def _level(compaction: Compaction | None) -> Level:
    """Return what must not be cut where a map is compacted in one step."""
    if compaction is None:
        return "page"
    return "domain" if compaction.host_weight != NO_LIMIT or compaction.rollup else "host"


def _part_by_part(
    engine: Engine,
    stage: Stage,
    level: Level,
    compaction: Compaction | None,
    work: "BuildPart | CompactPart",
    pages: bool = False,
) -> Stage:
    rollups = compaction.rollup if compaction else ()
    whole = [key.removesuffix(",*").encode() for key in rollups if key.count(",") == 1]
    bounds = [] if "*" in rollups else stage.bounds(engine.parts, engine.at_once, level, whole)
    return engine.merge(stage, CutLines(bounds, pages), len(bounds) + 1, work)


def write_parts(path: Path, head: bytes, totals: bytes, stage: Stage, *, is_everything: bool = False) -> int:
    """Write a map's header, total and parts, and return how many lines there are without the total.

    is_everything: all of it was rolled up, so that the parts, of which there is one, have the total.
    """
    with path.open("wb", buffering=1 << 20) as out:
        out.write(head)
        if is_everything:
            out.write(b"".join(note.summed.get(0, b"") for note in stage.notes))
            totals = b""
        for text in with_totals(totals, (row.data for row in stage.rows())):
            out.write(text)
    stage.forget()
    return sum(note.counts.get("lines", 0) for note in stage.notes)


def compact_map(
    engine: Engine, source: str | PathLike[str], output: str | PathLike[str], compaction: Compaction | None = None
) -> CompactReport:
    """Write a map with fewer lines, as `unlost.holdings.compact_map` does, byte for byte.

    source: one map, or the parts of one in a folder, in the order of their names.
    """
    how = compaction or Compaction()
    with map_file(output) as aside:
        files = read_files(engine.session, [source], "map")
        header = read_headers(engine, files)[0]
        fields = len(header.keys)
        read = engine.read(files, ReadMaps(fields))
        report = Report()
        add_tallies(read.notes, files, report)
        check_order(read.notes, files, strictly=True)
        stated = b"".join(text for note in read.notes for text in note.stated.values())
        head = header_lines(with_row_bytes(compacted_header(header, how)))
        if "*" in how.rollup:
            raise UsageError("--rollup '*' leaves one line: that is no work for a cluster")
        first, second = _steps(how)
        stage = read
        if first is not None:
            level = _level(how) if second is None else "host"
            stage = _part_by_part(engine, stage, level, first, CompactPart(fields, first.curves()))
        if second is not None:
            stage = _part_by_part(engine, stage, "domain", second, CompactPart(fields, second.curves()))
        lines_out = write_parts(aside, head, stated, stage)
    lines_in = report.counted - stated.count(b"\n")
    return CompactReport(
        report.lines, report.counted, report.foreign, report.filtered, report.problems, None, lines_in, lines_out
    )
