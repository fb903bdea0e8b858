"""Response bodies: in memory while small, else in a temporary file."""

import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

MAX_BODY_BYTES = 1 << 30
"""The largest body that is read from a local file or a record, before and after decoding."""

_MEMORY_BYTES = 1 << 20  # larger bodies go to a temporary file
_PIECE_BYTES = 1 << 16

if TYPE_CHECKING:
    _Spooled = tempfile.SpooledTemporaryFile[bytes]
else:
    _Spooled = tempfile.SpooledTemporaryFile


class BodyTooLargeError(Exception):
    """A body exceeds the limit of its reader. Handled by the archive clients, which name the capture."""


class ByteReader(Protocol):
    """A binary stream to read from, in pieces."""

    def read(self, count: int, /) -> bytes:
        """Return up to `count` bytes; none at the end."""
        ...


class _SpooledBody(_Spooled):
    """A temporary file that is closed, and deleted, with the last reference to it."""

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()


def new_body() -> BinaryIO:
    """Return an empty body, to write to and read from."""
    return cast("BinaryIO", _SpooledBody(_MEMORY_BYTES))


def spool_body(pieces: Iterator[bytes], limit: int) -> BinaryIO:
    """Return a body with these bytes, positioned at its beginning.

    Raises:
        BodyTooLargeError: There are more than `limit` bytes.
    """
    body = new_body()
    try:
        for piece in _limit_bytes(pieces, limit):
            body.write(piece)
    except BaseException:
        body.close()
        raise
    body.seek(0)
    return body


def _limit_bytes(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    for piece in pieces:
        limit -= len(piece)
        if limit < 0:
            raise BodyTooLargeError
        yield piece


def iter_pieces(file: ByteReader) -> Iterator[bytes]:
    """Yield the rest of a file in pieces."""
    while piece := file.read(_PIECE_BYTES):
        yield piece
