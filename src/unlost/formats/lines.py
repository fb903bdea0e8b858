"""Lines of text files, as bytes, with where they stand; a line without end costs no memory."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from unlost.formats.problems import Problem, Problems

MAX_LINE_BYTES = 8 << 20
"""Longer lines are skipped. An address has at most 2 MiB (`unlost.uri.MAX_URI_BYTES`), a row has two."""

_SKIP_BYTES = 64 << 10  # bytes: what the rest of a long line is read by


class SupportsReadline(Protocol):
    """A file opened for reading bytes, or anything like it."""

    def readline(self, size: int, /) -> bytes:
        """Return the next line with its end, or the next `size` bytes of it; nothing at the end of the file."""
        ...


class Line(NamedTuple):
    """A line. number: from 1; offset: of its first byte; text: without its end: LF, CR and LF, CR at the file's end."""

    number: int
    offset: int
    text: bytes


def read_stream_lines(
    file: SupportsReadline, problems: Problems, name: str, limit: int = MAX_LINE_BYTES
) -> Iterator[Line]:
    r"""Yield the lines of a file, the last one also if it has no end, in memory for `limit` bytes.

    A line of more than `limit` bytes is skipped and counted in `problems` as `too-long`, under the file's `name`.
    Raises only what reading the file raises.

    >>> from io import BytesIO
    >>> problems = Problems()
    >>> [tuple(line) for line in read_lines(BytesIO(b"a\r\nlong line\n\nb"), problems, "x", limit=4)]
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
