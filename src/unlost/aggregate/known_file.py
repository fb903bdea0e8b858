"""A map or a filter in a file of this machine, read again when the file has changed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from unlost.archives.archive import Archive
from unlost.archives.asking.question import HttpClient
from unlost.errors import InputError
from unlost.formats.problems import Problems
from unlost.formats.ukvs import UkvsReader
from unlost.formats.unread import unreadable_error
from unlost.holdings.filter import Filter
from unlost.holdings.map import Map

T = TypeVar("T")

HoldingsKind = Literal["map", "filter"]
MapOrFilter: TypeAlias = Map | Filter

_FileStamp: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class HoldingsReader:
    """How maps and filters are read: beside the event loop, a few at a time.

    max_bytes: the largest map, uncompressed, or filter that is read.
    turns: who may read.
    """

    max_bytes: int
    semaphore: asyncio.Semaphore

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Return what a function returns that takes its time, in a thread."""
        async with self.semaphore:
            return await asyncio.to_thread(work)

    def read(self, kind: HoldingsKind, path: Path) -> MapOrFilter:
        """Return a map or filter, whole and in memory, so that nobody can change it. Raises InputError."""
        try:
            if path.stat().st_size > self.max_bytes:
                raise InputError(f"{path}: more than {self.max_bytes} bytes")
        except OSError as error:
            raise unreadable_error(path, error) from error
        if kind == "map":
            found = Map.load(path, self.max_bytes)
            if next(iter(UkvsReader(path, Problems())), None) is None:
                # It would deny every page; whoever holds nothing has no need of a map.
                raise InputError(f"{path}: a map without rows")
            return found
        pages = Filter.load(path)
        if damage := pages.check():
            raise InputError(f"{path}: {damage[0]}")
        if not pages.keys:
            raise InputError(f"{path}: a filter of nothing")
        return pages


class HoldingsFile:
    """A map or filter in a file.

    place: the file. what: what was last read from it, and is sound; None if nothing was.
    problem: why it could not be read when it was last tried; None if it could.
    """

    def __init__(self, path: str, kind: HoldingsKind, reader: HoldingsReader) -> None:
        self.path = path
        self.kind = kind
        self.value: MapOrFilter | None = None
        self.problem: str | None = None
        self._reader = reader
        self._stamp: _FileStamp | None = None

    async def load(self) -> bool:
        """Read the file if it has changed, and return whether there is something new."""
        try:
            mark = await asyncio.to_thread(_file_stamp, Path(self.path))
            if mark == self._stamp:
                return False
            what, problem = await self._reader.run_in_thread(self._read)
            if await asyncio.to_thread(_file_stamp, Path(self.path)) != mark:
                # Half a map denies the other half, and looks like a whole one. The next look will tell.
                self.problem = f"{self.path}: it changes while it is read: rename a whole one over it"
                return False
        except OSError as error:
            self._stamp, self.problem = None, f"{self.path}: cannot be read: {error.strerror or error}"
            return False
        self.problem, self._stamp = problem, mark  # what is broken is not read again until it changes
        self.value = what or self.value
        return what is not None

    def _read(self) -> tuple[MapOrFilter | None, str | None]:
        try:
            return self._reader.read(self.kind, Path(self.path)), None
        except InputError as error:
            return None, str(error)

    async def refresh(self, archive: Archive, client: HttpClient) -> bool:
        """Do the same: nobody has to be asked."""
        del archive, client
        return await self.load()

    def discard(self) -> None:
        """Read it anew next time, since what was read turned out to be damaged."""
        self.value, self._stamp = None, None


def _file_stamp(path: Path) -> _FileStamp:
    """Return what changes with a file."""
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev
