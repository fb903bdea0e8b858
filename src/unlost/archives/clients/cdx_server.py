"""CDX servers of archives whose software is not known: the dialect is detected from the response."""

from collections.abc import AsyncIterator
from dataclasses import replace

from unlost.archives.archive import Archive
from unlost.archives.asking.question import Asks
from unlost.archives.clients.cdx_query import listed_prefix, question
from unlost.archives.clients.indexed import IndexedArchive
from unlost.archives.clients.pywb import PywbArchive
from unlost.archives.clients.statuses import holds_something
from unlost.archives.clients.wayback import WaybackArchive
from unlost.archives.prefix import Prefix
from unlost.formats.capture import Capture
from unlost.formats.problems import Problems

_WAYBACK_ROWS = 150_000  # the most that a Wayback CDX query gives; a resume key gets the rest
_BLANK = b"\xef\xbb\xbf \t\r\n"
_BEGINNING = 1 << 12  # bytes in which the first row begins


class CdxServer:
    """Lists captures from a CDX server that speaks one of two dialects.

    The Wayback CDX server returns one JSON array of arrays, pywb one JSON object per line (CDXJ without its key). One
    query for a single row tells which; it is sent once, before the first listing.

    problems: counts the rows that could not be read or were not requested (`listing.KINDS`).
    """

    def __init__(self, archive: Archive, courier: Asks, problems: Problems) -> None:
        self._archive = archive
        self._courier = courier
        self._problems = problems
        self._client: IndexedArchive | None = None

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield all captures of one URL. Raises UriError, ListCutError, FailedError."""
        client = await self._detected(Prefix.page(uri))
        async for capture in client.captures(uri):
            yield capture

    async def under(self, prefix: str, first: str | None = None, last: str | None = None) -> AsyncIterator[Capture]:
        """Yield all captures below a prefix, as `Repository` has it. Raises UriError, DateError, UnsupportedError."""
        client = await self._detected(listed_prefix(self._archive, prefix))
        async for capture in client.under(prefix, first, last):
            yield capture

    async def _detected(self, prefix: Prefix) -> IndexedArchive:
        """Return the client for the dialect of this server. Raises ExcludedError, FailedError."""
        if self._client is not None:
            return self._client
        reply = await self._courier.ask(self._archive, question(self._archive, prefix, (None, None), limit="1"))
        with reply.body:
            beginning = b""
            if holds_something(self._archive, reply):
                beginning = reply.body.read(_BEGINNING).lstrip(_BLANK)
        pywb = PywbArchive(self._archive, self._courier, self._problems)
        if not beginning:  # nothing is listed here: the next query may tell the dialect
            return pywb
        # Text in neither dialect is an error page, which the Wayback client names.
        self._client = pywb if beginning.startswith(b"{") else self._wayback()
        return self._client

    def _wayback(self) -> WaybackArchive:
        archive = self._archive
        if archive.lister is not None:
            rows = archive.lister.rows_per_page
            rows = replace(rows, value=min(rows.value, _WAYBACK_ROWS))
            archive = replace(archive, lister=replace(archive.lister, rows_per_page=rows))
        return WaybackArchive(archive, self._courier, self._problems)
