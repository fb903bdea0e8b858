"""Clients for archives with a CDX server: Wayback, pywb, and servers whose dialect is detected."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

from unlost.archives import datetime_negotiation
from unlost.archives.base import FetchedCapture, has_content, names_exclusion
from unlost.archives.cdx import ROW_DECODER, ROWS_PER_YIELD, CdxRowParser, JsonRowReader, build_query, supported_prefix
from unlost.archives.prefix_query import PrefixQuery, list_with_folder_page
from unlost.archives.replay import ReplayClient
from unlost.capture import Capture
from unlost.errors import ExcludedError, FailedError, ListCutError
from unlost.http.models import HttpClient, HttpResponse
from unlost.problems import Problems
from unlost.registry.models import Archive
from unlost.text_lines import read_stream_lines


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
        dates_asked = datetime_negotiation.pad_bounds(first, last)
        below = supported_prefix(self.archive, prefix)
        async for capture in list_with_folder_page(below, lambda part: self._list_captures(part, dates_asked)):
            yield capture

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Return a copy as it was captured. Raises FailedError, ExcludedError."""
        return await self._replay.fetch(capture.uri, self._replay.raw_url(capture.datetime, capture.uri), capture)

    @abstractmethod
    def _list_captures(self, prefix: PrefixQuery, dates_asked: tuple[str | None, str | None]) -> AsyncIterator[Capture]:
        """Yield what a query gives, over all pages that there are."""


_MAX_EMPTY_PAGES = 3  # in a row, each with a key to go on: more of them lead nowhere


class WaybackClient(CdxArchiveClient):
    """An archive with a Wayback CDX server."""

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Return the copy closest to a date. Raises UriError, DateError.

        The archive leads from any date to the closest one, without a question to its index. The true status of a
        redirect is in the index only, so it is not known here.
        """
        return await self._replay.fetch(uri, self._replay.raw_url(datetime_negotiation.target_datetime(date), uri))

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


# `fields`, since Arquivo.pt does not know `fl`; `is_fuzzy` among them, or rows of similar pages could not be told.
_PYWB_FIELDS = "urlkey,timestamp,url,mime,status,digest,length,redirect,is_fuzzy"


class PywbClient(CdxArchiveClient):
    """An archive with pywb's CDX server. Of a page that redirects to itself it gives no copy."""

    def __init__(self, archive: Archive, client: HttpClient, problems: Problems | None = None) -> None:
        super().__init__(archive, client, problems, plain_headers=True)

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Return the copy closest to a date; None also if it has only similar pages. Raises UriError, DateError."""
        try:
            return await self._replay.fetch(uri, self._replay.raw_url(datetime_negotiation.target_datetime(date), uri))
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
