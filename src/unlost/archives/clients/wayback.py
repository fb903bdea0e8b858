"""The Wayback Machine and archives like it: a CDX server that gives arrays and keys to go on, and raw replay."""

import asyncio
from collections.abc import AsyncIterator, Iterator

from unlost.archives import closeness
from unlost.archives.archive import Archive
from unlost.archives.asking.question import HttpResponse
from unlost.archives.clients.cdx_query import ROWS_PER_YIELD, build_query
from unlost.archives.clients.indexed import CdxArchiveClient
from unlost.archives.clients.json_rows import JsonRowReader
from unlost.archives.clients.listing import CdxRowParser
from unlost.archives.clients.statuses import has_content, names_exclusion
from unlost.archives.prefix import PrefixQuery
from unlost.archives.repository import FetchedCapture
from unlost.errors import ExcludedError, FailedError, ListCutError
from unlost.formats.capture import Capture
from unlost.formats.problems import Problems

_MAX_EMPTY_PAGES = 3  # in a row, each with a key to go on: more of them lead nowhere


class WaybackClient(CdxArchiveClient):
    """An archive with a Wayback CDX server."""

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Return the copy closest to a date. Raises UriError, DateError.

        The archive leads from any date to the closest one, without a question to its index. The true status of a
        redirect is in the index only, so it is not known here.
        """
        return await self._replay.fetch(uri, self._replay.raw_url(closeness.target_datetime(date), uri))

    async def last_capture_date(self, uri: str) -> str | None:
        """Return the date of the last row of the index."""
        page = PrefixQuery.for_page(uri)
        asked = build_query(self.archive, page, (None, None), limit="-1", fastLatest="true")
        listing = CdxRowParser(self.archive, page, (None, None), self.problems, f"{self.archive.id} cdx")
        reply = await self._client.send(self.archive, asked)
        with reply.body:
            rows = _WaybackPage(self.archive, reply, listing, self.problems)
            return max((capture.datetime for capture in rows if capture is not None), default=None)

    async def _list_captures(
        self, prefix: PrefixQuery, dates_asked: tuple[str | None, str | None]
    ) -> AsyncIterator[Capture]:
        """Yield what a query gives, page after page, each with the key that the one before ended with."""
        lister = self.archive.lister
        limit = int(lister.rows_per_page.value) if lister else None
        cap = int(lister.cap.value) if lister and lister.cap else None
        listing = CdxRowParser(self.archive, prefix, dates_asked, self.problems, f"{self.archive.id} cdx")
        keys: set[str] = set()
        more = {"showResumeKey": "true"} | ({"limit": str(limit)} if limit else {})
        empty = 0
        while True:
            fresh = listing.new_captures
            reply = await self._client.send(self.archive, build_query(self.archive, prefix, dates_asked, **more))
            with reply.body:
                page = _WaybackPage(self.archive, reply, listing, self.problems)
                for count, capture in enumerate(page):
                    if count % ROWS_PER_YIELD == 0:
                        await asyncio.sleep(0)
                    if capture is not None:
                        yield capture
            # A key leads on, also beyond the cap of one query. Who never gives one, and a full page, has cut the list.
            key = page.resume_key
            if key is None:
                if listing.rows == cap or (limit and not keys and listing.rows >= limit):
                    raise ListCutError(f"the list ends after {listing.rows} rows, and no key to go on", self.archive.id)
                return
            empty = 0 if listing.new_captures > fresh else empty + 1
            if key in keys or empty > _MAX_EMPTY_PAGES:
                raise FailedError("the list goes on without end, and gives nothing new", self.archive.id, "malformed")
            keys.add(key)
            more["resumeKey"] = key


class _WaybackPage:
    """One page of rows: an array of arrays, of which the first has the names of the fields.

    resume_key: what to ask the next page with; known once all rows were read, None if this is the last one.
    """

    def __init__(self, archive: Archive, response: HttpResponse, row_parser: CdxRowParser, problems: Problems) -> None:
        self._archive = archive
        self._response = response
        self._row_parser = row_parser
        self._rows = JsonRowReader(response.body, problems, f"{archive.id} cdx")
        self.resume_key: str | None = None

    def __iter__(self) -> Iterator[Capture | None]:
        """Yield a capture, or None, for every row. Raises ExcludedError, FailedError."""
        if not has_content(self._archive, self._response):
            return
        names: list[str] | None = None
        is_at_end = False
        for row in self._rows:
            if not row and not is_at_end:
                is_at_end = True
            elif names is None:
                names = self._header(row)
            elif is_at_end and len(row) == 1 and isinstance(row[0], str):
                self.resume_key = row[0]
            elif len(row) != len(names):
                self._row_parser.count_problem("bad-field-count")
                yield None
            else:
                yield self._row_parser.parse_row(dict(zip(names, row, strict=True)))
        if not self._rows.is_whole:
            self._fail()
        self._row_parser.check_readable(self._rows.bad_rows)

    def _header(self, row: list[object]) -> list[str]:
        names = [str(name) for name in row]
        if "timestamp" not in names or not {"original", "url"} & set(names):
            raise FailedError("expected the names of the fields in the first row", self._archive.id, "malformed")
        return names

    def _fail(self) -> None:
        if self._rows.is_list:
            raise FailedError("the list breaks off before its end", self._archive.id, "malformed")
        if names_exclusion(self._response):
            raise ExcludedError(f"{self._archive.name} does not show it", self._archive.id)
        raise FailedError("expected an array of rows in JSON, found other text", self._archive.id, "malformed")
