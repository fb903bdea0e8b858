"""Clients for archives with a CDX server: Wayback, pywb, and servers whose dialect is detected.

Revisits have the status `-` and the type `warc/revisit` in an index; a filter by status would silently drop them, so
queries have no filters. `collapse` is not used either: it compares adjacent rows, also of different URLs.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

from unlost.archives import datetime_negotiation
from unlost.archives.base import FetchedCapture, has_content, names_exclusion
from unlost.archives.cdx import (
    ROW_DECODER,
    ROWS_PER_YIELD,
    CdxRowParser,
    JsonRowReader,
    PrefixQuery,
    build_query,
    list_with_folder_page,
    supported_prefix,
)
from unlost.archives.replay import ReplayClient
from unlost.capture import Capture
from unlost.errors import ExcludedError, FailedError, ListCutError
from unlost.http.models import HttpClient, HttpResponse
from unlost.problems import Problems
from unlost.registry.models import Archive
from unlost.text_lines import read_stream_lines

_MAX_EMPTY_PAGES = 3  # consecutive pages with a resume key but no new capture

# `fields`, because Arquivo.pt does not support `fl`. `is_fuzzy` marks rows of similar pages (pywb's fuzzy matching).
_PYWB_FIELDS = "urlkey,timestamp,url,mime,status,digest,length,redirect,is_fuzzy"

_MAX_WAYBACK_ROWS = 150_000  # the documented cap of a Wayback CDX query, after which a resume key continues the list
_BLANK = b"\xef\xbb\xbf \t\r\n"
_DETECTION_BYTES = 1 << 12  # contains the beginning of the first row


class CdxArchiveClient(ABC):
    """Client for an archive with a CDX server.

    Args:
        archive: The archive's entry in the registry.
        client: Sends the requests.
        problems: Counts rows that could not be read or were not requested, see `unlost.archives.cdx.ROW_PROBLEM_KINDS`.
        plain_headers: Whether replay returns original headers under their own names, as pywb does.
    """

    def __init__(
        self, archive: Archive, client: HttpClient, problems: Problems | None = None, *, plain_headers: bool = False
    ) -> None:
        self.archive = archive
        self.problems = Problems() if problems is None else problems
        self._client = client
        self._replay = ReplayClient(archive, client, self.problems, plain_headers=plain_headers)

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield all captures of a URL, including revisits. Raises UriError, and ListCutError after the last one."""
        async for capture in self._list_captures(PrefixQuery.for_page(uri), (None, None)):
            yield capture

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield all captures below a prefix, see `ArchiveClient.list_prefix`. Raises UriError and DateError, too."""
        date_range = datetime_negotiation.pad_bounds(first, last)
        query = supported_prefix(self.archive, prefix)
        async for capture in list_with_folder_page(query, lambda part: self._list_captures(part, date_range)):
            yield capture

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Fetch a capture as it was archived. Raises FailedError, ExcludedError."""
        return await self._replay.fetch(capture.uri, self._replay.raw_url(capture.datetime, capture.uri), capture)

    @abstractmethod
    def _list_captures(self, prefix: PrefixQuery, date_range: tuple[str | None, str | None]) -> AsyncIterator[Capture]:
        """Yield the captures of a query, over all its pages."""


