"""MementoMaps on a Spark cluster: build, compact, merge."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from unlost import _core
from unlost._core import Progress
from unlost.errors import InputError, UsageError
from unlost.index.ukvs import UkvsHeader, format_header
from unlost.mementomap.builder import EXCLUDABLE_PAGES, MapOptions, create_map_builder
from unlost.mementomap.compact import NO_LIMIT, Compaction, compacted_header
from unlost.mementomap.map_file import (
    add_provenance,
    atomic_map_file,
    capture_range,
    input_digests,
    is_fully_rolled_up,
    oldest_update_date,
    read_map_header,
    with_row_bytes,
)
from unlost.mementomap.merge import MapMergeReport, merge_headers
from unlost.mementomap.readers import InputReport
from unlost.research.spark.engine import (
    CutLevel,
    LineCutter,
    SparkEngine,
    SparkStage,
    add_line_stats,
    check_split_order,
    collect_map_headers,
    count_split,
    merge_capture_dates,
    read_inputs,
    refuse_partial,
)
from unlost.research.spark.rows import (
    CHUNK_BYTES,
    PLACES_PER_TASK,
    PartialRow,
    SplitEdges,
    TaskReport,
    create_empty_file,
    insert_totals,
    read_line_chunks,
    sample_keys,
    split_totals,
    task_directory,
)
from unlost.research.spark.splits import SparkFiles, Split, read_files, read_head
from unlost.text_lines import MAX_LINE_BYTES

if TYPE_CHECKING:
    from unlost._core import CompactionCurves


@dataclass(frozen=True, slots=True)
class ReadMapSplits:
    """Reads pieces of sorted maps: partial results are their lines."""

    fields: int

    def __call__(self, pieces: Iterator[Split], task: int) -> Iterator[PartialRow]:  # noqa: ARG002  lines know their place
        """Yield lines, and a note with totals and what every part has to know."""
        note = TaskReport()
        number = 0
        for piece in pieces:
            try:
                lines, stated, summed, tally = _core.read_map_lines(
                    piece.path.read_bytes(), self.fields, MAX_LINE_BYTES
                )
            except InputError as error:
                raise InputError(f"{piece.name}: {error}") from error
            note.tallies.append((piece.source, piece.start, piece.prefix_bytes, piece.prefix_lines, tally))
            note.stated[piece.source] = note.stated.get(piece.source, b"") + stated
            note.summed[piece.source] = note.summed.get(piece.source, b"") + summed
            if not lines:
                continue
            note.edges.append(
                SplitEdges(
                    piece.source, piece.start, self._key(lines), self._key(lines[lines.rfind(b"\n", 0, -1) + 1 :])
                )
            )
            note.samples += self._samples(lines)
            note.shared_lines[piece.source] = note.shared_lines.get(piece.source, b"") + _tld_wildcards(lines)
            # Pieces of one map follow each other by where they begin, whichever task reads them.
            for text in _chunk_lines(lines):
                yield PartialRow(0, piece.source, piece.start * 2**20 + number, text)
                number += 1
        yield note.to_row()

    def _key(self, line: bytes) -> bytes:
        return b" ".join(line.split(b"\n", 1)[0].split(b" ")[: self.fields])

    @staticmethod
    def _samples(lines: bytes) -> list[tuple[bytes, int]]:
        with task_directory() as place:
            path = Path(place, "lines")
            path.write_bytes(lines)
            return sample_keys(path)


def _chunk_lines(lines: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(lines):
        end = lines.find(b"\n", start + CHUNK_BYTES) + 1 or len(lines)
        yield lines[start:end]
        start = end


def _tld_wildcards(lines: bytes) -> bytes:
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


def read_map_headers(engine: SparkEngine, files: SparkFiles) -> list[UkvsHeader]:
    """Return the headers of maps. Raises InputError as `read_map_header` does."""
    headers = []
    for number, name in enumerate(files.names):
        with task_directory() as place:
            path = Path(place, "map")
            head = read_head(engine.session, name)
            path.write_bytes(head[: head.rfind(b"\n") + 1] or head)
            try:
                headers.append(read_map_header(path, is_whole=False))
            except InputError as error:
                raise InputError(f"{files.display_name(number)}: {str(error).removeprefix(f'{path}: ')}") from error
    return headers


@dataclass(slots=True)
class SparkCompactReport(InputReport):
    """What compacting on a cluster came to: lines read and written, without totals."""

    lines_in: int = 0
    lines_out: int = 0


@dataclass(frozen=True, slots=True)
class CountSplits:
    """Counts pieces under their keys: partial results are counted keys in order."""

    options: MapOptions
    is_only: bool

    def __call__(self, pieces: Iterator[Split], task: int) -> Iterator[PartialRow]:
        """Yield counted keys, and a note."""
        note = TaskReport()
        builder = create_map_builder(replace(self.options, threads=1))
        for piece in pieces:
            if self.options.sorted and piece.kind == "index":
                note.edges.append(_split_edges(piece))
            header = self.options.header()
            tally = count_split(piece, builder, header, self.options, is_only=self.is_only, map_headers=note.maps)
            note.tallies.append((piece.source, piece.start, piece.prefix_bytes, piece.prefix_lines, tally))
        note.dates = builder.dates()
        with task_directory() as place:
            counted = create_empty_file(Path(place, "counts"))
            builder.write_counts(counted, Progress())
            note.samples = sample_keys(counted)
            for number, text in enumerate(read_line_chunks(counted)):
                yield PartialRow(0, 0, task * PLACES_PER_TASK + number, text)
        yield note.to_row()


def _split_edges(piece: Split) -> SplitEdges:
    """Return the first and the last key column of a piece."""
    with piece.path.open("rb") as file:
        file.seek(piece.prefix_bytes)
        first = b""
        for line in file:
            if line.strip() and line[:1] not in b"!@ ":
                first = line.split(b" ", 1)[0]
                break
        size = piece.path.stat().st_size
        file.seek(max(piece.prefix_bytes, size - MAX_LINE_BYTES if size > MAX_LINE_BYTES else 0, size - (1 << 16)))
        last = file.read().rstrip().rpartition(b"\n")[2].split(b" ", 1)[0]
    return SplitEdges(piece.source, piece.start, first, last or first)


@dataclass(frozen=True, slots=True)
class BuildMapPart:
    """Adds up what was counted of one part, and writes its lines."""

    options: MapOptions
    curves: "CompactionCurves | None"

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield the part's lines, and a note with its total."""
        builder = create_map_builder(replace(self.options, threads=1, sorted=False))
        fields = 2 if self.options.by_year else 1
        for row in rows:
            builder.add_counts(row.data, fields)
        with task_directory() as place:
            path = create_empty_file(Path(place, "part"))
            builder.write(path, b"", self.curves, Progress())
            yield from _part_rows(part, path)


