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
from unlost.formats.ukvs import header_lines
from unlost.holdings._map_header import is_rolled_up
from unlost.holdings.map_file import map_file, with_row_bytes
from unlost.holdings.merging import MergeReport, merged_header
from unlost.holdings.spark.engine import CutLines, Engine, add_tallies, check_order
from unlost.holdings.spark.files import empty, folder, with_totals, without_totals
from unlost.holdings.spark.map_reading import ReadMaps, read_headers
from unlost.holdings.spark.maps import write_parts
from unlost.holdings.spark.pieces import read_files
from unlost.holdings.spark.rows import Note, Row


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
    with map_file(output) as aside:
        files = read_files(engine.session, sources, "map", in_order=True)
        headers = read_headers(engine, files)
        header = merged_header([files.shown(number) for number in range(len(files.names))], headers)
        fields = len(header.keys)
        read = engine.read(files, ReadMaps(fields))
        add_tallies(read.notes, files, report)
        check_order(read.notes, files, strictly=True)
        stated: dict[int, bytes] = {}
        summed: dict[int, bytes] = {}
        wide: dict[int, bytes] = {}
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
        report.merged = write_parts(aside, header_lines(with_row_bytes(header)), totals, stage)
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
