"""Undoes the gzip coding of texts of which no header tells."""

import zlib
from typing import BinaryIO

from unlost.archives.archive import Archive
from unlost.archives.body import new_body
from unlost.errors import FailedError
from unlost.formats.problems import Problem, Problems

_MAGIC = b"\x1f\x8b\x08"
_CHUNK = 1 << 16
_LAYERS = 2  # servers that compress what is compressed do it once more, not more often

# Types of text: what begins with gzip's bytes is none, so it must be coded.
_TEXTS = ("text/", "application/javascript", "application/x-javascript", "application/json", "application/xml")
_TEXT_ENDINGS = ("+xml", "+json")


def is_text(mime: str | None) -> bool:
    """Return whether a media type is one of text, which never begins with bytes of gzip."""
    return mime is not None and (mime.startswith(_TEXTS) or mime.endswith(_TEXT_ENDINGS))


def unpacked(body: BinaryIO, mime: str | None, archive: Archive, limit: int, problems: Problems) -> BinaryIO:
    """Return the body of a text without gzip coding, at its beginning; the same one if it has none, or is no text.

    What headers say has been undone by whoever brought it: this is for what they do not say. What breaks off is given
    as far as it goes, and counted in `problems` as `cut-gzip`; what is no gzip after all is given as it is.

    Raises FailedError of kind `too-large` if it has more than `limit` bytes.
    """
    for _ in range(_LAYERS):
        body.seek(0)
        head = body.read(len(_MAGIC))
        body.seek(0)
        if head != _MAGIC or not is_text(mime):
            return body
        inner = _inflated(body, archive, limit, problems)
        if inner is None:
            body.seek(0)
            return body
        body.close()
        body = inner
    return body


def _inflated(body: BinaryIO, archive: Archive, limit: int, problems: Problems) -> BinaryIO | None:
    """Return all gzip members of a body, as far as they can be read; None if not a byte of them can."""
    inner = new_body()
    size, member, is_whole = 0, zlib.decompressobj(31), False
    try:
        while data := body.read(_CHUNK):
            while data:
                if member.eof:
                    if not _MAGIC.startswith(data[: len(_MAGIC)]):
                        break  # padding
                    member = zlib.decompressobj(31)
                text = member.decompress(data, _CHUNK)
                size += len(text)
                if size > limit:
                    inner.close()
                    raise FailedError(f"more than {limit} bytes once it is uncompressed", archive.id, "too-large")
                inner.write(text)
                data = member.unused_data if member.eof else member.unconsumed_tail
        is_whole = member.eof
    except zlib.error:
        if not size:
            inner.close()
            return None
    if not is_whole:
        _count(archive, body.tell(), problems)
    inner.seek(0)
    return inner


def _count(archive: Archive, offset: int, problems: Problems) -> None:
    message = "expected gzip to its end: what came before was read"
    problems.add(Problem("cut-gzip", f"{archive.id} copy", None, offset, message))
