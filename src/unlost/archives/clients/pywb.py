"""Archives that run pywb: a CDX server that gives one object a line, and raw replay."""

import asyncio
from collections.abc import AsyncIterator, Iterator

from unlost.archives import closeness
from unlost.archives.archive import Archive
from unlost.archives.asking.question import Asks, Reply
from unlost.archives.clients.cdx_query import ROWS_AT_ONCE, question
from unlost.archives.clients.indexed import IndexedArchive
from unlost.archives.clients.json_rows import DECODER
from unlost.archives.clients.listing import Listing
from unlost.archives.clients.statuses import holds_something
from unlost.archives.prefix import Prefix
from unlost.archives.repository import StoredCopy
from unlost.errors import FailedError, ListCutError
from unlost.formats.capture import Capture
from unlost.formats.lines import read_lines
from unlost.formats.problems import Problems

# `fields`, since Arquivo.pt does not know `fl`; `is_fuzzy` among them, or rows of similar pages could not be told.
_FIELDS = "urlkey,timestamp,url,mime,status,digest,length,redirect,is_fuzzy"


class PywbArchive(IndexedArchive):
    """An archive with pywb's CDX server. Of a page that redirects to itself it gives no copy."""

    def __init__(self, archive: Archive, courier: Asks, problems: Problems | None = None) -> None:
        super().__init__(archive, courier, problems, plain_headers=True)

    async def get(self, uri: str, date: str | None = None) -> StoredCopy | None:
        """Return the copy closest to a date; None also if it has only similar pages. Raises UriError, DateError."""
        try:
            return await self._replay.copy(uri, self._replay.raw(closeness.moment(date), uri))
        except FailedError as error:
            if error.kind != "foreign":
                raise
            # It shows a page with other numbers in its query where it does not have the one that was asked for.
            return None

    async def crawl_date(self, uri: str) -> str | None:
        """Return the date of the last row of the index."""
        page = Prefix.page(uri)
        asked = question(self.archive, page, (None, None), fields=_FIELDS, sort="reverse", limit="1")
        listing = Listing(self.archive, page, (None, None), self.problems, f"{self.archive.id} cdx")
        reply = await self._courier.ask(self.archive, asked)
        with reply.body:
            captures = self._page(reply, listing)
            return max((capture.datetime for capture in captures if capture is not None), default=None)

    async def _listed(self, prefix: Prefix, dates_asked: tuple[str | None, str | None]) -> AsyncIterator[Capture]:
        """Yield what one query gives. There is no second page: pywb gives the first one again if it is asked for it."""
        lister = self.archive.lister
        more = {"fields": _FIELDS} | ({"limit": str(int(lister.rows_per_page.value))} if lister else {})
        listing = Listing(self.archive, prefix, dates_asked, self.problems, f"{self.archive.id} cdx")
        reply = await self._courier.ask(self.archive, question(self.archive, prefix, dates_asked, **more))
        with reply.body:
            for count, capture in enumerate(self._page(reply, listing)):
                if count % ROWS_AT_ONCE == 0:
                    await asyncio.sleep(0)
                if capture is not None:
                    yield capture
        ends = [figure.value for figure in (lister.rows_per_page, lister.cap) if figure] if lister else []
        if ends and listing.rows >= min(ends):
            raise ListCutError(f"the list ends after {listing.rows} rows, where the archive cuts it", self.archive.id)

    def _page(self, reply: Reply, listing: Listing) -> Iterator[Capture | None]:
        """Yield a capture, or None, for every row. Raises ExcludedError, FailedError."""
        if not holds_something(self.archive, reply):
            return
        is_first = True
        for line in read_lines(reply.body, self.problems, f"{self.archive.id} cdx"):
            text = line.text.strip()
            if not text:
                continue
            if is_first and not text.startswith(b"{"):
                raise FailedError("expected an object a line in JSON, found other text", self.archive.id, "malformed")
            is_first = False
            yield self._row(text, listing)
        listing.check()

    def _row(self, text: bytes, listing: Listing) -> Capture | None:
        try:
            row = DECODER.decode(text.decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            listing.count("bad-json")
            return None
        if row.pop("is_fuzzy", None) not in (None, "", "0"):
            listing.count("fuzzy")
            return None
        return listing.capture(row)
