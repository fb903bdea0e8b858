"""The WARCs of one piece of work: numbered files in a folder, of which one is open at a time."""

from collections.abc import Iterator

from unlost import dates
from unlost.clock import Clock
from unlost.formats.warc_writing.file import WarcFile
from unlost.formats.warc_writing.folder import WarcFolder, name_of, number_of
from unlost.formats.warc_writing.members import packed
from unlost.formats.warc_writing.records import warcinfo

_OVERHEAD = 1 << 13  # bytes: more than gzip adds to what it cannot make smaller, beside one in a thousand


class Volumes:
    """Files `unlost-00001.warc.gz`, … to append to; each begins with a record that says who wrote it.

    software: who writes. max_bytes: how large a file may grow; one that has a single copy may be larger.

    Everything it raises is an InputError; a call that raises has kept nothing.
    """

    def __init__(self, folder: WarcFolder, clock: Clock, software: str, max_bytes: int) -> None:
        self._folder = folder
        self._clock = clock
        self._software = software
        self._max_bytes = max_bytes
        self._writing: WarcFile | None = None
        self._last = 0

    def pass_by(self, name: str) -> None:
        """Say that a file is there: what is written from now on comes behind it."""
        self._last = number_of(name) or 0

    def go_on(self, name: str, size: int, *, has_copies: bool) -> int:
        """Write a file further that is not ended, behind so many whole bytes; return how many were cut off.

        has_copies: whether it has a copy already, and not only its first record.
        """
        self.close()  # only the last one is written further
        self.pass_by(name)
        self._writing = WarcFile(self._folder, name, size, has_copies=has_copies)
        return self._writing.mend()

    def append(self, pieces: Iterator[bytes], size: int) -> tuple[str, int, int]:
        """Append members as one; return the name of the file, where in it they begin, and their size, in bytes.

        size: of their texts, about.
        """
        file = self._file_for(size + (size >> 10) + _OVERHEAD)
        offset = file.size
        file.append(pieces)
        file.has_copies = True
        return file.name, offset, file.size - offset

    def now(self) -> str:
        """Return the time, 14 digits."""
        return dates.from_epoch(str(int(self._clock.now())))

    def _file_for(self, size: int) -> WarcFile:
        """Return the file that so many bytes go to, with its first record in it."""
        file = self._writing
        if file is not None and file.has_copies and file.size + size > self._max_bytes:
            self.close()
            file = None
        if file is None:
            file = self._writing = WarcFile(self._folder, name_of(self._last + 1))
            self._last += 1
        if file.size == 0:
            info = warcinfo(file.name, self._software, self.now())
            file.append(packed([info], len(info)))
        return file

    def sync(self) -> None:
        """Return when everything that was appended is on the disk."""
        if self._writing is not None:
            self._writing.sync()

    def close(self) -> None:
        """End the open file: it gets its final name. What is appended next would begin another one."""
        file, self._writing = self._writing, None
        if file is not None:
            file.end()