def _part_rows(part: int, path: Path) -> Iterator[PartialRow]:
    """Yield the lines of a part that was written, and its total in a note."""
    totals, lines = split_totals(path)
    note = TaskReport(summed={0: totals}, samples=sample_keys(path))
    count = 0
    for number, text in enumerate(lines):
        count += text.count(b"\n")
        # Parts follow each other where they are cut again.
        yield PartialRow(part, 0, part * PLACES_PER_TASK + number, text)
    note.counts["lines"] = count
    yield note.to_row()


@dataclass(frozen=True, slots=True)
class CompactMapPart:
    """Compacts one part, whose lines come in order."""

    fields: int
    curves: "CompactionCurves"

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield the lines that are left, and a note."""
        with task_directory() as place:
            source, path = Path(place, "source"), create_empty_file(Path(place, "part"))
            with source.open("wb") as file:
                for row in rows:
                    file.write(row.data)
            _core.compact_map(source, self.fields, MAX_LINE_BYTES, path, b"", self.curves, None, Progress())
            yield from _part_rows(part, path)


def build_map(
    engine: SparkEngine,
    inputs: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    options: MapOptions | None = None,
    columns: Mapping[str, str] | None = None,
) -> InputReport:
    """Write the map of what the inputs hold, as `unlost.mementomap.build_map` does, byte for byte.

    Only the header's `inputs` are left out unless all inputs are files of this machine: others are not read here.
    inputs: names as Spark takes them; see `unlost.research.spark.splits`. columns: of Parquet files.
    Raises InputError for an input that cannot be read, ClusterError if the cluster gives up; nothing is written then.
    """
    wanted = options or MapOptions()
    refuse_partial(wanted)
    if unknown := wanted.exclude - set(EXCLUDABLE_PAGES):
        raise UsageError(f"{min(unknown)}: cannot be left out: expected {' or '.join(EXCLUDABLE_PAGES)}")
    report = InputReport()
    fields = 2 if wanted.by_year else 1
    with atomic_map_file(output) as aside:
        files = read_inputs(engine, inputs, wanted.kind, columns)
        counted = engine.read(files, CountSplits(wanted, len(files.names) == 1))
        add_line_stats(counted.reports, files, report)
        report.refuse_damage(allow_partial=False)
        report.refuse_empty(inputs)
        report.refuse_bad(wanted.max_bad)
        check_split_order(counted.reports, files, strictly=False)
        compaction = wanted.effective_compaction()
        first, second = _compaction_steps(compaction)
        level = _compaction_cut_level(compaction) if second is None else "host"
        stage = _merge_parts(
            engine, counted, level, first, BuildMapPart(wanted, first.to_core() if first else None), wanted.urir
        )
        totals = _core.add_totals(b"".join(note.summed.get(0, b"") for note in stage.reports), fields)
        counted.release()
        if second is not None:
            stage = _merge_parts(engine, stage, "domain", second, CompactMapPart(fields, second.to_core()))
        is_everything = compaction is not None and "*" in compaction.rollup
        head = format_header(with_row_bytes(_built_header(wanted, counted.reports, files)))
        write_parts(aside, head, totals, stage, is_everything=is_everything)
    return report


def _built_header(wanted: MapOptions, notes: Sequence[TaskReport], files: SparkFiles) -> UkvsHeader:
    """Return the header of a map that was built."""
    maps = collect_map_headers(notes)
    made = oldest_update_date(maps, wanted.built_at) if wanted.built_at else None
    is_local = all(name.startswith("file:") for name in files.names)
    digests = input_digests(map(files.display_name, range(len(files.names)))) if wanted.built_at and is_local else []
    return add_provenance(wanted.header(), made, capture_range(maps, merge_capture_dates(notes)), digests)


def _compaction_steps(compaction: Compaction | None) -> tuple[Compaction | None, Compaction | None]:
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
    return replace(compaction.with_weights(NO_LIMIT, compaction.path_weight), rollup=()), compaction


def _compaction_cut_level(compaction: Compaction | None) -> CutLevel:
    """Return what must not be cut where a map is compacted in one step."""
    if compaction is None:
        return "page"
    return "domain" if compaction.host_weight != NO_LIMIT or compaction.rollup else "host"


def _merge_parts(
    engine: SparkEngine,
    stage: SparkStage,
    level: CutLevel,
    compaction: Compaction | None,
    work: "BuildMapPart | CompactMapPart",
    pages: bool = False,
) -> SparkStage:
    rollups = compaction.rollup if compaction else ()
    whole = [key.removesuffix(",*").encode() for key in rollups if key.count(",") == 1]
    bounds = [] if "*" in rollups else stage.choose_bounds(engine.parts, engine.parallelism, level, whole)
    return engine.merge(stage, LineCutter(bounds, pages), len(bounds) + 1, work)


def write_parts(path: Path, head: bytes, totals: bytes, stage: SparkStage, *, is_everything: bool = False) -> int:
    """Write a map's header, total and parts, and return how many lines there are without the total.

    is_everything: all of it was rolled up, so that the parts, of which there is one, have the total.
    """
    with path.open("wb", buffering=1 << 20) as out:
        out.write(head)
        if is_everything:
            out.write(b"".join(note.summed.get(0, b"") for note in stage.reports))
            totals = b""
        for text in insert_totals(totals, (row.data for row in stage.rows())):
            out.write(text)
    stage.release()
    return sum(note.counts.get("lines", 0) for note in stage.reports)


def compact_map(
    engine: SparkEngine, source: str | PathLike[str], output: str | PathLike[str], compaction: Compaction | None = None
) -> SparkCompactReport:
    """Write a map with fewer lines, as `unlost.mementomap.compact_map` does, byte for byte.

    source: one map, or the parts of one in a folder, in the order of their names.
    """
    how = compaction or Compaction()
    with atomic_map_file(output) as aside:
        files = read_files(engine.session, [source], "map")
        header = read_map_headers(engine, files)[0]
        fields = len(header.keys)
        read = engine.read(files, ReadMapSplits(fields))
        report = InputReport()
        add_line_stats(read.reports, files, report)
        check_split_order(read.reports, files, strictly=True)
        stated = b"".join(text for note in read.reports for text in note.stated.values())
        head = format_header(with_row_bytes(compacted_header(header, how)))
        if "*" in how.rollup:
            raise UsageError("--rollup '*' leaves one line: that is no work for a cluster")
        first, second = _compaction_steps(how)
        stage = read
        if first is not None:
            level = _compaction_cut_level(how) if second is None else "host"
            stage = _merge_parts(engine, stage, level, first, CompactMapPart(fields, first.to_core()))
        if second is not None:
            stage = _merge_parts(engine, stage, "domain", second, CompactMapPart(fields, second.to_core()))
        lines_out = write_parts(aside, head, stated, stage)
    lines_in = report.counted - stated.count(b"\n")
    return SparkCompactReport(
        report.lines, report.counted, report.foreign, report.filtered, report.problems, None, lines_in, lines_out
    )


@dataclass(frozen=True, slots=True)
class MergeMapPart:
    """Merges what maps have of one part. Wide lines are those of whole top-level domains, which parts ask for."""

    bounds: Sequence[bytes]
    rolled_up: Sequence[bool]
    tld_wildcards: Mapping[int, bytes]
    stated: Mapping[int, bytes]
    fields: int

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield merged lines, and a note with how many exclusions were dropped."""
        least = self.bounds[part - 1] if part else b""
        with task_directory() as place:
            paths = [create_empty_file(Path(place, f"map{number}")) for number in range(len(self.rolled_up))]
            known = {source: self._preceding_wildcards(source, least) for source in range(len(paths))}
            asked = {self._key(line) for lines in known.values() for line in lines.splitlines(keepends=True)}
            for source, some in groupby(rows, lambda row: row.source):
                texts = chain([known.pop(source)], (row.data for row in some))
                self._write(paths[source], source, texts)
            for source, lines in known.items():
                self._write(paths[source], source, [lines])
            opened = [(str(path), rolled) for path, rolled in zip(paths, self.rolled_up, strict=True)]
            merged = create_empty_file(Path(place, "part"))
            _, dropped, _ = _core.merge_maps(opened, self.fields, MAX_LINE_BYTES, merged, b"", Progress())
            count = left = 0
            for number, text in enumerate(split_totals(merged)[1]):
                own = text
                # What was only there to be asked is before all that is of this part.
                while own and own < least:
                    own = own.partition(b"\n")[2]
                    left += 1
                count += own.count(b"\n")
                yield PartialRow(part, 0, number, own)
        yield TaskReport(counts={"lines": count, "dropped": dropped - (len(asked) - left)}).to_row()

    def _preceding_wildcards(self, source: int, least: bytes) -> bytes:
        """Return the wide lines of a map that are of parts before this one."""
        return b"".join(line for line in self.tld_wildcards.get(source, b"").splitlines(keepends=True) if line < least)

    def _write(self, path: Path, source: int, texts: Iterable[bytes]) -> None:
        # The total is an answer only where everything was rolled up into it.
        totals = self.stated.get(source, b"") if self.rolled_up[source] else b""
        with path.open("wb") as file:
            file.writelines(insert_totals(totals, texts))

    def _key(self, line: bytes) -> bytes:
        return b" ".join(line.split(b" ")[: self.fields])


