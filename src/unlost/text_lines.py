"""Reads text files (plain, gzip or zstd) line by line as bytes, and URL lists.

Memory is bounded for any input: lines longer than `MAX_LINE_BYTES` are skipped and counted as problems.
"""

import re
from collections.abc import Callable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from unlost import _core
from unlost.problems import Problem, Problems, unreadable_error

MAX_LINE_BYTES = 8 << 20
"""Longer lines are skipped. A URL has at most 2 MiB (`unlost.uri.MAX_URI_BYTES`), and an index row has two."""
_SKIP_BYTES = 64 << 10  # chunks in which the rest of an overlong line is skipped

_BATCH_LINES = 4096
_DAMAGE_MESSAGES = {
    "truncated": "the compressed file ends in the middle: what came before was read",
    "corrupt": "the compressed data is damaged here: what came before was read",
    "trailing-garbage": "bytes behind the end of the compressed data were left out",
}

URL_LIST_PROBLEM_KINDS = {
    "too-long": "a line longer than unlost.text_lines.MAX_LINE_BYTES",
    "no-column": "expected more columns, or something in this one",
    "bad-uri": "expected an address, found control characters or a row of an index",
}
"""Kinds of problems, with their messages. Each skips its line."""
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")


class SupportsReadline(Protocol):
    """A binary file opened for reading, or an object with the same method."""

    def readline(self, size: int, /) -> bytes:
        """Return the next line with its line end, or its next `size` bytes; empty at the end of the file."""
        ...


class Line(NamedTuple):
    """A line of a file.

    Attributes:
        number: Line number, from 1.
        offset: Offset of its first byte.
        text: Text without its line end (LF or CR LF; CR at the end of the file).
    """

    number: int
    offset: int
    text: bytes


def read_stream_lines(
    file: SupportsReadline, problems: Problems, name: str, limit: int = MAX_LINE_BYTES
) -> Iterator[Line]:
    r"""Yield the lines of an open file, including a last one without a line end.

    A line of more than `limit` bytes is skipped and counted in `problems` as `too-long`, under the file's `name`.
    Memory is bounded by `limit`. Raises only what reading the file raises.

    >>> from io import BytesIO
    >>> problems = Problems()
    >>> [tuple(line) for line in read_stream_lines(BytesIO(b"a\r\nlong line\n\nb"), problems, "x", limit=4)]
    [(1, 0, b'a'), (3, 13, b''), (4, 14, b'b')]
    >>> str(problems.first["too-long"])
    'x:2 (byte 3): too-long: expected a line of at most 4 bytes'
    """
    number, offset = 0, 0
    while raw := file.readline(limit + len(b"\r\n")):
        number += 1
        begin, offset = offset, offset + len(raw)
        is_whole = raw.endswith(b"\n") or len(raw) <= limit + 1
        text = raw.removesuffix(b"\n").removesuffix(b"\r") if is_whole else raw
        if len(text) <= limit:
            yield Line(number, begin, text)
            continue
        problems.add(Problem("too-long", name, number, begin, f"expected a line of at most {limit} bytes"))
        while raw and not raw.endswith(b"\n"):
            raw = file.readline(_SKIP_BYTES)
            offset += len(raw)


TextSource: TypeAlias = str | PathLike[str] | SupportsReadline
"""Path of a file, possibly compressed, or an open file with decompressed text."""


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
    """Yield the lines of a file or an open stream, in bounded memory.

    Problems and errors are those of `read_lines` for a path, and of `read_stream_lines` for a stream.

    Args:
        source: Path or stream.
        problems: Collects the problems.
        name: Name in problems; the path by default.
        on_read: As in `read_lines`; only for a path.
    """
    if isinstance(source, str | PathLike):
        return read_lines(source, problems, name=name, on_read=on_read)
    return read_stream_lines(source, problems, source_name(source, name))


def source_name(source: TextSource, name: str | None) -> str:
    """Return the name of a source in problems."""
    return name or (fspath(source) if isinstance(source, str | PathLike) else "<stream>")


def read_lines(
    path: str | PathLike[str],
    problems: Problems,
    max_line_bytes: int = MAX_LINE_BYTES,
    *,
    name: str | None = None,
    on_read: Callable[[int], object] | None = None,
    batch_lines: int = _BATCH_LINES,
) -> Iterator[Line]:
    """Yield the lines of a file (plain, gzip or zstd); offsets are of the decompressed text.

    Kinds of problems: `too-long` for a line; `truncated`, `corrupt` or `trailing-garbage` for compressed data; and
    `cut-line` for a line that such damage cuts, which is skipped because a partial row could pass for a complete one.

    Args:
        path: The file.
        problems: Collects the problems.
        max_line_bytes: Maximum size of a line; bounds memory.
        name: Name in problems; the path by default.
        on_read: Called periodically with the number of bytes read, as stored.
        batch_lines: Lines read at a time.

    Raises:
        InputError: The file cannot be read.
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
                elif is_cut:
                    message = "a line without end, before the damage to the file, was left out: it may be half of one"
                    problems.add(Problem("cut-line", name, number, offset, message))
                else:
                    yield end
    except OSError as error:
        raise unreadable_error(name, error) from error
    if (damage := reader.damage) is not None:
        offset_of_damage = end.offset + len(end.text)
        problems.add(Problem(damage, name, end.number, offset_of_damage, _DAMAGE_MESSAGES[damage]))


def read_urls(
    file: TextSource, problems: Problems, name: str | None = None, *, column: int | None = None
) -> Iterator[Line]:
    r"""Yield the URLs of a list, verbatim, with the positions of their lines.

    Blank lines and lines that begin with `#` are skipped, and white space around a URL is stripped. URLs are not
    validated; use `unlost.uri`.

    Args:
        file: The list; see `read_source_lines`.
        problems: Collects the invalid lines, by the kinds of `URL_LIST_PROBLEM_KINDS`.
        name: Name of the list in problems.
        column: Number of the tab-separated column with the URLs, from 1; None for the whole line.

    >>> from io import BytesIO
    >>> table = BytesIO(b"# time, place, address\n1356998400\tpics\thttp://a.com/\n")
    >>> list(read_urls(table, Problems(), "links.tsv", column=3))
    [Line(number=2, offset=23, text=b'http://a.com/')]
    """
    label = source_name(file, name)
    for line in read_source_lines(file, problems, name):
        text = line.text.removeprefix(b"\xef\xbb\xbf") if line.number == 1 else line.text
        if not text.strip() or text.startswith(b"#"):
            continue
        kind = None
        if column is not None:
            columns = text.split(b"\t", column)  # no more splits than needed
            text = columns[column - 1] if column <= len(columns) else b""
            kind = None if text.strip() else "no-column"
        text = text.strip()
        if _CONTROL.search(text) or b' {"' in text:
            kind = "bad-uri"
        if kind:
            problems.add(Problem(kind, label, line.number, line.offset, URL_LIST_PROBLEM_KINDS[kind]))
        else:
            yield Line(line.number, line.offset, text)