class WaybackClient(CdxArchiveClient):
    """Client for an archive with a Wayback CDX server."""

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Fetch the capture closest to a date. Raises UriError, DateError.

        The archive redirects from any date to the closest capture, so that no CDX query is needed, whose rate limit is
        far lower than that of replay. The archive sends 302 for every captured redirect; the captured status is known
        only from the CDX server, and None here.
        """
        return await self._replay.fetch(uri, self._replay.raw_url(datetime_negotiation.target_datetime(date), uri))

    async def last_capture_date(self, uri: str) -> str | None:
        """Return the date of the last row of the index."""
        page = PrefixQuery.for_page(uri)
        request = build_query(self.archive, page, (None, None), limit="-1", fastLatest="true")
        row_parser = CdxRowParser(self.archive, page, (None, None), self.problems, f"{self.archive.id} cdx")
        response = await self._client.send(self.archive, request)
        with response.body:
            rows = _WaybackPage(self.archive, response, row_parser, self.problems)
            return max((capture.datetime for capture in rows if capture is not None), default=None)

    async def _list_captures(
        self, prefix: PrefixQuery, date_range: tuple[str | None, str | None]
    ) -> AsyncIterator[Capture]:
        """Yield the captures of a query, page by page.

        Pages continue with the resume key of the previous one. The parameters `page` and `pageSize` are not used:
        paged results omit recent captures, and pages may be empty after filtering.
        """
        lister = self.archive.lister
        limit = int(lister.rows_per_page.value) if lister else None
        cap = int(lister.cap.value) if lister and lister.cap else None
        row_parser = CdxRowParser(self.archive, prefix, date_range, self.problems, f"{self.archive.id} cdx")
        resume_keys: set[str] = set()
        more = {"showResumeKey": "true"} | ({"limit": str(limit)} if limit else {})
        empty_pages = 0
        while True:
            old_count = row_parser.new_captures
            response = await self._client.send(self.archive, build_query(self.archive, prefix, date_range, **more))
            with response.body:
                page = _WaybackPage(self.archive, response, row_parser, self.problems)
                for count, capture in enumerate(page):
                    if count % ROWS_PER_YIELD == 0:
                        await asyncio.sleep(0)
                    if capture is not None:
                        yield capture
            # A resume key continues the list beyond the cap of one query. A full page without a key is most likely cut:
            # a false alarm costs a query, a missed cut may cost half a site.
            resume_key = page.resume_key
            if resume_key is None:
                if row_parser.rows == cap or (limit and not resume_keys and row_parser.rows >= limit):
                    raise ListCutError(
                        f"the list ends after {row_parser.rows} rows, and no key to go on", self.archive.id
                    )
                return
            empty_pages = 0 if row_parser.new_captures > old_count else empty_pages + 1
            if resume_key in resume_keys or empty_pages > _MAX_EMPTY_PAGES:
                raise FailedError("the list goes on without end, and gives nothing new", self.archive.id, "malformed")
            resume_keys.add(resume_key)
            more["resumeKey"] = resume_key


class _WaybackPage:
    """One page of rows: an array of arrays. The first row has the names of the fields.

    With `showResumeKey=true`, an empty row and a row with the resume key follow the last capture.

    Attributes:
        resume_key: The key of the next page, known after all rows were read; None for the last page.
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
            self._raise_malformed()
        self._row_parser.check_readable(self._rows.bad_rows)

    def _header(self, row: list[object]) -> list[str]:
        names = [str(name) for name in row]
        if "timestamp" not in names or not {"original", "url"} & set(names):
            raise FailedError("expected the names of the fields in the first row", self._archive.id, "malformed")
        return names

    def _raise_malformed(self) -> None:
        if self._rows.is_list:
            raise FailedError("the list breaks off before its end", self._archive.id, "malformed")
        if names_exclusion(self._response):
            raise ExcludedError(f"{self._archive.name} does not show it", self._archive.id)
        raise FailedError("expected an array of rows in JSON, found other text", self._archive.id, "malformed")


