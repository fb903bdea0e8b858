"""Response bodies: in memory while small, else in a temporary file."""

import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

MAX_BODY_BYTES = 1 << 30
"""The largest body that is taken out of a file on this machine or a record, before and after its codings are undone."""

_MEMORY_BYTES = 1 << 20  # bytes
_PIECE = 1 << 16

if TYPE_CHECKING:
    _Spooled = tempfile.SpooledTemporaryFile[bytes]
else:
    _Spooled = tempfile.SpooledTemporaryFile


class BodyTooLargeError(Exception):
    """A body that is larger than wanted. Never seen by users: the client says whose body it was."""


class ByteReader(Protocol):
    """What gives its bytes one piece after the other."""

    def read(self, count: int, /) -> bytes:
        """Return some more bytes; none at the end."""
        ...


class _SpooledBody(_Spooled):
    """A file that is closed, and gone, with the last reference to it."""

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()


def new_body() -> BinaryIO:
    """Return an empty body to write to and read from."""
    return cast("BinaryIO", _SpooledBody(_MEMORY_BYTES))


def spool_body(pieces: Iterator[bytes], limit: int) -> BinaryIO:
    """Return a body of these bytes, at its beginning. Raises TooLargeError beyond `limit` bytes."""
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
    """Yield what is left of a file."""
    while piece := file.read(_PIECE):
        yield piece
