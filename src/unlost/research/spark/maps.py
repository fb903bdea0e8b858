"""Builds, compacts and merges MementoMaps on a Spark cluster."""

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
    """Reads splits of sorted maps. Partial rows are their lines."""

    fields: int

    def __call__(self, splits: Iterator[Split], task: int) -> Iterator[PartialRow]:  # noqa: ARG002  places derive from offsets
        """Yield lines, and a report with totals and shared lines."""
        task_report = TaskReport()
        number = 0
        for split in splits:
            try:
                lines, stated, summed, tally = _core.read_map_lines(
                    split.path.read_bytes(), self.fields, MAX_LINE_BYTES
                )
            except InputError as error:
                raise InputError(f"{split.name}: {error}") from error
            task_report.tallies.append((split.source, split.start, split.prefix_bytes, split.prefix_lines, tally))
            task_report.stated[split.source] = task_report.stated.get(split.source, b"") + stated
            task_report.summed[split.source] = task_report.summed.get(split.source, b"") + summed
            if not lines:
                continue
            task_report.edges.append(
                SplitEdges(
                    split.source, split.start, self._key(lines), self._key(lines[lines.rfind(b"\n", 0, -1) + 1 :])
                )
            )
            task_report.samples += self._samples(lines)
            task_report.shared_lines[split.source] = task_report.shared_lines.get(split.source, b"") + _tld_wildcards(
                lines
            )
            # Splits of a map are ordered by offset, whichever task reads them.
            for text in _chunk_lines(lines):
                yield PartialRow(0, split.source, split.start * 2**20 + number, text)
                number += 1
        yield task_report.to_row()

    def _key(self, line: bytes) -> bytes:
        return b" ".join(line.split(b"\n", 1)[0].split(b" ")[: self.fields])

    @staticmethod
    def _samples(lines: bytes) -> list[tuple[bytes, int]]:
        with task_directory() as folder:
            path = Path(folder, "lines")
            path.write_bytes(lines)
            return sample_keys(path)


