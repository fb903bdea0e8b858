"""Maps on a cluster: built, compacted, merged."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from unlost import _core
from unlost._core import Progress
from unlost.errors import InputError, UsageError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.output import whole_path
from unlost.formats.ukvs import Header, header_lines
from unlost.holdings._map_header import is_rolled_up, read_map_header
from unlost.holdings.build import EXCLUDABLE, MapOptions, map_builder
from unlost.holdings.compaction import NO_LIMIT, Compaction, compacted_header
from unlost.holdings.inputs import map_header_like
from unlost.holdings.merging import MergeReport, merged_header
from unlost.holdings.report import Report
from unlost.holdings.spark.bounds import Level
from unlost.holdings.spark.engine import CutLines, Engine, Stage, add_tallies, check_order
from unlost.holdings.spark.files import chunks, empty, folder, samples, with_totals, without_totals
from unlost.holdings.spark.pieces import Files, Piece, read_files, read_head, read_parquet
from unlost.holdings.spark.rows import Edges, Note, Row

if TYPE_CHECKING:
    from unlost._core import CompactionCurves

_PLACES = 1 << 32
"""More rows than a task can make."""


@dataclass(slots=True)
class CompactReport(Report):
    """What compacting on a cluster came to: lines read and written, without totals."""

    lines_in: int = 0
    lines_out: int = 0


def count_piece(piece: Piece, builder: "_core.MapBuilder | _core.FilterBuilder", like: Header, column: int | None, *, is_only: bool) -> "_core.Tally":
    """Count what a piece of a file holds, and return what became of its lines. Raises InputError with the file's name."""
    progress = Progress()
    try:
        if piece.kind == "map":
            fields = len(map_header_like(str(piece.path), like).keys)
            return builder.add_map(piece.path, fields, MAX_LINE_BYTES, is_only, progress)
        at = None if column is None else column - 1
        tally, _ = builder.add_file(piece.path, progress, piece.kind == "urls", at)
    except InputError as error:
        raise InputError(f"{piece.name}: {str(error).removeprefix(f'{piece.path}: ')}") from error
    return tally


