"""ZIP and gzipped tar files as targets of an export."""

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
from unlost.http.body import iter_pieces, new_body


class PackedWriter(Protocol):
    """A format: puts one file behind the other."""

    def add(self, path: str, body: BinaryIO, size: int, modified: str) -> None:
        """Write a file of so many bytes."""
        ...

    def finish(self) -> None:
        """Write what stands at the end."""
        ...

    def abort(self) -> None:
        """Write nothing more, whatever is missing."""
        ...


class PackedTarget(AtomicTarget):
    """A Target that is one file, in a format.

    A path is refused before anything is written of it, and others may follow; behind any other error, nothing can.
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
        """Write a file, as Target has it."""
        self._check_whole()
        self._written_paths.add(path)
        self._is_broken = True
        with self._path.explain_os_errors(path), _with_size(body) as (whole, size):
            self._writer.add(path, whole, size, modified)
        self._is_broken = False


@contextmanager
def _with_size(body: BinaryIO) -> Iterator[tuple[BinaryIO, int]]:
    """Give a body, and how many bytes are left of it; one that cannot tell is read to a temporary file first."""
    if body.seekable():
        begin = body.tell()
        size = body.seek(0, os.SEEK_END) - begin
        body.seek(begin)
        yield body, size
        return
    with new_body() as whole:
        for piece in iter_pieces(body):
            whole.write(piece)
        size = whole.tell()
        whole.seek(0)
        yield whole, size


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


_SAMPLED_BYTES = 1 << 16  # bytes of a body from which it is told whether deflating pays
_MAX_COMPRESSION_RATIO = 0.95  # of its size: what saves less is stored, and can be read without unpacking
_FIRST, _LAST = 1980, 2107  # the years that a zip can tell
_REGULAR = 0o100644 << 16  # where a zip has the mode of a file
_UNIX = 3


class ZipTarget(PackedTarget):
    """A Target that is a zip file.

    The same files make the same bytes. Of each file, some 700 bytes stay in memory until the end.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, ZipWriter)


class ZipWriter:
    """Writes a zip file. Large ones are in the form of Zip64; names are in UTF-8, and said to be."""

    def __init__(self, file: BinaryIO) -> None:
        self._archive = ZipFile(file, "w", allowZip64=True)

    def add(self, path: str, body: BinaryIO, size: int, modified: str) -> None:
        """Write a file of so many bytes, deflated if that pays."""
        head = body.read(_SAMPLED_BYTES)
        info = zip_entry(path, modified)
        info.file_size = size  # from which the form of Zip64 is told
        if len(zlib.compress(head, _LEVEL)) < _MAX_COMPRESSION_RATIO * len(head):
            info.compress_type = ZIP_DEFLATED
        with self._archive.open(info, "w") as member:
            for piece in _pieces_after(head, body):
                member.write(piece)

    def finish(self) -> None:
        """Write the directory."""
        self._archive.close()

    def abort(self) -> None:
        """Write no directory."""
        self._archive.fp = None


def zip_entry(path: str, modified: str) -> ZipInfo:
    """Return an entry that is stored as it is: a file that all may read and nobody owns, with the date nearest to that.

    modified: 14 digits. Raises DateError for a date that is none.
    """
    moment = dates.to_datetime(modified)
    date = (moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second)
    first, last = (_FIRST, 1, 1, 0, 0, 0), (_LAST, 12, 31, 23, 59, 58)
    info = ZipInfo(path, min(max(date, first), last))
    info.compress_type, info.create_system, info.external_attr = ZIP_STORED, _UNIX, _REGULAR
    return info


def _pieces_after(head: bytes, body: BinaryIO) -> Iterator[bytes]:
    yield head
    yield from iter_pieces(body)
