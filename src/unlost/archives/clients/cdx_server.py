"""CDX servers of archives whose software is not known: the dialect is detected from the response."""

from collections.abc import AsyncIterator
from dataclasses import replace

from unlost.archives.archive import Archive
from unlost.archives.asking.question import HttpClient
from unlost.archives.clients.cdx_query import supported_prefix, build_query
from unlost.archives.clients.indexed import CdxArchiveClient
from unlost.archives.clients.pywb import PywbClient
from unlost.archives.clients.statuses import has_content
from unlost.archives.clients.wayback import WaybackClient
from unlost.archives.prefix import PrefixQuery
from unlost.formats.capture import Capture
from unlost.formats.problems import Problems

_MAX_WAYBACK_ROWS = 150_000  # the most that a Wayback CDX query gives; a resume key gets the rest
_BLANK = b"\xef\xbb\xbf \t\r\n"
_DETECTION_BYTES = 1 << 12  # bytes in which the first row begins


class CdxServerClient:
    """Lists captures from a CDX server that speaks one of two dialects.

    The Wayback CDX server returns one JSON array of arrays, pywb one JSON object per line (CDXJ without its key). One
    query for a single row tells which; it is sent once, before the first listing.

    problems: counts the rows that could not be read or were not requested (`listing.KINDS`).
    """

    def __init__(self, archive: Archive, client: HttpClient, problems: Problems) -> None:
        self._archive = archive
        self._http_client = client
        self._problems = problems
        self._client: CdxArchiveClient | None = None

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield all captures of one URL. Raises UriError, ListCutError, FailedError."""
        client = await self._detect_dialect(PrefixQuery.for_page(uri))
        async for capture in client.captures(uri):
            yield capture

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield all captures below a prefix, as `Repository` has it. Raises UriError, DateError, UnsupportedError."""
        client = await self._detect_dialect(supported_prefix(self._archive, prefix))
        async for capture in client.list_prefix(prefix, first, last):
            yield capture

    async def _detect_dialect(self, prefix: PrefixQuery) -> CdxArchiveClient:
        """Return the client for the dialect of this server. Raises ExcludedError, FailedError."""
        if self._client is not None:
            return self._client
        reply = await self._http_client.send(self._archive, build_query(self._archive, prefix, (None, None), limit="1"))
        with reply.body:
            beginning = b""
            if has_content(self._archive, reply):
                beginning = reply.body.read(_DETECTION_BYTES).lstrip(_BLANK)
        pywb = PywbClient(self._archive, self._http_client, self._problems)
        if not beginning:  # nothing is listed here: the next query may tell the dialect
            return pywb
        # Text in neither dialect is an error page, which the Wayback client names.
        self._client = pywb if beginning.startswith(b"{") else self._wayback()
        return self._client

    def _wayback(self) -> WaybackClient:
        archive = self._archive
        if archive.lister is not None:
            rows = archive.lister.rows_per_page
            rows = replace(rows, value=min(rows.value, _MAX_WAYBACK_ROWS))
            archive = replace(archive, lister=replace(archive.lister, rows_per_page=rows))
        return WaybackClient(archive, self._http_client, self._problems)