def merge_maps(
    engine: SparkEngine, sources: Sequence[str | PathLike[str]], output: str | PathLike[str]
) -> MapMergeReport:
    """Write one map that covers what any of the maps covers, as `unlost.mementomap.merge_maps` does, byte for byte."""
    if not sources:
        raise UsageError("nothing to merge: expected at least one map")
    report = MapMergeReport()
    with atomic_map_file(output) as aside:
        files = read_files(engine.session, sources, "map", in_order=True)
        headers = read_map_headers(engine, files)
        header = merge_headers([files.display_name(number) for number in range(len(files.names))], headers)
        fields = len(header.keys)
        read = engine.read(files, ReadMapSplits(fields))
        add_line_stats(read.reports, files, report)
        check_split_order(read.reports, files, strictly=True)
        stated: dict[int, bytes] = {}
        summed: dict[int, bytes] = {}
        wide: dict[int, bytes] = {}
        for note in read.reports:
            for whole, some in ((stated, note.stated), (summed, note.summed), (wide, note.shared_lines)):
                for source, text in some.items():
                    whole[source] = whole.get(source, b"") + text
        rolled_up = [is_fully_rolled_up(each) for each in headers]
        bounds = read.choose_bounds(engine.parts, engine.parallelism, "domain")
        wide = {source: b"".join(sorted(text.splitlines(keepends=True))) for source, text in wide.items()}
        work = MergeMapPart(bounds, rolled_up, wide, stated, fields)
        stage = engine.merge(read, LineCutter(bounds), len(bounds) + 1, work)
        totals = _merge_totals([stated.get(n) or summed.get(n, b"") for n in range(len(headers))], rolled_up, fields)
        report.merged = write_parts(aside, format_header(with_row_bytes(header)), totals, stage)
        report.dropped = sum(note.counts.get("dropped", 0) for note in stage.reports)
        read.release()
    return report


def _merge_totals(totals: Sequence[bytes], rolled_up: Sequence[bool], fields: int) -> bytes:
    """Return the total of maps, as merging them would: of maps that have nothing else."""
    with task_directory() as place:
        opened = []
        for number, (text, rolled) in enumerate(zip(totals, rolled_up, strict=True)):
            path = Path(place, f"map{number}")
            path.write_bytes(_core.add_totals(text, fields))
            opened.append((str(path), rolled))
        merged = create_empty_file(Path(place, "merged"))
        _core.merge_maps(opened, fields, MAX_LINE_BYTES, merged, b"", Progress())
        return merged.read_bytes()