class PywbClient(CdxArchiveClient):
    """Client for an archive with pywb's CDX server.

    pywb does not serve a capture that redirects to the page itself (the same SURT).
    """

    def __init__(self, archive: Archive, client: HttpClient, problems: Problems | None = None) -> None:
        super().__init__(archive, client, problems, plain_headers=True)

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Fetch the capture closest to a date; None if there are only similar pages. Raises UriError, DateError."""
        try:
            return await self._replay.fetch(uri, self._replay.raw_url(datetime_negotiation.target_datetime(date), uri))
        except FailedError as error:
            if error.kind != "foreign":
                raise
            # Fuzzy matching: pywb serves a page with another query if it does not have the requested one.
            return None

    async def last_capture_date(self, uri: str) -> str | None:
        """Return the date of the last row of the index."""
        page = PrefixQuery.for_page(uri)
        request = build_query(self.archive, page, (None, None), fields=_PYWB_FIELDS, sort="reverse", limit="1")
        row_parser = CdxRowParser(self.archive, page, (None, None), self.problems, f"{self.archive.id} cdx")
        response = await self._client.send(self.archive, request)
        with response.body:
            captures = self._page(response, row_parser)
            return max((capture.datetime for capture in captures if capture is not None), default=None)

    async def _list_captures(
        self, prefix: PrefixQuery, date_range: tuple[str | None, str | None]
    ) -> AsyncIterator[Capture]:
        """Yield the captures of one query. There is no paging: pywb ignores `page` and `showResumeKey`."""
        lister = self.archive.lister
        more = {"fields": _PYWB_FIELDS} | ({"limit": str(int(lister.rows_per_page.value))} if lister else {})
        row_parser = CdxRowParser(self.archive, prefix, date_range, self.problems, f"{self.archive.id} cdx")
        response = await self._client.send(self.archive, build_query(self.archive, prefix, date_range, **more))
        with response.body:
            for count, capture in enumerate(self._page(response, row_parser)):
                if count % ROWS_PER_YIELD == 0:
                    await asyncio.sleep(0)
                if capture is not None:
                    yield capture
        limits = [number.value for number in (lister.rows_per_page, lister.cap) if number] if lister else []
        if limits and row_parser.rows >= min(limits):
            raise ListCutError(
                f"the list ends after {row_parser.rows} rows, where the archive cuts it", self.archive.id
            )

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


class CdxServerClient:
    """Lists captures from a CDX server in one of two dialects.

    The Wayback CDX server returns one JSON array of arrays, pywb one JSON object per line. The dialect is detected with
    a query for a single row, before the first listing.

    Args:
        archive: The archive's entry in the registry.
        client: Sends the requests.
        problems: Counts rows that could not be read or were not requested, see `unlost.archives.cdx.ROW_PROBLEM_KINDS`.
    """

    def __init__(self, archive: Archive, client: HttpClient, problems: Problems) -> None:
        self._archive = archive
        self._http_client = client
        self._problems = problems
        self._client: CdxArchiveClient | None = None

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield all captures of a URL. Raises UriError, ListCutError, FailedError."""
        client = await self._detect_dialect(PrefixQuery.for_page(uri))
        async for capture in client.captures(uri):
            yield capture

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield all captures below a prefix, see `ArchiveClient.list_prefix`. Raises UriError, DateError, too."""
        client = await self._detect_dialect(supported_prefix(self._archive, prefix))
        async for capture in client.list_prefix(prefix, first, last):
            yield capture

    async def _detect_dialect(self, prefix: PrefixQuery) -> CdxArchiveClient:
        """Return the client for the server's dialect. Raises ExcludedError, FailedError."""
        if self._client is not None:
            return self._client
        response = await self._http_client.send(
            self._archive, build_query(self._archive, prefix, (None, None), limit="1")
        )
        with response.body:
            beginning = b""
            if has_content(self._archive, response):
                beginning = response.body.read(_DETECTION_BYTES).lstrip(_BLANK)
        pywb = PywbClient(self._archive, self._http_client, self._problems)
        if not beginning:  # no captures: the dialect is detected with the next query
            return pywb
        # Text in neither dialect is an error page, which the Wayback client reports.
        self._client = pywb if beginning.startswith(b"{") else self._wayback()
        return self._client

    def _wayback(self) -> WaybackClient:
        archive = self._archive
        if archive.lister is not None:
            rows = archive.lister.rows_per_page
            rows = replace(rows, value=min(rows.value, _MAX_WAYBACK_ROWS))
            archive = replace(archive, lister=replace(archive.lister, rows_per_page=rows))
        return WaybackClient(archive, self._http_client, self._problems)