def read_inputs(
    engine: Engine, inputs: Sequence[str | PathLike[str]], kind: object, columns: Mapping[str, str] | None
) -> Files:
    """Return what is counted: lines, or the rows of Parquet files if columns are given."""
    if columns is not None:
        return read_parquet(engine.session, inputs, columns)
    return read_files(engine.session, inputs, kind)  # type: ignore[arg-type]


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
            tally = count_piece(piece, builder, self.options.header(), self.options.column, is_only=self.is_only)
            note.tallies.append((piece.source, piece.start, piece.added, piece.added_lines, tally))
        with folder() as place:
            counted = empty(Path(place, "counts"))
            builder.write_counts(counted, Progress())
            note.samples = samples(counted)
            for number, text in enumerate(chunks(counted)):
                yield Row(0, 0, task * _PLACES + number, text)
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
        yield Row(part, 0, number, text)
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

    inputs: names as Spark takes them; see `unlost.holdings.spark.pieces`. columns: of Parquet files.
    Raises InputError for an input that cannot be read, ClusterError if the cluster gives up; nothing is written then.
    """
    wanted = options or MapOptions()
    if unknown := wanted.exclude - set(EXCLUDABLE):
        raise UsageError(f"{min(unknown)}: cannot be left out: expected {' or '.join(EXCLUDABLE)}")
    report = Report()
    fields = 2 if wanted.by_year else 1
    with whole_path(output) as aside:
        files = read_inputs(engine, inputs, wanted.kind, columns)
        counted = engine.read(files, CountPieces(wanted, len(files.names) == 1))
        add_tallies(counted.notes, files, report)
        check_order(counted.notes, files, strictly=False)
        compaction = wanted.compacts()
        first, second = _steps(compaction)
        level = _level(compaction) if second is None else "host"
        stage = _part_by_part(engine, counted, level, first, BuildPart(wanted, first.curves() if first else None), wanted.urir)
        totals = _core.add_totals(b"".join(note.summed.get(0, b"") for note in stage.notes), fields)
        counted.forget()
        if second is not None:
            stage = _part_by_part(engine, stage, "domain", second, CompactPart(fields, second.curves()))
        is_everything = compaction is not None and "*" in compaction.rollup
        _write(aside, header_lines(wanted.header()), totals, stage, is_everything=is_everything)
    return report


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
    engine: Engine, stage: Stage, level: Level, compaction: Compaction | None, work: "BuildPart | CompactPart", pages: bool = False
) -> Stage:
    rollups = compaction.rollup if compaction else ()
    whole = [key.removesuffix(",*").encode() for key in rollups if key.count(",") == 1]
    bounds = [] if "*" in rollups else stage.bounds(engine.parts, engine.at_once, level, whole)
    return engine.merge(stage, CutLines(bounds, pages), len(bounds) + 1, work)


def _write(path: Path, head: bytes, totals: bytes, stage: Stage, *, is_everything: bool = False) -> int:
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


@dataclass(frozen=True, slots=True)
class ReadMaps:
    """Reads pieces of sorted maps: partial results are their lines."""

    fields: int

    def __call__(self, pieces: Iterator[Piece], task: int) -> Iterator[Row]:
        """Yield lines, and a note with totals and what every part has to know."""
        note = Note()
        number = 0
        for piece in pieces:
            try:
                lines, stated, summed, tally = _core.read_map_lines(piece.path.read_bytes(), self.fields, MAX_LINE_BYTES)
            except InputError as error:
                raise InputError(f"{piece.name}: {error}") from error
            note.tallies.append((piece.source, piece.start, piece.added, piece.added_lines, tally))
            note.stated[piece.source] = note.stated.get(piece.source, b"") + stated
            note.summed[piece.source] = note.summed.get(piece.source, b"") + summed
            if not lines:
                continue
            note.edges.append(Edges(piece.source, piece.start, self._key(lines), self._key(lines[lines.rfind(b"\n", 0, -1) + 1 :])))
            note.samples += self._samples(lines)
            note.apart[piece.source] = note.apart.get(piece.source, b"") + _wide(lines)
            # Pieces of one map follow each other by where they begin, whichever task reads them.
            for text in _chunked(lines):
                yield Row(0, piece.source, piece.start * 2**20 + number, text)
                number += 1
        yield note.row()

    def _key(self, line: bytes) -> bytes:
        return b" ".join(line.split(b"\n", 1)[0].split(b" ")[: self.fields])

    @staticmethod
    def _samples(lines: bytes) -> list[tuple[bytes, int]]:
        with folder() as place:
            path = Path(place, "lines")
            path.write_bytes(lines)
            return samples(path)


def _chunked(lines: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(lines):
        end = lines.find(b"\n", start + (1 << 20)) + 1 or len(lines)
        yield lines[start:end]
        start = end


def _wide(lines: bytes) -> bytes:
    """Return the lines of whole top-level domains, `com,*`: they stand for pages of every part."""
    found = []
    place = lines.find(b",* ")
    while place >= 0:
        start = lines.rfind(b"\n", 0, place) + 1
        end = lines.find(b"\n", place) + 1 or len(lines)
        label = lines[start:place]
        if label and not {*b",) "} & {*label}:
            found.append(lines[start:end])
        place = lines.find(b",* ", end)
    return b"".join(found)


def _headers(engine: Engine, files: Files) -> list[Header]:
    """Return the headers of maps. Raises InputError as `read_map_header` does."""
    headers = []
    for number, name in enumerate(files.names):
        with folder() as place:
            path = Path(place, "map")
            head = read_head(engine.session, name)
            path.write_bytes(head[: head.rfind(b"\n") + 1] or head)
            try:
                headers.append(read_map_header(path))
            except InputError as error:
                raise InputError(f"{files.shown(number)}: {str(error).removeprefix(f'{path}: ')}") from error
    return headers


def compact_map(
    engine: Engine, source: str | PathLike[str], output: str | PathLike[str], compaction: Compaction | None = None
) -> CompactReport:
    """Write a map with fewer lines, as `unlost.holdings.compact_map` does, byte for byte.

    source: one map, or the parts of one in a folder, in the order of their names.
    """
    how = compaction or Compaction()
    with whole_path(output) as aside:
        files = read_files(engine.session, [source], "map")
        header = _headers(engine, files)[0]
        fields = len(header.keys)
        read = engine.read(files, ReadMaps(fields))
        report = Report()
        add_tallies(read.notes, files, report)
        check_order(read.notes, files, strictly=True)
        stated = b"".join(text for note in read.notes for text in note.stated.values())
        head = header_lines(compacted_header(header, how))
        if "*" in how.rollup:
            raise UsageError("--rollup '*' leaves one line: that is no work for a cluster")
        first, second = _steps(how)
        stage = read
        if first is not None:
            level = _level(how) if second is None else "host"
            stage = _part_by_part(engine, stage, level, first, CompactPart(fields, first.curves()))
        if second is not None:
            stage = _part_by_part(engine, stage, "domain", second, CompactPart(fields, second.curves()))
        lines_out = _write(aside, head, stated, stage)
    lines_in = report.counted - stated.count(b"\n")
    return CompactReport(report.lines, report.counted, report.foreign, report.filtered, report.problems, None, lines_in, lines_out)


@dataclass(frozen=True, slots=True)
class MergePart:
    """Merges what maps have of one part. Wide lines are those of whole top-level domains, which parts ask for."""

    bounds: Sequence[bytes]
    rolled_up: Sequence[bool]
    wide: Mapping[int, bytes]
    stated: Mapping[int, bytes]
    fields: int

    def __call__(self, part: int, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield merged lines, and a note with how many exclusions were dropped."""
        least = self.bounds[part - 1] if part else b""
        with folder() as place:
            paths = [empty(Path(place, f"map{number}")) for number in range(len(self.rolled_up))]
            known = {source: self._known(source, least) for source in range(len(paths))}
            asked = {self._key(line) for lines in known.values() for line in lines.splitlines(keepends=True)}
            for source, some in groupby(rows, lambda row: row.source):
                texts = chain([known.pop(source)], (row.data for row in some))
                self._write(paths[source], source, texts)
            for source, lines in known.items():
                self._write(paths[source], source, [lines])
            opened = [(str(path), rolled) for path, rolled in zip(paths, self.rolled_up, strict=True)]
            merged = empty(Path(place, "part"))
            _, dropped, _ = _core.merge_maps(opened, self.fields, MAX_LINE_BYTES, merged, b"", Progress())
            count = left = 0
            for number, text in enumerate(without_totals(merged)[1]):
                own = text
                # What was only there to be asked is before all that is of this part.
                while own and own < least:
                    own = own.partition(b"\n")[2]
                    left += 1
                count += own.count(b"\n")
                yield Row(part, 0, number, own)
        yield Note(counts={"lines": count, "dropped": dropped - (len(asked) - left)}).row()

    def _known(self, source: int, least: bytes) -> bytes:
        """Return the wide lines of a map that are of parts before this one."""
        return b"".join(line for line in self.wide.get(source, b"").splitlines(keepends=True) if line < least)

    def _write(self, path: Path, source: int, texts: Iterable[bytes]) -> None:
        # The total is an answer only where everything was rolled up into it.
        totals = self.stated.get(source, b"") if self.rolled_up[source] else b""
        with path.open("wb") as file:
            file.writelines(with_totals(totals, texts))

    def _key(self, line: bytes) -> bytes:
        return b" ".join(line.split(b" ")[: self.fields])


