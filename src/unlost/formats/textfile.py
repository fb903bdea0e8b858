"""The lines of a file, plain, gzip or zstd, with what is wrong with the file itself counted."""

from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path

from unlost import _core
from unlost.errors import InputError
from unlost.formats.lines import MAX_LINE_BYTES, Line
from unlost.formats.problems import Problem, Problems

_BATCH = 4096

_DAMAGE = {
    "truncated": "the compressed file ends in the middle: what came before was read",
    "corrupt": "the compressed data is damaged here: what came before was read",
    "trailing-garbage": "bytes behind the end of the compressed data were left out",
}


def is_compressed(path: str | PathLike[str]) -> bool:
    """Return whether a file is gzip or zstd, by its first bytes. Raises InputError if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return _core.is_compressed(file.read(4))
    except OSError as error:
        raise InputError(f"{fspath(path)}: cannot be read: {error.strerror or error}") from error


def read_lines(path: str | PathLike[str], problems: Problems, limit: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """Yield the lines of a file, however it is compressed; offsets are of the decompressed text.

    Memory is bounded by `limit`, not by the file. `unlost.formats.lines` does the same for what is already open.

    Problems: `too-long` lines, and `truncated`, `corrupt` or `trailing-garbage` compression, before which everything is
    yielded. Raises InputError if the file cannot be read at all.
    """
    name = fspath(path)
    end = Line(0, 0, b"")
    try:
        reader = _core.LineReader(path, limit)
        while batch := reader.batch(_BATCH):
            for number, offset, text, too_long in batch:
                end = Line(number, offset, text)
                if too_long:
                    message = f"a line of more than {limit} bytes was left out"
                    problems.add(Problem("too-long", name, number, offset, message))
                else:
                    yield end
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from error
    if (damage := reader.damage) is not None:
        place = end.offset + len(end.text)
        problems.add(Problem(damage, name, end.number, place, _DAMAGE[damage]))
