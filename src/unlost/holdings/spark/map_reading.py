"""Maps as Spark reads them: in pieces, each sorted, with what all parts have to know."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unlost import _core
from unlost.errors import InputError
from unlost.formats.lines import MAX_LINE_BYTES
from unlost.formats.ukvs import Header
from unlost.holdings._map_header import read_map_header
from unlost.holdings.spark.engine import Engine
from unlost.holdings.spark.files import folder, samples
from unlost.holdings.spark.pieces import Files, Piece, read_head
from unlost.holdings.spark.rows import CHUNK, Edges, Note, Row


@dataclass(frozen=True, slots=True)
class ReadMaps:
    """Reads pieces of sorted maps: partial results are their lines."""

    fields: int

    def __call__(self, pieces: Iterator[Piece], task: int) -> Iterator[Row]:  # noqa: ARG002  lines know their place
        """Yield lines, and a note with totals and what every part has to know."""
        note = Note()
        number = 0
        for piece in pieces:
            try:
                lines, stated, summed, tally = _core.read_map_lines(
                    piece.path.read_bytes(), self.fields, MAX_LINE_BYTES
                )
            except InputError as error:
                raise InputError(f"{piece.name}: {error}") from error
            note.tallies.append((piece.source, piece.start, piece.added, piece.added_lines, tally))
            note.stated[piece.source] = note.stated.get(piece.source, b"") + stated
            note.summed[piece.source] = note.summed.get(piece.source, b"") + summed
            if not lines:
                continue
            note.edges.append(
                Edges(piece.source, piece.start, self._key(lines), self._key(lines[lines.rfind(b"\n", 0, -1) + 1 :]))
            )
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
        end = lines.find(b"\n", start + CHUNK) + 1 or len(lines)
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


def read_headers(engine: Engine, files: Files) -> list[Header]:
    """Return the headers of maps. Raises InputError as `read_map_header` does."""
    headers = []
    for number, name in enumerate(files.names):
        with folder() as place:
            path = Path(place, "map")
            head = read_head(engine.session, name)
            path.write_bytes(head[: head.rfind(b"\n") + 1] or head)
            try:
                headers.append(read_map_header(path, is_whole=False))
            except InputError as error:
                raise InputError(f"{files.shown(number)}: {str(error).removeprefix(f'{path}: ')}") from error
    return headers
