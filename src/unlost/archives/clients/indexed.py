"""What archives with an index server have in common: lists come from it, copies from raw replay."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

from unlost.archives import closeness
from unlost.archives.archive import Archive
from unlost.archives.asking.question import HttpClient
from unlost.archives.clients.below import list_with_folder_page
from unlost.archives.clients.cdx_query import supported_prefix
from unlost.archives.clients.replay import ReplayClient
from unlost.archives.prefix import PrefixQuery
from unlost.archives.repository import FetchedCapture
from unlost.formats.capture import Capture
from unlost.formats.problems import Problems


class CdxArchiveClient(ABC):
    """An archive with an index server.

    plain_headers: whether replay gives original headers under their own names.
    problems: counts the rows that could not be read or were not requested (`listing.KINDS`).
    """

    def __init__(
        self, archive: Archive, client: HttpClient, problems: Problems | None = None, *, plain_headers: bool = False
    ) -> None:
        self.archive = archive
        self.problems = Problems() if problems is None else problems
        self._client = client
        self._replay = ReplayClient(archive, client, self.problems, plain_headers=plain_headers)

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield all captures of one address, revisits too. Raises UriError, ListCutError at the end of a cut list."""
        async for capture in self._list_captures(PrefixQuery.for_page(uri), (None, None)):
            yield capture

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield all captures below a prefix, as `Repository` has it. Raises UriError, DateError besides."""
        dates_asked = closeness.pad_bounds(first, last)
        below = supported_prefix(self.archive, prefix)
        async for capture in list_with_folder_page(below, lambda part: self._list_captures(part, dates_asked)):
            yield capture

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Return a copy as it was captured. Raises FailedError, ExcludedError."""
        return await self._replay.fetch(capture.uri, self._replay.raw_url(capture.datetime, capture.uri), capture)

    @abstractmethod
    def _list_captures(self, prefix: PrefixQuery, dates_asked: tuple[str | None, str | None]) -> AsyncIterator[Capture]:
        """Yield what a query gives, over all pages that there are."""
