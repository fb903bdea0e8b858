"""Stored copies that are passed on: fetched by the client of the archive that listed them, and never as they came."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext

from unlost import uri as addresses
from unlost.archives.archive import Archive
from unlost.archives.asking.question import HttpClient
from unlost.archives.opening import create_client
from unlost.archives.repository import ArchiveClient, FetchedCapture
from unlost.errors import FailedError, UnsupportedError
from unlost.formats.capture import Capture
from unlost.formats.mementos import MementoTuple

_MAX_CONCURRENT = (
    32  # copies that are fetched or passed on at the same time: each may take a quarter of a gigabyte of disk
)
_FETCH_SECONDS = 60.0  # for one of them to be there, waiting for its turn included


class ReplaySource:
    """The copies of archives that are registered, and of no others."""

    def __init__(self, archives: Iterable[Archive], client: HttpClient) -> None:
        self._archives = {archive.id: archive for archive in archives}
        self._client = client
        self._archive_clients: dict[str, ArchiveClient] = {}
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT)

    @asynccontextmanager
    async def open_capture(self, uri: str, memento: MementoTuple) -> AsyncIterator[FetchedCapture | None]:
        """Yield a copy of a page, with its body, while the block lasts; None if the archive has none after all.

        Raises ArchiveError.
        """
        repository = self._archive_client(memento.archive)
        capture = Capture(uri, addresses.key(uri), memento.datetime, archive=memento.archive, urim=memento.uri)
        is_taken = False
        try:
            try:
                async with asyncio.timeout(_FETCH_SECONDS):
                    is_taken = await self._slots.acquire()
                    copy = await repository.fetch(capture)
            except TimeoutError:
                raise FailedError(f"no copy within {_FETCH_SECONDS:g} s", memento.archive, "timeout") from None
            with nullcontext() if copy is None else copy.body:
                yield copy
        finally:
            if is_taken:
                self._slots.release()

    def _archive_client(self, name: str) -> ArchiveClient:
        if name not in self._archive_clients:
            archive = self._archives.get(name)
            if archive is None:
                raise UnsupportedError("it is not in the registry", name)
            self._archive_clients[name] = create_client(archive, self._client)
        return self._archive_clients[name]
