"""Maps as Spark reads them: in pieces, each sorted, with what all parts have to know."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unlost import _core
from unlost.errors import InputError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.ukvs import UkvsHeader
from unlost.holdings._map_header import read_map_header
from unlost.holdings.spark.engine import SparkEngine
from unlost.holdings.spark.files import task_directory, sample_keys
from unlost.holdings.spark.pieces import SparkFiles, Split, read_head
from unlost.holdings.spark.rows import CHUNK_BYTES, SplitEdges, TaskReport, PartialRow


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
