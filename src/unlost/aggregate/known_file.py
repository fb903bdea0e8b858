"""A map or a filter in a file of this machine, read again when the file has changed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from unlost.archives.archive import Archive
from unlost.archives.asking.question import Asks
from unlost.errors import InputError
from unlost.formats.problems import Problems
from unlost.formats.ukvs import UkvsReader
from unlost.formats.unread import unread
from unlost.holdings.filter import Filter
from unlost.holdings.map import Map

T = TypeVar("T")

PartKind = Literal["map", "filter"]
Read: TypeAlias = Map | Filter

_Mark: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """How maps and filters are read: beside the event loop, a few at a time.

    max_bytes: the largest map, uncompressed, or filter that is read.
    turns: who may read.
    """

    max_bytes: int
    turns: asyncio.Semaphore

    async def beside(self, work: Callable[[], T]) -> T:
        """Return what a function returns that takes its time, in a thread."""
        async with self.turns:
            return await asyncio.to_thread(work)

    def read(self, kind: PartKind, path: Path) -> Read:
        """Return a map or filter, whole and in memory, so that nobody can change it. Raises InputError."""
        try:
            if path.stat().st_size > self.max_bytes:
                raise InputError(f"{path}: more than {self.max_bytes} bytes")
        except OSError as error:
            raise unread(path, error) from error
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


class KnownFile:
    """A map or filter in a file.

    place: the file. what: what was last read from it, and is sound; None if nothing was.
    problem: why it could not be read when it was last tried; None if it could.
    """

    def __init__(self, place: str, kind: PartKind, reading: Reading) -> None:
        self.place = place
        self.kind = kind
        self.what: Read | None = None
        self.problem: str | None = None
        self._reading = reading
        self._mark: _Mark | None = None

    async def load(self) -> bool:
        """Read the file if it has changed, and return whether there is something new."""
        try:
            mark = await asyncio.to_thread(_mark, Path(self.place))
            if mark == self._mark:
                return False
            what, problem = await self._reading.beside(self._read)
            if await asyncio.to_thread(_mark, Path(self.place)) != mark:
                # Half a map denies the other half, and looks like a whole one. The next look will tell.
                self.problem = f"{self.place}: it changes while it is read: rename a whole one over it"
                return False
        except OSError as error:
            self._mark, self.problem = None, f"{self.place}: cannot be read: {error.strerror or error}"
            return False
        self.problem, self._mark = problem, mark  # what is broken is not read again until it changes
        self.what = what or self.what
        return what is not None

    def _read(self) -> tuple[Read | None, str | None]:
        try:
            return self._reading.read(self.kind, Path(self.place)), None
        except InputError as error:
            return None, str(error)

    async def refresh(self, archive: Archive, courier: Asks) -> bool:
        """Do the same: nobody has to be asked."""
        del archive, courier
        return await self.load()

    def forget(self) -> None:
        """Read it anew next time, since what was read turned out to be damaged."""
        self.what, self._mark = None, None


def _mark(path: Path) -> _Mark:
    """Return what changes with a file."""
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev
