"""Index and map files for tests, written from rows and model maps and read back with format checks."""

import gzip
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.mementomap.strategies import Row
from tests.models import mementomap as model
from tests.models.mementomap import Lines
from unlost.index import Frequency, UkvsHeader, UkvsReader, write_ukvs
from unlost.index import UkvsRow as MapRow
from unlost.problems import Problems


def _plain(parts: list[bytes]) -> bytes:
    return b"".join(parts)


def _gzip(parts: list[bytes]) -> bytes:
    return b"".join(gzip.compress(part, 1) for part in parts)


def _zstd(parts: list[bytes]) -> bytes:
    command = ["zstd", "-c", "-q"]
    return b"".join(subprocess.run(command, input=part, capture_output=True, check=True).stdout for part in parts)


COMPRESSIONS: dict[str, Callable[[list[bytes]], bytes]] = {"": _plain, ".gz": _gzip, ".zst": _zstd}
"""By file suffix. Each part becomes a separate gzip member or zstd frame, split inside a line."""

CDX_HEADER = b" CDX N b a m s k r M S V g\n"


def write_index(path: Path, rows: Sequence[Row], form: str = "cdxj") -> Path:
    """Write rows in their order as `cdxj`, `cdx` or `cdx with header`, compressed according to the file suffix."""
    header = CDX_HEADER if form == "cdx with header" else b""
    text = header + b"".join(row.cdxj() if form == "cdxj" else row.cdx() for row in rows)
    middle = len(text) // 2
    compress = COMPRESSIONS[path.suffix if path.suffix in COMPRESSIONS else ""]
    path.write_bytes(compress([text[:middle], text[middle:]]))
    return path


def write_map(path: Path, lines: Lines, *, rolled_up: bool = False) -> Path:
    """Write a map of the model."""
    width = max(1 + bool(extra) for _, extra in lines)
    rows = []
    for line in model.write(lines):
        *keys, frequency = line.split(" ")
        rows.append(MapRow(tuple(keys), (frequency,), Frequency.parse(frequency)))
    write_ukvs(path, UkvsHeader(keys=("surt", "datetime")[:width], meta={"rolled_up": True} if rolled_up else {}), rows)
    return path


def body(path: Path) -> list[str]:
    """Return the row lines of a map and check that they are sorted by bytes with unique keys."""
    problems = Problems()
    with path.open("rb") as file:
        reader = UkvsReader(file, problems, path.name)
        rows = list(reader)
    assert problems.counts == {}
    text = path.read_bytes()
    assert text.endswith(b"\n")
    lines = [line.decode() for line in text.splitlines() if not line.startswith(b"!")]
    assert len(lines) == len(rows)
    assert [line.split(" ")[: len(reader.header.keys)] for line in lines] == [list(row.keys) for row in rows]
    return lines


def read_map(path: Path) -> Lines:
    """Read a map file as a map of the model."""
    lines = body(path)
    return model.read(lines, width=len(lines[0].split(" ")) - 1) if lines else {}
