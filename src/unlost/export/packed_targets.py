"""Export targets that are ZIP or gzipped tar files."""

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tarfile import BLOCKSIZE, PAX_FORMAT, RECORDSIZE, TarInfo
from typing import BinaryIO, Protocol
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from unlost import dates
from unlost.export.targets import AtomicPath, AtomicTarget, WrittenPaths
from unlost.http.models import iter_pieces, new_body


class PackedWriter(Protocol):
    """A format that stores files one after the other."""

    def add(self, path: str, body: BinaryIO, size: int, modified: str) -> None:
        """Write a file with `size` bytes."""
        ...

    def finish(self) -> None:
        """Write the end of the archive."""
        ...

    def abort(self) -> None:
        """Discard buffered output without completing the archive."""
        ...


class PackedTarget(AtomicTarget):
    """An `ExportTarget` that is a single file in some format.

    An invalid path is rejected before anything is written, and other files may follow. After any other error, nothing
    can be added.
    """

    def __init__(self, path: Path, begin: Callable[[BinaryIO], PackedWriter]) -> None:
        self._path = AtomicPath(path)
        self._begin = begin
        self._written_paths = WrittenPaths()
        self._is_broken = False

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._path:
            with self._path.writing() as file:
                self._writer = self._begin(file)
                try:
                    yield
                    self._check_whole()
                    self._writer.finish()
                except BaseException:
                    self._writer.abort()
                    raise
            self._path.publish_file()

    def _check_whole(self) -> None:
        if self._is_broken:
            raise RuntimeError("a file of the target was not written whole, and somebody passed over that")

    def add(self, path: str, body: BinaryIO, modified: str) -> None:
        """Write a file, as `ExportTarget.add`."""
        self._check_whole()
        self._written_paths.add(path)
        self._is_broken = True
        with self._path.explain_os_errors(path), _with_size(body) as (content, size):
            self._writer.add(path, content, size, modified)
        self._is_broken = False


@contextmanager
def _with_size(body: BinaryIO) -> Iterator[tuple[BinaryIO, int]]:
    """Yield a body with its remaining size. A body that is not seekable is spooled to a temporary file."""
    if body.seekable():
        start = body.tell()
        size = body.seek(0, os.SEEK_END) - start
        body.seek(start)
        yield body, size
        return
    with new_body() as spooled:
        for piece in iter_pieces(body):
            spooled.write(piece)
        size = spooled.tell()
        spooled.seek(0)
        yield spooled, size


_LEVEL = 6
_GZIP = 31  # zlib's wbits for the largest window and a gzip header, which has no name and no time


class TarTarget(PackedTarget):
    """An `ExportTarget` that is a gzipped POSIX tar file. The same files yield the same bytes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, TarWriter)


class TarWriter:
    """Writes a gzipped tar file. `tarfile.TarFile` would use a kilobyte of memory per file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self._size = 0

    def add(self, path: str, body: BinaryIO, size: int, modified: str) -> None:
        """Write a file with `size` bytes, mode 644 and no owner. Dates before 1970 become 1970."""
        info = TarInfo(path)
        info.size, info.mode = size, 0o644
        info.mtime = max(0, int(dates.to_datetime(modified).timestamp()))
        self._write(info.tobuf(PAX_FORMAT, "utf-8", "strict"))
        remaining = size
        for piece in iter_pieces(body):
            remaining -= len(piece)
            self._write(piece)
        if remaining:
            raise OSError(f"it had {size} bytes, and {size - remaining} when it was read")
        self._pad(BLOCKSIZE)

    def _write(self, data: bytes) -> None:
        self._size += len(data)
        self._file.write(self._compressor.compress(data))

    def _pad(self, unit: int) -> None:
        """Pad with zeros to a multiple of `unit`."""
        self._write(bytes(-self._size % unit))

    def finish(self) -> None:
        """Write the end of the tar and the gzip format."""
        self._write(bytes(2 * BLOCKSIZE))
        self._pad(RECORDSIZE)
        self._file.write(self._compressor.flush())

    def abort(self) -> None:
        """Do nothing: nothing is buffered outside the file."""


# Bytes of a body that are compressed to decide whether it is deflated. Declared media types are often wrong.
_SAMPLED_BYTES = 1 << 16
_MAX_COMPRESSION_RATIO = 0.95  # above this ratio, a file is stored and can be read without decompression
_FIRST, _LAST = 1980, 2107  # years that the MS-DOS dates of ZIP can represent
_REGULAR = 0o100644 << 16  # a regular file with mode 644 in the ZIP external attributes
_UNIX = 3  # "version made by" for Unix, so that the mode in the external attributes applies


class ZipTarget(PackedTarget):
    """An `ExportTarget` that is a ZIP file.

    The same files yield the same bytes. Uses about 700 bytes of memory per file until the end.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, ZipWriter)


class ZipWriter:
    """Writes a ZIP file: Zip64 for large files, names flagged as UTF-8."""

    def __init__(self, file: BinaryIO) -> None:
        self._archive = ZipFile(file, "w", allowZip64=True)

    def add(self, path: str, body: BinaryIO, size: int, modified: str) -> None:
        """Write a file with `size` bytes, deflated if that saves at least 5 %."""
        sample = body.read(_SAMPLED_BYTES)
        info = zip_entry(path, modified)
        info.file_size = size  # determines whether Zip64 is used
        if len(zlib.compress(sample, _LEVEL)) < _MAX_COMPRESSION_RATIO * len(sample):
            info.compress_type = ZIP_DEFLATED
        with self._archive.open(info, "w") as member:
            for piece in _pieces_after(sample, body):
                member.write(piece)

    def finish(self) -> None:
        """Write the central directory."""
        self._archive.close()

    def abort(self) -> None:
        """Close without a central directory."""
        self._archive.fp = None


def zip_entry(path: str, modified: str) -> ZipInfo:
    """Return an entry for a stored file with mode 644, no owner, and the closest date that ZIP can represent.

    Args:
        path: Path in the archive.
        modified: Date, 14 digits.

    Raises:
        DateError: The date is invalid.
    """
    moment = dates.to_datetime(modified)
    date = (moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second)
    first, last = (_FIRST, 1, 1, 0, 0, 0), (_LAST, 12, 31, 23, 59, 58)
    info = ZipInfo(path, min(max(date, first), last))
    info.compress_type, info.create_system, info.external_attr = ZIP_STORED, _UNIX, _REGULAR
    return info


def _pieces_after(first: bytes, body: BinaryIO) -> Iterator[bytes]:
    yield first
    yield from iter_pieces(body)
