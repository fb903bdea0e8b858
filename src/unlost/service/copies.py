"""Stored copies that are passed on: fetched by the client of the archive that listed them, and never as they came."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext

from unlost import uri as addresses
from unlost.archives.archive import Archive
from unlost.archives.asking.question import Asks
from unlost.archives.opening import open_repository
from unlost.archives.repository import Repository, StoredCopy
from unlost.errors import FailedError, UnsupportedError
from unlost.formats.capture import Capture
from unlost.formats.mementos import Memento

_AT_ONCE = 32  # copies that are fetched or passed on at the same time: each may take a quarter of a gigabyte of disk
_SECONDS = 60.0  # for one of them to be there, waiting for its turn included


class Copies:
    """The copies of archives that are registered, and of no others."""

    def __init__(self, archives: Iterable[Archive], courier: Asks) -> None:
        self._archives = {archive.id: archive for archive in archives}
        self._courier = courier
        self._repositories: dict[str, Repository] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    @asynccontextmanager
    async def fetched(self, uri: str, memento: Memento) -> AsyncIterator[StoredCopy | None]:
        """Yield a copy of a page, with its body, while the block lasts; None if the archive has none after all.

        Raises ArchiveError.
        """
        repository = self._repository(memento.archive)
        capture = Capture(uri, addresses.key(uri), memento.datetime, archive=memento.archive, urim=memento.uri)
        is_taken = False
        try:
            try:
                async with asyncio.timeout(_SECONDS):
                    is_taken = await self._turns.acquire()
                    copy = await repository.fetch(capture)
            except TimeoutError:
                raise FailedError(f"no copy within {_SECONDS:g} s", memento.archive, "timeout") from None
            with nullcontext() if copy is None else copy.body:
                yield copy
        finally:
            if is_taken:
                self._turns.release()

    def _repository(self, name: str) -> Repository:
        if name not in self._repositories:
            archive = self._archives.get(name)
            if archive is None:
                raise UnsupportedError("it is not in the registry", name)
            self._repositories[name] = open_repository(archive, self._courier)
        return self._repositories[name]