def _chunk_lines(lines: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(lines):
        end = lines.find(b"\n", start + CHUNK_BYTES) + 1 or len(lines)
        yield lines[start:end]
        start = end


def _tld_wildcards(lines: bytes) -> bytes:
    """Return the wildcards of whole top-level domains, such as `com,*`: they match keys in every part."""
    wildcards = []
    position = lines.find(b",* ")
    while position >= 0:
        start = lines.rfind(b"\n", 0, position) + 1
        end = lines.find(b"\n", position) + 1 or len(lines)
        label = lines[start:position]
        if label and not {*b",) "} & {*label}:
            wildcards.append(lines[start:end])
        position = lines.find(b",* ", end)
    return b"".join(wildcards)


def read_map_headers(engine: SparkEngine, files: SparkFiles) -> list[UkvsHeader]:
    """Return the headers of maps.

    Raises:
        InputError: As `read_map_header`.
    """
    headers = []
    for number, name in enumerate(files.names):
        with task_directory() as folder:
            path = Path(folder, "map")
            head = read_head(engine.session, name)
            path.write_bytes(head[: head.rfind(b"\n") + 1] or head)
            try:
                headers.append(read_map_header(path, is_whole=False))
            except InputError as error:
                raise InputError(f"{files.display_name(number)}: {str(error).removeprefix(f'{path}: ')}") from error
    return headers


@dataclass(slots=True)
class SparkCompactReport(InputReport):
    """Report on a compaction, with the number of lines read and written, totals excluded."""

    lines_in: int = 0
    lines_out: int = 0


@dataclass(frozen=True, slots=True)
class CountSplits:
    """Counts splits by key. Partial rows are sorted keys with counts."""

    options: MapOptions
    is_only: bool

    def __call__(self, splits: Iterator[Split], task: int) -> Iterator[PartialRow]:
        """Yield keys with counts, and a report."""
        task_report = TaskReport()
        builder = create_map_builder(replace(self.options, threads=1))
        for split in splits:
            if self.options.sorted and split.kind == "index":
                task_report.edges.append(_split_edges(split))
            header = self.options.header()
            tally = count_split(
                split, builder, header, self.options, is_only=self.is_only, map_headers=task_report.maps
            )
            task_report.tallies.append((split.source, split.start, split.prefix_bytes, split.prefix_lines, tally))
        task_report.dates = builder.dates()
        with task_directory() as folder:
            counted = create_empty_file(Path(folder, "counts"))
            builder.write_counts(counted, Progress())
            task_report.samples = sample_keys(counted)
            for number, text in enumerate(read_line_chunks(counted)):
                yield PartialRow(0, 0, task * PLACES_PER_TASK + number, text)
        yield task_report.to_row()


def _split_edges(split: Split) -> SplitEdges:
    """Return the first and the last key of a split."""
    with split.path.open("rb") as file:
        file.seek(split.prefix_bytes)
        first = b""
        for line in file:
            if line.strip() and line[:1] not in b"!@ ":
                first = line.split(b" ", 1)[0]
                break
        size = split.path.stat().st_size
        file.seek(max(split.prefix_bytes, size - MAX_LINE_BYTES if size > MAX_LINE_BYTES else 0, size - (1 << 16)))
        last = file.read().rstrip().rpartition(b"\n")[2].split(b" ", 1)[0]
    return SplitEdges(split.source, split.start, first, last or first)


@dataclass(frozen=True, slots=True)
class BuildMapPart:
    """Sums the counts of a part and writes its lines."""

    options: MapOptions
    curves: "CompactionCurves | None"

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield the lines of the part, and a report with its total."""
        builder = create_map_builder(replace(self.options, threads=1, sorted=False))
        fields = 2 if self.options.by_year else 1
        for row in rows:
            builder.add_counts(row.data, fields)
        with task_directory() as folder:
            path = create_empty_file(Path(folder, "part"))
            builder.write(path, b"", self.curves, Progress())
            yield from _part_rows(part, path)


def _part_rows(part: int, path: Path) -> Iterator[PartialRow]:
    """Yield the lines of a finished part, and a report with its total."""
    totals, lines = split_totals(path)
    task_report = TaskReport(summed={0: totals}, samples=sample_keys(path))
    count = 0
    for number, text in enumerate(lines):
        count += text.count(b"\n")
        # The places preserve the order of parts for a later stage.
        yield PartialRow(part, 0, part * PLACES_PER_TASK + number, text)
    task_report.counts["lines"] = count
    yield task_report.to_row()


@dataclass(frozen=True, slots=True)
class CompactMapPart:
    """Compacts a part, whose lines arrive sorted."""

    fields: int
    curves: "CompactionCurves"

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield the remaining lines, and a report."""
        with task_directory() as folder:
            source, path = Path(folder, "source"), create_empty_file(Path(folder, "part"))
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
    """Write a map on the cluster, byte for byte as `unlost.mementomap.build_map` does.

    The header field `inputs` is omitted unless all inputs are local files, because others are not read on this machine.

    Args:
        engine: The engine.
        inputs: Input files, as in `unlost.research.spark.splits`.
        output: File to write.
        options: Options of the map.
        columns: Columns of Parquet files.

    Raises:
        InputError: An input cannot be read. Nothing is written.
        ClusterError: The job failed. Nothing is written.
    """
    options = options or MapOptions()
    refuse_partial(options)
    if unknown := options.exclude - set(EXCLUDABLE_PAGES):
        raise UsageError(f"{min(unknown)}: cannot be left out: expected {' or '.join(EXCLUDABLE_PAGES)}")
    report = InputReport()
    fields = 2 if options.by_year else 1
    with atomic_map_file(output) as temporary:
        files = read_inputs(engine, inputs, options.kind, columns)
        counted = engine.read(files, CountSplits(options, len(files.names) == 1))
        add_line_stats(counted.reports, files, report)
        report.refuse_damage(allow_partial=False)
        report.refuse_empty(inputs)
        report.refuse_bad(options.max_bad)
        check_split_order(counted.reports, files, strictly=False)
        compaction = options.effective_compaction()
        first, second = _compaction_steps(compaction)
        level = _compaction_cut_level(compaction) if second is None else "host"
        stage = _merge_parts(
            engine, counted, level, first, BuildMapPart(options, first.to_core() if first else None), options.urir
        )
        totals = _core.add_totals(b"".join(task_report.summed.get(0, b"") for task_report in stage.reports), fields)
        counted.release()
        if second is not None:
            stage = _merge_parts(engine, stage, "domain", second, CompactMapPart(fields, second.to_core()))
        is_everything = compaction is not None and "*" in compaction.rollup
        header = format_header(with_row_bytes(_built_header(options, counted.reports, files)))
        write_parts(temporary, header, totals, stage, is_everything=is_everything)
    return report


def _built_header(options: MapOptions, task_reports: Sequence[TaskReport], files: SparkFiles) -> UkvsHeader:
    maps = collect_map_headers(task_reports)
    updated_at = oldest_update_date(maps, options.built_at) if options.built_at else None
    is_local = all(name.startswith("file:") for name in files.names)
    digests = input_digests(map(files.display_name, range(len(files.names)))) if options.built_at and is_local else []
    return add_provenance(options.header(), updated_at, capture_range(maps, merge_capture_dates(task_reports)), digests)


def _compaction_steps(compaction: Compaction | None) -> tuple[Compaction | None, Compaction | None]:
    """Return the first and the second compaction step; None for a step that is not needed.

    Paths are compacted first, in parts divided by host, because a whole domain may be too large for one task; hosts are
    compacted second, in parts divided by domain. Compacting twice gives the same result as compacting once.
    """
    if compaction is None or "*" in compaction.rollup:
        return compaction, None
    rolls_hosts = compaction.host_weight != NO_LIMIT or compaction.rollup
    rolls_paths = compaction.path_weight != NO_LIMIT
    if not (rolls_hosts and rolls_paths):
        return compaction, None
    return replace(compaction.with_weights(NO_LIMIT, compaction.path_weight), rollup=()), compaction


def _compaction_cut_level(compaction: Compaction | None) -> CutLevel:
    """Return the unit that must not be divided for a compaction in one step."""
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
    undivided_tlds = [key.removesuffix(",*").encode() for key in rollups if key.count(",") == 1]
    bounds = [] if "*" in rollups else stage.choose_bounds(engine.parts, engine.parallelism, level, undivided_tlds)
    return engine.merge(stage, LineCutter(bounds, pages), len(bounds) + 1, work)


def write_parts(path: Path, head: bytes, totals: bytes, stage: SparkStage, *, is_everything: bool = False) -> int:
    """Write header, total and parts of a map; return the number of lines without the total.

    Args:
        path: File to write.
        head: Header.
        totals: Total lines.
        stage: The parts.
        is_everything: Whether all keys were rolled up; the single part then contains the total.
    """
    with path.open("wb", buffering=1 << 20) as file:
        file.write(head)
        if is_everything:
            file.write(b"".join(task_report.summed.get(0, b"") for task_report in stage.reports))
            totals = b""
        for lines in insert_totals(totals, (row.data for row in stage.rows())):
            file.write(lines)
    stage.release()
    return sum(task_report.counts.get("lines", 0) for task_report in stage.reports)


def compact_map(
    engine: SparkEngine, source: str | PathLike[str], output: str | PathLike[str], compaction: Compaction | None = None
) -> SparkCompactReport:
    """Write a compacted map on the cluster, byte for byte as `unlost.mementomap.compact_map` does.

    Args:
        engine: The engine.
        source: A map, or a folder with the parts of one, in the order of their names.
        output: File to write.
        compaction: Weights and rollups.
    """
    compaction = compaction or Compaction()
    with atomic_map_file(output) as temporary:
        files = read_files(engine.session, [source], "map")
        header = read_map_headers(engine, files)[0]
        fields = len(header.keys)
        read_stage = engine.read(files, ReadMapSplits(fields))
        report = InputReport()
        add_line_stats(read_stage.reports, files, report)
        check_split_order(read_stage.reports, files, strictly=True)
        stated = b"".join(text for task_report in read_stage.reports for text in task_report.stated.values())
        header_text = format_header(with_row_bytes(compacted_header(header, compaction)))
        if "*" in compaction.rollup:
            raise UsageError("--rollup '*' leaves one line: that is no work for a cluster")
        first, second = _compaction_steps(compaction)
        stage = read_stage
        if first is not None:
            level = _compaction_cut_level(compaction) if second is None else "host"
            stage = _merge_parts(engine, stage, level, first, CompactMapPart(fields, first.to_core()))
        if second is not None:
            stage = _merge_parts(engine, stage, "domain", second, CompactMapPart(fields, second.to_core()))
        lines_out = write_parts(temporary, header_text, stated, stage)
    lines_in = report.counted - stated.count(b"\n")
    return SparkCompactReport(
        report.lines, report.counted, report.foreign, report.filtered, report.problems, None, lines_in, lines_out
    )


@dataclass(frozen=True, slots=True)
class MergeMapPart:
    """Merges a part of several maps. Look-ups in a part also need the wildcards of top-level domains before it."""

    bounds: Sequence[bytes]
    rolled_up: Sequence[bool]
    tld_wildcards: Mapping[int, bytes]
    stated: Mapping[int, bytes]
    fields: int

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield merged lines, and a report with the number of dropped exclusions."""
        start = self.bounds[part - 1] if part else b""
        with task_directory() as folder:
            paths = [create_empty_file(Path(folder, f"map{number}")) for number in range(len(self.rolled_up))]
            wildcards = {source: self._preceding_wildcards(source, start) for source in range(len(paths))}
            wildcard_keys = {
                self._key(line)
                for wildcard_lines in wildcards.values()
                for line in wildcard_lines.splitlines(keepends=True)
            }
            for source, group in groupby(rows, lambda row: row.source):
                chunks = chain([wildcards.pop(source)], (row.data for row in group))
                self._write(paths[source], source, chunks)
            for source, wildcard_lines in wildcards.items():
                self._write(paths[source], source, [wildcard_lines])
            inputs = [(str(path), rolled) for path, rolled in zip(paths, self.rolled_up, strict=True)]
            merged = create_empty_file(Path(folder, "part"))
            _, dropped, _ = _core.merge_maps(inputs, self.fields, MAX_LINE_BYTES, merged, b"", Progress())
            count = removed = 0
            for number, chunk in enumerate(split_totals(merged)[1]):
                lines = chunk
                # Remove wildcards of preceding parts, which were added for look-ups only.
                while lines and lines < start:
                    lines = lines.partition(b"\n")[2]
                    removed += 1
                count += lines.count(b"\n")
                yield PartialRow(part, 0, number, lines)
        yield TaskReport(counts={"lines": count, "dropped": dropped - (len(wildcard_keys) - removed)}).to_row()

    def _preceding_wildcards(self, source: int, start: bytes) -> bytes:
        """Return the top-level wildcards of a map that belong to preceding parts."""
        return b"".join(line for line in self.tld_wildcards.get(source, b"").splitlines(keepends=True) if line < start)

    def _write(self, path: Path, source: int, texts: Iterable[bytes]) -> None:
        # The total matches keys only if everything was rolled up into it.
        totals = self.stated.get(source, b"") if self.rolled_up[source] else b""
        with path.open("wb") as file:
            file.writelines(insert_totals(totals, texts))

    def _key(self, line: bytes) -> bytes:
        return b" ".join(line.split(b" ")[: self.fields])


def merge_maps(
    engine: SparkEngine, sources: Sequence[str | PathLike[str]], output: str | PathLike[str]
) -> MapMergeReport:
    """Write the union of maps on the cluster, byte for byte as `unlost.mementomap.merge_maps` does."""
    if not sources:
        raise UsageError("nothing to merge: expected at least one map")
    report = MapMergeReport()
    with atomic_map_file(output) as temporary:
        files = read_files(engine.session, sources, "map", in_order=True)
        headers = read_map_headers(engine, files)
        header = merge_headers([files.display_name(number) for number in range(len(files.names))], headers)
        fields = len(header.keys)
        read_stage = engine.read(files, ReadMapSplits(fields))
        add_line_stats(read_stage.reports, files, report)
        check_split_order(read_stage.reports, files, strictly=True)
        stated: dict[int, bytes] = {}
        summed: dict[int, bytes] = {}
        tld_wildcards: dict[int, bytes] = {}
        for task_report in read_stage.reports:
            for target, source_lines in (
                (stated, task_report.stated),
                (summed, task_report.summed),
                (tld_wildcards, task_report.shared_lines),
            ):
                for source, text in source_lines.items():
                    target[source] = target.get(source, b"") + text
        rolled_up = [is_fully_rolled_up(each) for each in headers]
        bounds = read_stage.choose_bounds(engine.parts, engine.parallelism, "domain")
        tld_wildcards = {
            source: b"".join(sorted(text.splitlines(keepends=True))) for source, text in tld_wildcards.items()
        }
        work = MergeMapPart(bounds, rolled_up, tld_wildcards, stated, fields)
        stage = engine.merge(read_stage, LineCutter(bounds), len(bounds) + 1, work)
        totals = _merge_totals([stated.get(n) or summed.get(n, b"") for n in range(len(headers))], rolled_up, fields)
        report.merged = write_parts(temporary, format_header(with_row_bytes(header)), totals, stage)
        report.dropped = sum(task_report.counts.get("dropped", 0) for task_report in stage.reports)
        read_stage.release()
    return report


def _merge_totals(totals: Sequence[bytes], rolled_up: Sequence[bool], fields: int) -> bytes:
    """Return the total of the merged map, by merging maps that contain only their totals."""
    with task_directory() as folder:
        inputs = []
        for number, (text, rolled) in enumerate(zip(totals, rolled_up, strict=True)):
            path = Path(folder, f"map{number}")
            path.write_bytes(_core.add_totals(text, fields))
            inputs.append((str(path), rolled))
        merged = create_empty_file(Path(folder, "merged"))
        _core.merge_maps(inputs, fields, MAX_LINE_BYTES, merged, b"", Progress())
        return merged.read_bytes()
