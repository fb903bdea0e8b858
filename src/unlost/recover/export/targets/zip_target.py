"""A zip file as the target of an export."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from unlost import dates
from unlost.archives.bodies.body import iter_pieces
from unlost.recover.export.targets.packed_target import PackedTarget

_LEVEL = 6
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
