"""What archives with an index server have in common: lists come from it, copies from raw replay."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

from unlost.archives import closeness
from unlost.archives.archive import Archive
from unlost.archives.asking.question import Asks
from unlost.archives.clients.below import listed_below
from unlost.archives.clients.cdx_query import listed_prefix
from unlost.archives.clients.replay import Replay
from unlost.archives.prefix import Prefix
from unlost.archives.repository import StoredCopy
from unlost.formats.capture import Capture
from unlost.formats.problems import Problems


class IndexedArchive(ABC):
    """An archive with an index server.

    plain_headers: whether replay gives original headers under their own names.
    problems: counts the rows that could not be read or were not requested (`listing.KINDS`).
    """

    def __init__(
        self, archive: Archive, courier: Asks, problems: Problems | None = None, *, plain_headers: bool = False
    ) -> None:
        self.archive = archive
        self.problems = Problems() if problems is None else problems
        self._courier = courier
        self._replay = Replay(archive, courier, self.problems, plain_headers=plain_headers)

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield all captures of one address, revisits too. Raises UriError, ListCutError at the end of a cut list."""
        async for capture in self._listed(Prefix.page(uri), (None, None)):
            yield capture

    async def under(self, prefix: str, first: str | None = None, last: str | None = None) -> AsyncIterator[Capture]:
        """Yield all captures below a prefix, as `Repository` has it. Raises UriError, DateError besides."""
        dates_asked = closeness.bounds(first, last)
        below = listed_prefix(self.archive, prefix)
        async for capture in listed_below(below, lambda part: self._listed(part, dates_asked)):
            yield capture

    async def fetch(self, capture: Capture) -> StoredCopy | None:
        """Return a copy as it was captured. Raises FailedError, ExcludedError."""
        return await self._replay.copy(capture.uri, self._replay.raw(capture.datetime, capture.uri), capture)

    @abstractmethod
    def _listed(self, prefix: Prefix, dates_asked: tuple[str | None, str | None]) -> AsyncIterator[Capture]:
        """Yield what a query gives, over all pages that there are."""
