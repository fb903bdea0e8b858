"""Transfer and content codings, undone: chunked, gzip and deflate.

Servers and crawlers lie about codings. What is not in the coding that a header names is passed on as it is; what is
and breaks off is passed on up to there, and said to be damaged; what would grow beyond a limit is given up.
"""

import re
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import BinaryIO

from unlost.archives.body import new_body

_PIECE = 1 << 16
_MAX_LAYERS = 5  # servers use one, rarely two; each costs a copy
_SIZE_LINE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\n]*)?\r?\n")
_MAX_SIZE_LINE = 4096
_GZIP = b"\x1f\x8b"
_TEXT = re.compile(rb"[\t\n\f\r\x20-\x7e\x80-\xff]*")


class TooLargeError(Exception):
    """A body that is larger than wanted. Never seen by users: the client says whose body it was."""


class UnknownCodingError(Exception):
    """A body in a coding that unlost cannot undo: its name is the message. Never seen by users."""


class _NotCodedError(Exception):
    """What is there is not in the coding that the header names."""


class _BrokenError(Exception):
    """What is there is in the coding up to here, and no further."""


def spool(pieces: Iterator[bytes], limit: int) -> BinaryIO:
    """Return a temporary file with these bytes, at its beginning. Raises TooLargeError beyond `limit` bytes."""
    file = new_body()
    try:
        for piece in _limited(pieces, limit):
            file.write(piece)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


def _limited(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    for piece in pieces:
        limit -= len(piece)
        if limit < 0:
            raise TooLargeError
        yield piece


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yield what is left of a file."""
    while piece := file.read(_PIECE):
        yield piece


def codings(headers: Sequence[tuple[str, str]]) -> list[str]:
    """Return the codings that headers name, in lower case, in the order in which they are to be undone.

    >>> codings([("Content-Encoding", "gzip"), ("transfer-encoding", "Chunked")])
    ['chunked', 'gzip']
    """
    found = []
    for field in ("transfer-encoding", "content-encoding"):
        values = ",".join(value for name, value in headers if name.lower() == field)
        named = [word.partition(";")[0].strip().lower() for word in values.split(",")]
        found += [word for word in reversed(named) if word not in ("", "identity")]
    return found


def undo(source: BinaryIO, names: Sequence[str], limit: int) -> tuple[BinaryIO, bool]:
    r"""Return a body without its codings, at its beginning, and whether it broke off in one of them.

    source: at its beginning; it can be read again (`seek`), and is closed unless it is what is returned.
    names: as `codings` gives them. limit: bytes, of the body after each coding.
    Raises TooLargeError, UnknownCodingError.

    >>> import io
    >>> body, is_broken = undo(io.BytesIO(b"3\r\nabc\r\n0\r\n\r\n"), ["chunked"], 100)
    >>> body.read(), is_broken
    (b'abc', False)
    """
    is_broken = False
    try:
        for name in list(names)[:_MAX_LAYERS]:
            source, broke = _undo_one(source, name, limit)
            is_broken |= broke
    except BaseException:
        source.close()
        raise
    return source, is_broken


def _undo_one(source: BinaryIO, name: str, limit: int) -> tuple[BinaryIO, bool]:
    is_broken = False

    def until_broken(decoded: Iterator[bytes]) -> Iterator[bytes]:
        nonlocal is_broken
        try:
            yield from decoded
        except _BrokenError:
            is_broken = True

    undone = _CODINGS.get(name)
    if undone is None:
        if name in _NOT_UNDONE and not _is_text(source):
            raise UnknownCodingError(name)
        return source, False  # a word that means nothing: `utf-8`, `binary` …
    try:
        body = spool(until_broken(undone(source)), limit)
    except _NotCodedError:
        source.seek(0)
        return source, False
    source.close()
    return body, is_broken


def _is_text(source: BinaryIO) -> bool:
    """Tell text, which some crawlers store under the headers of what they decoded, from what looks like no text."""
    head = source.read(512)
    source.seek(0)
    return _TEXT.fullmatch(head) is not None


def _dechunked(source: BinaryIO) -> Iterator[bytes]:
    """Yield what is in chunks. For that, the first chunk must end where it says, with the next one behind it."""
    chunks = 0
    while True:
        line = source.readline(_MAX_SIZE_LINE)
        size = _SIZE_LINE.fullmatch(line)
        if size is None:
            raise _NotCodedError if chunks == 0 or (chunks == 1 and line) else _BrokenError
        left = int(size[1], 16)
        if left == 0:
            return
        while left and (piece := source.read(min(left, _PIECE))):
            left -= len(piece)
            yield piece
        end = source.readline(2)
        if left or not end:
            raise _BrokenError
        if end not in (b"\r\n", b"\n"):
            raise _NotCodedError if chunks == 0 else _BrokenError
        chunks += 1


def _gunzipped(source: BinaryIO) -> Iterator[bytes]:
    """Yield what is in one or several gzip members; what comes behind them and is none is left out."""
    data = source.read(_PIECE)
    if not data.startswith(_GZIP):
        raise _NotCodedError
    while data.startswith(_GZIP):
        data = yield from _inflated(source, data, 31)
        data = data if len(data) > 1 else data + source.read(_PIECE)


def _undeflated(source: BinaryIO) -> Iterator[bytes]:
    """Yield what is in a zlib stream, or in a bare deflate stream, as some servers send under the same name."""
    data = source.read(_PIECE)
    has_header = data[:1] and data[0] & 15 == 8 and int.from_bytes(data[:2], "big") % 31 == 0
    yield from _inflated(source, data, 15 if has_header else -15)


def _inflated(source: BinaryIO, data: bytes, form: int) -> Generator[bytes, None, bytes]:
    """Yield what is in one stream, a piece at a time, so that a bomb fills a piece and no more; return what is behind.

    data: what was read of the file already. form: as zlib numbers them.
    """
    machine, is_empty = zlib.decompressobj(form), True
    try:
        while data:
            if piece := machine.decompress(data, _PIECE):
                is_empty = False
                yield piece
            if machine.eof:
                return machine.unused_data
            data = machine.unconsumed_tail or source.read(_PIECE)
    except zlib.error:
        pass
    raise _NotCodedError if is_empty else _BrokenError


_CODINGS: dict[str, Callable[[BinaryIO], Iterator[bytes]]] = {
    "chunked": _dechunked,
    "gzip": _gunzipped,
    "x-gzip": _gunzipped,
    "deflate": _undeflated,
}
_NOT_UNDONE = ("br", "zstd", "compress", "x-compress", "dcb", "dcz")
