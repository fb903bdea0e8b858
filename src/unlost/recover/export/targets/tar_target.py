"""A gzipped tar file as the target of an export."""

import zlib
from pathlib import Path
from tarfile import BLOCKSIZE, PAX_FORMAT, RECORDSIZE, TarInfo
from typing import BinaryIO

from unlost import dates
from unlost.archives.bodies.body import iter_pieces
from unlost.recover.export.targets.packed_target import PackedTarget

_LEVEL = 6
_GZIP = 31  # what zlib calls the largest window with a header of gzip, in which is neither a name nor a time


class TarTarget(PackedTarget):
    """A Target that is a gzipped tar file in the format of POSIX. The same files make the same bytes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, TarWriter)


class TarWriter:
    """Writes a gzipped tar file. `TarFile` would keep a kilobyte for each file that is in it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self._size = 0

    def add(self, path: str, body: BinaryIO, size: int, modified: str) -> None:
        """Write a file of so many bytes, which all may read and nobody owns; dates before 1970 are 1970."""
        info = TarInfo(path)
        info.size, info.mode = size, 0o644
        info.mtime = max(0, int(dates.to_datetime(modified).timestamp()))
        self._write(info.tobuf(PAX_FORMAT, "utf-8", "strict"))
        left = size
        for piece in iter_pieces(body):
            left -= len(piece)
            self._write(piece)
        if left:
            raise OSError(f"it had {size} bytes, and {size - left} when it was read")
        self._fill(BLOCKSIZE)

    def _write(self, data: bytes) -> None:
        self._size += len(data)
        self._file.write(self._compressor.compress(data))

    def _fill(self, unit: int) -> None:
        """Write zeros until it is as long as so many units."""
        self._write(bytes(-self._size % unit))

    def finish(self) -> None:
        """Write the end of both formats."""
        self._write(bytes(2 * BLOCKSIZE))
        self._fill(RECORDSIZE)
        self._file.write(self._compressor.flush())

    def abort(self) -> None:
        """Write no end: there is nothing to forget."""