def merge_maps(engine: Engine, sources: Sequence[str | PathLike[str]], output: str | PathLike[str]) -> MergeReport:
    """Write one map that covers what any of the maps covers, as `unlost.holdings.merge_maps` does, byte for byte."""
    if not sources:
        raise UsageError("nothing to merge: expected at least one map")
    report = MergeReport()
    with whole_path(output) as aside:
        files = read_files(engine.session, sources, "map", in_order=True)
        headers = _headers(engine, files)
        header = merged_header([files.shown(number) for number in range(len(files.names))], headers)
        fields = len(header.keys)
        read = engine.read(files, ReadMaps(fields))
        add_tallies(read.notes, files, report)
        check_order(read.notes, files, strictly=True)
        stated, summed, wide = ({} for _ in range(3))
        for note in read.notes:
            for whole, some in ((stated, note.stated), (summed, note.summed), (wide, note.apart)):
                for source, text in some.items():
                    whole[source] = whole.get(source, b"") + text
        rolled_up = [is_rolled_up(each) for each in headers]
        bounds = read.bounds(engine.parts, engine.at_once, "domain")
        wide = {source: b"".join(sorted(text.splitlines(keepends=True))) for source, text in wide.items()}
        work = MergePart(bounds, rolled_up, wide, stated, fields)
        stage = engine.merge(read, CutLines(bounds), len(bounds) + 1, work)
        totals = _merged_totals([stated.get(n) or summed.get(n, b"") for n in range(len(headers))], rolled_up, fields)
        report.merged = _write(aside, header_lines(header), totals, stage)
        report.dropped = sum(note.counts.get("dropped", 0) for note in stage.notes)
        read.forget()
    return report


def _merged_totals(totals: Sequence[bytes], rolled_up: Sequence[bool], fields: int) -> bytes:
    """Return the total of maps, as merging them would: of maps that have nothing else."""
    with folder() as place:
        opened = []
        for number, (text, rolled) in enumerate(zip(totals, rolled_up, strict=True)):
            path = Path(place, f"map{number}")
            path.write_bytes(_core.add_totals(text, fields))
            opened.append((str(path), rolled))
        merged = empty(Path(place, "merged"))
        _core.merge_maps(opened, fields, MAX_LINE_BYTES, merged, b"", Progress())
        return merged.read_bytes()
