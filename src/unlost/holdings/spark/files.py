"""Temporary files of tasks: what the core reads and writes."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from unlost.holdings.spark.rows import CHUNK_BYTES

MAX_TASK_SAMPLES = 64
"""Keys that a task tells of what it counted."""


@contextmanager
def task_directory() -> Iterator[Path]:
    """Give a folder that goes with its contents, in TMPDIR of the machine that works."""
    path = Path(tempfile.mkdtemp(prefix="unlost-spark-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def create_empty_file(path: Path) -> Path:
    """Make an empty file and return it: the core writes into files that are there."""
    path.write_bytes(b"")
    return path


def read_line_chunks(path: Path, start: int = 0) -> Iterator[bytes]:
    """Yield a file's text from a place on, in whole lines."""
    with path.open("rb") as file:
        file.seek(start)
        while text := file.read(CHUNK_BYTES):
            if not text.endswith(b"\n"):
                text += file.readline()
            yield text


def sample_keys(path: Path, max_samples: int = MAX_TASK_SAMPLES) -> list[tuple[bytes, int]]:
    """Return keys at even distances in a file of lines, each with how many bytes it stands for."""
    size = path.stat().st_size
    count = min(max_samples, size // 1024 + 1)
    found: list[tuple[bytes, int]] = []
    with path.open("rb") as file:
        for number in range(count):
            file.seek(size * number // count)
            if number:
                file.readline()
            line = file.readline()
            if line:
                found.append((line.split(b" ", 1)[0], size // count))
    return found


def insert_totals(totals: bytes, texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield texts of lines in order, with the `*` lines where they sort."""
    for text in texts:
        rest = text
        while totals and rest:
            line, end, behind = rest.partition(b"\n")
            if line > b"*":
                yield totals
                totals = b""
                break
            yield line + end
            rest = behind
        yield rest
    yield totals


def split_totals(path: Path) -> tuple[bytes, Iterator[bytes]]:
    """Return the `*` lines of a map without header, and all its others in chunks.

    Nearly always they come first; keys that sort before `*` are few.
    """
    before, totals = [], []
    with path.open("rb") as file:
        place = 0
        for line in file:
            if line.startswith(b"* "):
                totals.append(line)
            elif line < b"*":
                before.append(line)
            else:
                break
            place += len(line)

    def others() -> Iterator[bytes]:
        if before:
            yield b"".join(before)
        yield from read_line_chunks(path, place)

    return b"".join(totals), others()
