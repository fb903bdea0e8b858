"""The lines of a file, plain, gzip or zstd, with what is wrong with the file itself counted."""

from collections.abc import Callable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

from unlost import _core
from unlost.formats import lines
from unlost.formats.lines import MAX_LINE_BYTES, Line, SupportsReadline
from unlost.formats.problems import Problem, Problems
from unlost.formats.unread import unreadable_error

TextSource: TypeAlias = str | PathLike[str] | SupportsReadline
"""The path of a file, however it is compressed, or one that is open and gives its text."""

_BATCH_LINES = 4096

_DAMAGE_MESSAGES = {
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
        raise unreadable_error(path, error) from error


def read_source_lines(
    source: TextSource, problems: Problems, name: str | None = None, on_read: Callable[[int], object] | None = None
) -> Iterator[Line]:
    """Yield the lines of a file by its path, or of one that is open, in bounded memory.

    name: what to call it in problems; a path is called by itself, anything else needs one. on_read: as `read_lines` has
    it, for a path. Problems and errors are those of `read_lines`; reading what is open raises what that raises.
    """
    if isinstance(source, str | PathLike):
        return read_lines(source, problems, name=name, on_read=on_read)
    return lines.read_stream_lines(source, problems, source_name(source, name))


def source_name(source: TextSource, name: str | None) -> str:
    """Return what `lines_of` calls it in problems."""
    return name or (fspath(source) if isinstance(source, str | PathLike) else "<stream>")


def read_lines(
    path: str | PathLike[str],
    problems: Problems,
    max_line_bytes: int = MAX_LINE_BYTES,
    *,
    name: str | None = None,
    on_read: Callable[[int], object] | None = None,
    include_cut_line: bool = False,
    batch_lines: int = _BATCH_LINES,
) -> Iterator[Line]:
    """Yield the lines of a file, however it is compressed; offsets are of the decompressed text.

    Memory is bounded by `limit`, not by the file. `unlost.formats.lines` does the same for what is already open.
    name: what to call it in problems, if not by its path. on_read: is told now and then how many bytes of the file have
    been read, as they are stored. keep_cut: yield a line that damage cut, for formats in which half of it is of use.
    batch_lines: how many lines are read at a time.

    Problems: `too-long` lines, `truncated`, `corrupt` or `trailing-garbage` compression, before which everything is
    yielded, and a `cut-line` that has no end there: half a row could pass for a whole one. Raises InputError if the
    file cannot be read at all.
    """
    name = name or fspath(path)
    end = Line(0, 0, b"")
    try:
        reader = _core.LineReader(path, max_line_bytes)
        while batch := reader.batch(batch_lines):
            if on_read is not None:
                on_read(reader.position)
            for number, offset, text, too_long, is_cut in batch:
                end = Line(number, offset, text)
                if too_long:
                    message = f"a line of more than {max_line_bytes} bytes was left out"
                    problems.add(Problem("too-long", name, number, offset, message))
                elif is_cut and not include_cut_line:
                    message = "a line without end, before the damage to the file, was left out: it may be half of one"
                    problems.add(Problem("cut-line", name, number, offset, message))
                else:
                    yield end
    except OSError as error:
        raise unreadable_error(name, error) from error
    if (damage := reader.damage) is not None:
        place = end.offset + len(end.text)
        problems.add(Problem(damage, name, end.number, place, _DAMAGE_MESSAGES[damage]))
