"""The blocks in a page, whatever the page is and whatever became of it."""

from collections import Counter
from collections.abc import Iterator

from unlost.vault.block import BEGIN_MARKER, END_MARKER, MAX_BLOCK_BYTES, InvalidBlockError, VaultBlock, parse_block

_UTF16_MARKERS = {
    "utf-16-le": BEGIN_MARKER.decode().encode("utf-16-le"),
    "utf-16-be": BEGIN_MARKER.decode().encode("utf-16-be"),
}
_MAX_BLOCK_TEXT = 2 * MAX_BLOCK_BYTES


def find_blocks(body: bytes, problems: Counter[str]) -> Iterator[VaultBlock]:
    """Yield the whole blocks of a page. Its charset need not be known: blocks are ASCII, or that in UTF-16.

    problems: gets how many blocks are `cut` (the page ends in them), `damaged` (their hash says so), `forged` (their
    signature does), or `unreadable` (of no format that is known here).
    """
    for inside in _marked_texts(_decode_utf16(body), problems):
        try:
            yield parse_block(inside)
        except InvalidBlockError as error:
            problems[error.kind] += 1


def _decode_utf16(body: bytes) -> bytes:
    for charset, mark in _UTF16_MARKERS.items():
        if (at := body.find(mark)) >= 0:
            # Letters of two bytes begin at even places, unless something of odd length was put before them.
            return body[at % 2 :].decode(charset, "replace").encode("ascii", "replace")
    return body


def _marked_texts(body: bytes, problems: Counter[str]) -> Iterator[bytes]:
    at, end = body.find(BEGIN_MARKER), 0
    while at >= 0:
        start = at + len(BEGIN_MARKER)
        following = body.find(BEGIN_MARKER, start)
        if 0 <= end < start:  # else it is known, and looking for it from every beginning would take forever
            end = body.find(END_MARKER, start)
        if end < 0 or 0 <= following < end or end - start > _MAX_BLOCK_TEXT:
            problems["cut"] += 1
        else:
            yield body[start:end]
        at = following
