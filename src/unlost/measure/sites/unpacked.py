"""Compressed members that hold many records, unpacked once, so that no record is looked for from the beginning."""

import shutil
import tempfile
import threading
import weakref
import zlib
from pathlib import Path
from typing import IO

from unlost._core import WarcBody
from unlost.measure.sites.archive_parts import ArchiveFilePart

FAR_OFFSET = 1 << 20
"""Bytes of text before a record from which on it is worth it."""

_MAX_MEMBER_BYTES = (
    4 << 30
)  # of text on the disk, for one member; one that has more is read from its beginning each time
_MAX_CACHED_MEMBERS = 4  # members at a time
_INFLATE_CHUNK_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"


class InflatedMemberCache:
    """Opens records that lie far behind the beginning of their gzip member. May be used by several threads.

    The text of members is kept in temporary files until it goes itself.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._texts: dict[tuple[str, int], Path | None] = {}
        self._count = 0

    def open_record(self, part: ArchiveFilePart, offset: int, skip: int) -> WarcBody | None:
        """Return a record by where its member begins, and how much text comes before it in there.

        None if it is not to be had in this way: the member is no gzip, is too long, or is damaged before the record; or
        there is no room on the disk for it.
        """
        with self._lock:
            key = (part.name, offset)
            if key not in self._texts:
                if len(self._texts) >= _MAX_CACHED_MEMBERS:
                    self._forget(next(iter(self._texts)))
                self._texts[key] = self._unpack(part.path, part.start + offset)
            text = self._texts[key]
            # Opened under the lock: once it is open, it may lose its name.
            return None if text is None else WarcBody.open(text, skip)

    def _unpack(self, path: Path, start: int) -> Path | None:
        """Return the text of a member as a file, up to a damage if there is one."""
        with path.open("rb") as packed:
            packed.seek(start)
            if packed.read(len(_GZIP)) != _GZIP:
                return None
            packed.seek(start)
            try:
                if self._folder is None:
                    self._folder = Path(tempfile.mkdtemp(prefix="unlost-members-"))
                    weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
                self._count += 1
                file = self._folder / str(self._count)
                with file.open("wb") as text:
                    is_whole = _inflate_member(packed, text)
            except OSError:
                is_whole = False
        if is_whole:
            return file
        if self._folder is not None:
            (self._folder / str(self._count)).unlink(missing_ok=True)
        return None

    def _forget(self, key: tuple[str, int]) -> None:
        text = self._texts.pop(key)
        if text is not None:
            text.unlink(missing_ok=True)


def _inflate_member(packed: IO[bytes], text: IO[bytes]) -> bool:
    """Write the text of a gzip member; return whether it is short enough."""
    inflater = zlib.decompressobj(wbits=31)
    left = _MAX_MEMBER_BYTES
    while not inflater.eof and left > 0:
        data = inflater.unconsumed_tail or packed.read(_INFLATE_CHUNK_BYTES)
        if not data:
            break
        try:
            piece = inflater.decompress(data, 1 << 20)
        except zlib.error:
            break  # what comes before a damage is there, and the record may be in it
        left -= len(piece)
        text.write(piece)
    return left > 0
