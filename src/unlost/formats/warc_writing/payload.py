"""The bodies that records hold: in memory if they are small, else read from their file as often as is needed."""

import os
from collections.abc import Iterator
from typing import BinaryIO

from unlost.formats.warc_writing.members import NO_COMPRESSION_LEVEL, TEXT_COMPRESSION_LEVEL

_MAX_MEMORY_BYTES = 1 << 20  # bytes of a body that is read once; a larger one is read from its file twice
_PAYLOAD_READ_BYTES = 1 << 16

# Types that are compressed by themselves: to do it again takes time and saves nothing.
_COMPRESSED_TYPES = (
    "image/avif", "image/gif", "image/jp", "image/pjpeg", "image/png", "image/webp", "audio/aac", "audio/mp",
    "audio/ogg", "audio/webm", "video/", "font/woff", "application/font-woff", "application/x-font-woff",
    "application/zip", "application/x-zip", "application/gzip", "application/x-gzip", "application/x-7z",
    "application/x-rar", "application/vnd.rar", "application/x-bzip", "application/x-xz", "application/java-archive",
    "application/vnd.openxmlformats", "application/vnd.oasis", "application/epub", "application/ogg",
)  # fmt: skip


class Payload:
    """A body that can be gone through several times.

    length: how many bytes it has.
    """

    def __init__(self, body: BinaryIO) -> None:
        body.seek(0)
        self._body: bytes | BinaryIO = body.read(_MAX_MEMORY_BYTES)
        self.length = len(self._body)
        if self.length == _MAX_MEMORY_BYTES:
            self._body, self.length = body, body.seek(0, os.SEEK_END)

    def pieces(self) -> Iterator[bytes]:
        """Yield all of it, however often that is asked for."""
        if isinstance(self._body, bytes):
            yield self._body
            return
        self._body.seek(0)
        while piece := self._body.read(_PAYLOAD_READ_BYTES):
            yield piece


def compression_level(mime: str | None) -> int:
    """Return how hard to try to make a body of this type smaller."""
    return NO_COMPRESSION_LEVEL if mime is not None and mime.startswith(_COMPRESSED_TYPES) else TEXT_COMPRESSION_LEVEL
