"""The streams of an OLE file, by olefile."""

from io import BytesIO

import olefile

from unlost.errors import DocumentError


class OleStreams:
    """The streams at the top of an OLE file. Raises DocumentError if it is none."""

    def __init__(self, body: bytes) -> None:
        try:
            self._file = olefile.OleFileIO(BytesIO(body))
        except (OSError, ValueError, IndexError) as error:
            raise DocumentError("it is no whole OLE file", "damaged") from error

    def read(self, name: str) -> bytes:
        """Return all of a stream. Raises DocumentError if it is not there or not whole."""
        try:
            return bytes(self._file.openstream(name).read())
        except (OSError, ValueError, IndexError) as error:
            raise DocumentError(f"its stream {name!r} is missing or damaged", "damaged") from error


def read_uint(data: bytes, at: int, size: int = 4) -> int:
    """Return a little-endian number. Raises DocumentError if the data ends before it."""
    if not 0 <= at <= len(data) - size:
        raise DocumentError("a number in it is missing", "damaged")
    return int.from_bytes(data[at : at + size], "little")
