"""The WARCs of one piece of work: numbered files in a folder, of which one is open at a time."""

from collections.abc import Iterator

from unlost import dates
from unlost.clock import Clock
from unlost.formats.warc_writing.file import WarcSegment
from unlost.formats.warc_writing.folder import WarcFolder, segment_name, segment_number
from unlost.formats.warc_writing.members import compress_member
from unlost.formats.warc_writing.records import format_warcinfo

_GZIP_OVERHEAD_BYTES = 1 << 13  # bytes: more than gzip adds to what it cannot make smaller, beside one in a thousand


class WarcSegments:
    """Files `unlost-00001.warc.gz`, … to append to; each begins with a record that says who wrote it.

    software: who writes. max_bytes: how large a file may grow; one that has a single copy may be larger.

    Everything it raises is an InputError; a call that raises has kept nothing.
    """

    def __init__(self, folder: WarcFolder, clock: Clock, software: str, max_bytes: int) -> None:
        self._folder = folder
        self._clock = clock
        self._software = software
        self._max_bytes = max_bytes
        self._open_segment: WarcSegment | None = None
        self._last_number = 0

    def skip_to(self, name: str) -> None:
        """Say that a file is there: what is written from now on comes behind it."""
        self._last_number = segment_number(name) or 0

    def resume(self, name: str, size: int, *, has_captures: bool) -> int:
        """Write a file further that is not ended, behind so many whole bytes; return how many were cut off.

        has_copies: whether it has a copy already, and not only its first record.
        """
        self.close()  # only the last one is written further
        self.skip_to(name)
        self._open_segment = WarcSegment(self._folder, name, size, has_captures=has_captures)
        return self._open_segment.truncate_torn()

    def append(self, pieces: Iterator[bytes], size: int) -> tuple[str, int, int]:
        """Append members as one; return the name of the file, where in it they begin, and their size, in bytes.

        size: of their texts, about.
        """
        file = self._segment_for(size + (size >> 10) + _GZIP_OVERHEAD_BYTES)
        offset = file.size
        file.append(pieces)
        file.has_captures = True
        return file.name, offset, file.size - offset

    def now(self) -> str:
        """Return the time, 14 digits."""
        return dates.from_epoch(str(int(self._clock.now())))

    def _segment_for(self, size: int) -> WarcSegment:
        """Return the file that so many bytes go to, with its first record in it."""
        file = self._open_segment
        if file is not None and file.has_captures and file.size + size > self._max_bytes:
            self.close()
            file = None
        if file is None:
            file = self._open_segment = WarcSegment(self._folder, segment_name(self._last_number + 1))
            self._last_number += 1
        if file.size == 0:
            info = format_warcinfo(file.name, self._software, self.now())
            file.append(compress_member([info], len(info)))
        return file

    def sync(self) -> None:
        """Return when everything that was appended is on the disk."""
        if self._open_segment is not None:
            self._open_segment.sync()

    def close(self) -> None:
        """End the open file: it gets its final name. What is appended next would begin another one."""
        file, self._open_segment = self._open_segment, None
        if file is not None:
            file.finalize()
