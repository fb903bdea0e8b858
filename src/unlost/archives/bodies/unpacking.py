"""Undoes the gzip coding of texts of which no header tells."""

from typing import BinaryIO

from unlost.archives.archive import Archive
from unlost.archives.bodies.body import BodyTooLargeError, iter_pieces, spool_body
from unlost.errors import FailedError
from unlost.formats.contentcoding import ContentDecoder, decode_chunks
from unlost.formats.problems import Problem, Problems

_GZIP_MAGIC = b"\x1f\x8b\x08"
_MAX_GZIP_LAYERS = 2  # servers that compress what is compressed do it once more, not more often

# Types of text: what begins with gzip's bytes is none, so it must be coded.
_TEXT_PREFIXES = ("text/", "application/javascript", "application/x-javascript", "application/json", "application/xml")
_TEXT_ENDINGS = ("+xml", "+json")


def is_text_type(mime: str | None) -> bool:
    """Return whether a media type is one of text, which never begins with bytes of gzip."""
    return mime is not None and (mime.startswith(_TEXT_PREFIXES) or mime.endswith(_TEXT_ENDINGS))


def is_gzip(body: BinaryIO) -> bool:
    """Return whether a body, which is left at its beginning, begins as gzip does."""
    body.seek(0)
    head = body.read(len(_GZIP_MAGIC))
    body.seek(0)
    return head == _GZIP_MAGIC


def decompress_text(body: BinaryIO, mime: str | None, archive: Archive, limit: int, problems: Problems) -> BinaryIO:
    """Return the body of a text without gzip coding, at its beginning; the same one if it has none, or is no text.

    What headers say has been undone by whoever brought it: this is for what they do not say. What breaks off is given
    as far as it goes, and counted in `problems` as `cut-gzip`; what is no gzip after all is given as it is.

    Raises FailedError of kind `too-large` if it has more than `limit` bytes.
    """
    for _ in range(_MAX_GZIP_LAYERS):
        if not is_gzip(body) or not is_text_type(mime):
            break
        decoder = ContentDecoder(["gzip"])
        with body:
            try:
                body = spool_body(decode_chunks(iter_pieces(body), decoder), limit)
            except BodyTooLargeError:
                message = f"more than {limit} bytes once it is uncompressed"
                raise FailedError(message, archive.id, "too-large") from None
        if decoder.damage is not None:
            message = f"expected gzip to its end: what came before was read ({decoder.damage})"
            problems.add(Problem("cut-gzip", f"{archive.id} copy", None, 0, message))
    return body
