"""The blocks in a page, whatever the page is and whatever became of it."""

from collections import Counter
from collections.abc import Iterator

from unlost.vault.block import BEGIN, END, MAX_BLOCK_BYTES, BadBlockError, Block, block_of

_WIDE = {"utf-16-le": BEGIN.decode().encode("utf-16-le"), "utf-16-be": BEGIN.decode().encode("utf-16-be")}
_MAX_TEXT = 2 * MAX_BLOCK_BYTES


def find_blocks(body: bytes, problems: Counter[str]) -> Iterator[Block]:
    """Yield the whole blocks of a page. Its charset need not be known: blocks are ASCII, or that in UTF-16.

    problems: gets how many blocks are `cut` (the page ends in them), `damaged` (their hash says so), `forged` (their
    signature does), or `unreadable` (of no format that is known here).
    """
    for inside in _insides(_narrow(body), problems):
        try:
            yield block_of(inside)
        except BadBlockError as error:
            problems[error.kind] += 1


def _narrow(body: bytes) -> bytes:
    for charset, mark in _WIDE.items():
        if (at := body.find(mark)) >= 0:
            # Letters of two bytes begin at even places, unless something of odd length was put before them.
            return body[at % 2 :].decode(charset, "replace").encode("ascii", "replace")
    return body


def _insides(body: bytes, problems: Counter[str]) -> Iterator[bytes]:
    at, end = body.find(BEGIN), 0
    while at >= 0:
        start = at + len(BEGIN)
        following = body.find(BEGIN, start)
        if 0 <= end < start:  # else it is known, and looking for it from every beginning would take forever
            end = body.find(END, start)
        if end < 0 or 0 <= following < end or end - start > _MAX_TEXT:
            problems["cut"] += 1
        else:
            yield body[start:end]
        at = following
