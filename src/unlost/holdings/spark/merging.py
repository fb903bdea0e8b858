"""Maps merged on a cluster."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from os import PathLike
from pathlib import Path

from unlost import _core
from unlost._core import Progress
from unlost.errors import UsageError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.ukvs import format_header
from unlost.holdings._map_header import is_fully_rolled_up
from unlost.holdings.map_file import atomic_map_file, with_row_bytes
from unlost.holdings.merging import MapMergeReport, merge_headers
from unlost.holdings.spark.engine import LineCutter, SparkEngine, add_line_stats, check_split_order
from unlost.holdings.spark.files import create_empty_file, task_directory, insert_totals, split_totals
from unlost.holdings.spark.map_reading import ReadMapSplits, read_map_headers
from unlost.holdings.spark.maps import write_parts
from unlost.holdings.spark.pieces import read_files
from unlost.holdings.spark.rows import TaskReport, PartialRow


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
    """Write one map that covers what any of the maps covers, as `unlost.holdings.merge_maps` does, byte for byte."""
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
