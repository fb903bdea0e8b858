"""Archives that run pywb: a CDX server that gives one object a line, and raw replay."""

import asyncio
from collections.abc import AsyncIterator, Iterator

from unlost.archives import closeness
from unlost.archives.archive import Archive
from unlost.archives.asking.question import HttpClient, HttpResponse
from unlost.archives.clients.cdx_query import ROWS_PER_YIELD, build_query
from unlost.archives.clients.indexed import CdxArchiveClient
from unlost.archives.clients.json_rows import ROW_DECODER
from unlost.archives.clients.listing import CdxRowParser
from unlost.archives.clients.statuses import has_content
from unlost.archives.prefix import PrefixQuery
from unlost.archives.repository import FetchedCapture
from unlost.errors import FailedError, ListCutError
from unlost.formats.capture import Capture
from unlost.formats.lines import read_stream_lines
from unlost.formats.problems import Problems

# `fields`, since Arquivo.pt does not know `fl`; `is_fuzzy` among them, or rows of similar pages could not be told.
_PYWB_FIELDS = "urlkey,timestamp,url,mime,status,digest,length,redirect,is_fuzzy"


class PywbClient(CdxArchiveClient):
    """An archive with pywb's CDX server. Of a page that redirects to itself it gives no copy."""

    def __init__(self, archive: Archive, client: HttpClient, problems: Problems | None = None) -> None:
        super().__init__(archive, client, problems, plain_headers=True)

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Return the copy closest to a date; None also if it has only similar pages. Raises UriError, DateError."""
        try:
            return await self._replay.fetch(uri, self._replay.raw_url(closeness.target_datetime(date), uri))
        except FailedError as error:
            if error.kind != "foreign":
                raise
            # It shows a page with other numbers in its query where it does not have the one that was asked for.
            return None

    async def last_capture_date(self, uri: str) -> str | None:
        """Return the date of the last row of the index."""
        page = PrefixQuery.for_page(uri)
        asked = build_query(self.archive, page, (None, None), fields=_PYWB_FIELDS, sort="reverse", limit="1")
        listing = CdxRowParser(self.archive, page, (None, None), self.problems, f"{self.archive.id} cdx")
        reply = await self._client.send(self.archive, asked)
        with reply.body:
            captures = self._page(reply, listing)
            return max((capture.datetime for capture in captures if capture is not None), default=None)

    async def _list_captures(
        self, prefix: PrefixQuery, dates_asked: tuple[str | None, str | None]
    ) -> AsyncIterator[Capture]:
        """Yield what one query gives. There is no second page: pywb gives the first one again if it is asked for it."""
        lister = self.archive.lister
        more = {"fields": _PYWB_FIELDS} | ({"limit": str(int(lister.rows_per_page.value))} if lister else {})
        listing = CdxRowParser(self.archive, prefix, dates_asked, self.problems, f"{self.archive.id} cdx")
        reply = await self._client.send(self.archive, build_query(self.archive, prefix, dates_asked, **more))
        with reply.body:
            for count, capture in enumerate(self._page(reply, listing)):
                if count % ROWS_PER_YIELD == 0:
                    await asyncio.sleep(0)
                if capture is not None:
                    yield capture
        ends = [figure.value for figure in (lister.rows_per_page, lister.cap) if figure] if lister else []
        if ends and listing.rows >= min(ends):
            raise ListCutError(f"the list ends after {listing.rows} rows, where the archive cuts it", self.archive.id)

    def _page(self, response: HttpResponse, row_parser: CdxRowParser) -> Iterator[Capture | None]:
        """Yield a capture, or None, for every row. Raises ExcludedError, FailedError."""
        if not has_content(self.archive, response):
            return
        is_first = True
        for line in read_stream_lines(response.body, self.problems, f"{self.archive.id} cdx"):
            text = line.text.strip()
            if not text:
                continue
            if is_first and not text.startswith(b"{"):
                raise FailedError("expected an object a line in JSON, found other text", self.archive.id, "malformed")
            is_first = False
            yield self._row(text, row_parser)
        row_parser.check_readable()

    def _row(self, text: bytes, row_parser: CdxRowParser) -> Capture | None:
        try:
            row = ROW_DECODER.decode(text.decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            row_parser.count_problem("bad-json")
            return None
        if row.pop("is_fuzzy", None) not in (None, "", "0"):
            row_parser.count_problem("fuzzy")
            return None
        return row_parser.parse_row(row)
