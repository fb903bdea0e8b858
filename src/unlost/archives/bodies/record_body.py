"""The body of an HTTP message in a WARC or ARC, without its transfer and content codings."""

import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from unlost.archives.bodies.body import ByteReader, iter_pieces, spool_body
from unlost.formats.contentcoding import (
    MAX_CODINGS,
    ContentDecoder,
    UndecodableError,
    parse_content_encoding,
    decode_chunks,
)

_CHUNKED = "chunked"
_PIECE = 1 << 16
_SIZE_LINE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\n]*)?\r?\n")
_MAX_SIZE_LINE = 4096


class _NotChunkedError(Exception):
    """What is there is not in chunks, whatever a header says."""


class _TruncatedChunksError(Exception):
    """What is there is in chunks up to here, and no further."""


def decode_payload(source: ByteReader, headers: Sequence[tuple[str, str]], limit: int) -> tuple[BinaryIO, bool]:
    r"""Return a body without the codings that headers name, at its beginning, and whether it broke off in one of them.

    limit: bytes, of the body as it is stored and after its codings. Raises `body.TooLargeError`, UndecodableError.

    >>> import io
    >>> body, is_broken = read_body(io.BytesIO(b"3\r\nabc\r\n0\r\n\r\n"), [("Transfer-Encoding", "chunked")], 100)
    >>> body.read(), is_broken
    (b'abc', False)
    """
    left, is_broken = _codings(headers), False
    if len(left) > MAX_CODINGS:
        raise UndecodableError(f"in {len(left)} codings, where at most {MAX_CODINGS} are undone")
    body = spool_body(iter_pieces(source), limit)
    try:
        while left:
            # Chunked is undone from file to file: that it is none may be known only after megabytes.
            count = left.index(_CHUNKED) if _CHUNKED in left else len(left)
            undo = _dechunk if count == 0 else _decode
            body, broke = undo(body, left[:count], limit)
            left, is_broken = left[count or 1 :], is_broken or broke
    except BaseException:
        body.close()
        raise
    return body, is_broken


def _codings(headers: Sequence[tuple[str, str]]) -> list[str]:
    """Return the codings that headers name, in the order in which they are to be undone: those of the transfer first.

    >>> _codings([("Content-Encoding", "deflate, GZIP"), ("transfer-encoding", "Chunked")])
    ['chunked', 'gzip', 'deflate']
    """
    return [
        coding
        for field in ("transfer-encoding", "content-encoding")
        for coding in parse_content_encoding(value for name, value in headers if name.lower() == field)
    ]


def _decode(body: BinaryIO, codings: list[str], limit: int) -> tuple[BinaryIO, bool]:
    decoder = ContentDecoder(codings)
    with body:
        return spool_body(decode_chunks(iter_pieces(body), decoder), limit), decoder.damage is not None


def _dechunk(body: BinaryIO, _: list[str], limit: int) -> tuple[BinaryIO, bool]:
    is_broken = False

    def until_broken() -> Iterator[bytes]:
        nonlocal is_broken
        try:
            yield from _iter_chunks(body)
        except _TruncatedChunksError:
            is_broken = True

    try:
        found = spool_body(until_broken(), limit)
    except _NotChunkedError:
        body.seek(0)
        return body, False
    body.close()
    return found, is_broken


def _iter_chunks(source: BinaryIO) -> Iterator[bytes]:
    """Yield what is in chunks. For that, the first chunk must end where it says, with the next one behind it."""
    chunks = 0
    while True:
        line = source.readline(_MAX_SIZE_LINE)
        size = _SIZE_LINE.fullmatch(line)
        if size is None:
            raise _NotChunkedError if chunks == 0 or (chunks == 1 and line) else _TruncatedChunksError
        left = int(size[1], 16)
        if left == 0:
            return
        while left and (piece := source.read(min(left, _PIECE))):
            left -= len(piece)
            yield piece
        end = source.readline(2)
        if left or not end:
            raise _TruncatedChunksError
        if end not in (b"\r\n", b"\n"):
            raise _NotChunkedError if chunks == 0 else _TruncatedChunksError
        chunks += 1
