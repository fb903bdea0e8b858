"""Client for Common Crawl: a CDX index for each crawl, and single records of large WARC files by HTTP Range.

There is no index of all crawls, so crawls are queried one by one, those that may have the closest capture first. A
query without captures is a 404 with a JSON message; 503 asks to slow down. A record is one gzip member, so a range
request returns a complete record.
"""

import asyncio
import hashlib
import json
import re
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from unlost import dates
from unlost.archives import datetime_negotiation, warc_capture
from unlost.archives.base import FetchedCapture
from unlost.archives.cdx import ROW_DECODER, PrefixQuery, list_with_folder_page
from unlost.capture import Capture
from unlost.errors import ArchiveFileError, DateError, FailedError, ListCutError, UsageError
from unlost.http.models import HttpClient, HttpRequest, HttpResponse, iter_pieces
from unlost.index.cdx import NO_VALUE, IndexRow, RowError
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive, RequestKind
from unlost.text_lines import Line, read_stream_lines
from unlost.warc import reader
from unlost.warc.reader import StoredRecord

MAX_CRAWLS = 10_000
"""Largest number of crawls in a list. The public list has more than a hundred, and grows by one each month."""
MAX_INDEX_PAGES = 10_000
"""Maximum number of pages of one query that are requested. The server's pages have five blocks of 3,000 rows."""
MAX_RECORD_BYTES = 64 << 20
"""Largest compressed record. Common Crawl truncates bodies at 1 MiB, and has announced 5 MiB."""
_WEEKLY = re.compile(r"CC-MAIN-(\d{4})-(\d{2})", re.ASCII)
_YEARLY = re.compile(r"CC-MAIN-(\d{4})(?:-(\d{4}))?", re.ASCII)
# A crawl takes weeks, and its name contains one of them, so captures of weeks before and after may belong to it.
_CRAWL_MARGIN = timedelta(weeks=10)
_MAX_LIST_BYTES = 8 << 20  # of the list of crawls, which had 40 kB in 2026
_MAX_PAGE_BYTES = 64 << 20  # 15,000 rows of about 500 bytes are 8 MB
_MAX_MESSAGE_BYTES = 1 << 16
_FULL_PAGE_ROWS = 1_000  # a query for one URL with fewer rows has no second page
_BATCH_ROWS = 500
_MAX_BAD_ROWS = 1_000  # before a page fails whose rows are mostly invalid
_MAX_WHOLE_BYTES = 8 << 20  # of a WARC file from a server that ignores Range
_WARC_FILENAME = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*(?:/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*")
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(?:\d+|\*)", re.ASCII)


class CommonCrawlIndex(NamedTuple):
    """One crawl.

    Attributes:
        id: Such as `CC-MAIN-2024-10`.
        url: URL of its CDX server.
        first: Earliest possible date of its captures, 14 digits.
        last: Latest possible date of its captures, 14 digits.
    """

    id: str
    url: str
    first: str
    last: str

    def seconds_from(self, first: str, last: str) -> float:
        """Return the distance in seconds from a period; 0 if they overlap."""
        return datetime_negotiation.gap_seconds(self.first, self.last, first, last)


def parse_crawl_list(text: bytes, url: str) -> tuple[list[CommonCrawlIndex], int]:
    """Parse a `collinfo.json` into the crawls, newest first, and the number of skipped entries.

    Invalid entries are skipped, and so are entries whose CDX server is not on the host of the list, so that the list
    cannot direct requests elsewhere.

    Args:
        text: The JSON.
        url: URL of the list.

    Raises:
        ValueError: It is not a list of crawls.

    >>> text = b'[{"id": "CC-MAIN-2013-20", "cdx-api": "http://i.org/CC-MAIN-2013-20-index"}, {"id": "x"}]'
    >>> parse_crawl_list(text, "http://i.org/collinfo.json")
    ([CommonCrawlIndex(id='CC-MAIN-2013-20', url='http://i.org/CC-MAIN-2013-20-index', first='20130304...', ...)], 1)
    """
    entries = json.loads(text)
    if not isinstance(entries, list) or len(entries) > MAX_CRAWLS:
        raise ValueError(f"expected a list of at most {MAX_CRAWLS} crawls")
    crawls = [crawl for entry in entries if (crawl := _parse_crawl(entry, url)) is not None]
    # Sorted by date. The order of the list, newest first, is preserved for crawls without dates.
    return sorted(crawls, key=lambda crawl: crawl.last, reverse=True), len(entries) - len(crawls)


def _parse_crawl(entry: object, list_url: str) -> CommonCrawlIndex | None:
    if not isinstance(entry, dict):
        return None
    name, index = entry.get("id"), entry.get("cdx-api")
    if not isinstance(index, str) or _origin(index) != _origin(list_url):
        return None
    if not isinstance(name, str):
        name = index.rpartition("/")[2].removesuffix("-index")
    begin, end = _dates_from_name(name)
    return CommonCrawlIndex(name, index, _parse_iso(entry.get("from")) or begin, _parse_iso(entry.get("to")) or end)


def _origin(url: str) -> tuple[str, str] | None:
    """Return scheme and host of an http or https URL; None for others."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return (parts.scheme, parts.netloc) if parts.scheme in ("http", "https") else None


def _parse_iso(value: object) -> str | None:
    try:
        return dates.from_iso(value) if isinstance(value, str) else None
    except DateError:
        return None


def _dates_from_name(name: str) -> tuple[str, str]:
    """Return the earliest and latest date of a crawl, from the week or the years in its name."""
    if week := _WEEKLY.fullmatch(name):
        try:
            monday = datetime.fromisocalendar(int(week[1]), int(week[2]), 1).replace(tzinfo=UTC)
            return dates.from_datetime(monday - _CRAWL_MARGIN), dates.from_datetime(monday + _CRAWL_MARGIN)
        except (ValueError, OverflowError):
            pass
    if years := _YEARLY.fullmatch(name):
        return f"{years[1]}0101000000", f"{years[2] or years[1]}1231235959"
    return datetime_negotiation.ALL_TIME


class CommonCrawlIndexClient:
    """Queries the CDX servers of crawls.

    Args:
        archive: The archive's entry in the registry.
        client: Sends the requests.
        problems: Counts rows that could not be read, and those of pages that were not requested (`other-page`).
    """

    def __init__(self, archive: Archive, client: HttpClient, problems: Problems) -> None:
        self._archive = archive
        self._client = client
        self._problems = problems

    async def captures(
        self, crawl: CommonCrawlIndex, prefix: PrefixQuery, span: tuple[str, str]
    ) -> AsyncIterator[Capture]:
        """Yield the captures of a page or below a prefix in one crawl and period, in the server's order.

        Raises:
            ListCutError: The server has more pages than are read. Raised after the last capture.
            FailedError: A request failed.
            NotNowError: The archive must not be queried now.
        """
        async for capture in list_with_folder_page(prefix, lambda part: self._list_captures(crawl, part, span)):
            yield capture

    async def _list_captures(
        self, crawl: CommonCrawlIndex, prefix: PrefixQuery, span: tuple[str, str]
    ) -> AsyncIterator[Capture]:
        # Nearly all queries for one URL have a single page, so the number of pages is requested only if it is full.
        pages = 1 if prefix.match == "exact" else await self._count_pages(crawl, prefix, span)
        number, last_digest = 0, b""
        while number < min(pages, MAX_INDEX_PAGES):
            response = await self._query(crawl, prefix, span, page=str(number))
            if response is None:
                return
            rows = 0
            with response.body:
                digest = await asyncio.to_thread(_page_digest, response)
                if digest == last_digest and response.size:
                    message = f"{crawl.id}: page {number} repeats the one before it: what is on it is not known"
                    raise ListCutError(message, self._archive.id)
                last_digest = digest
                async for capture in self._rows(response, crawl):
                    rows += 1
                    if (
                        capture
                        and self._is_requested(capture, prefix, crawl)
                        and span[0] <= capture.datetime <= span[1]
                    ):
                        yield capture
            if number == 0 and prefix.match == "exact" and rows >= _FULL_PAGE_ROWS:
                pages = await self._count_pages(crawl, prefix, span)
            number += 1
        if pages > MAX_INDEX_PAGES:
            raise ListCutError(f"{crawl.id}: {pages} pages, of which {MAX_INDEX_PAGES} were read", self._archive.id)

    async def _count_pages(self, crawl: CommonCrawlIndex, prefix: PrefixQuery, span: tuple[str, str]) -> int:
        """Return the number of pages of a query; 1 for a server without paging, which returns all rows instead."""
        response = await self._query(crawl, prefix, span, showNumPages="true")
        if response is None:
            return 0
        with response.body:
            line = response.body.readline(_MAX_MESSAGE_BYTES)
        try:
            result = json.loads(line)
            pages = result.get("pages", 1 if "urlkey" in result else None) if isinstance(result, dict) else result
        except (ValueError, RecursionError):
            pages = None
        if isinstance(pages, bool) or not isinstance(pages, int) or pages < 0:
            raise self._failed_error(crawl, "expected how many pages there are, found something else", "malformed")
        return pages

    async def _query(
        self, crawl: CommonCrawlIndex, prefix: PrefixQuery, span: tuple[str, str], **more: str
    ) -> HttpResponse | None:
        """Return the response of the CDX server; None if there are no captures."""
        query = {"url": prefix.url, "matchType": prefix.match, "output": "json"}
        if span != datetime_negotiation.ALL_TIME:
            query |= {"from": span[0], "to": span[1]}
        url = f"{crawl.url}?{urlencode(query | more, errors='surrogateescape')}"
        response = await self._client.send(
            self._archive, HttpRequest(url, RequestKind.INDEX, max_bytes=_MAX_PAGE_BYTES)
        )
        if response.status == 200:
            return response
        with response.body:
            message = _server_message(response)
        if response.status == 404 and message is not None and "captures" in message.lower():
            return None
        detail = "" if message is None else f": {ascii(message)[1:-1][:120]}"
        raise self._failed_error(crawl, f"expected rows, found status {response.status}{detail}", "status")

    async def _rows(self, response: HttpResponse, crawl: CommonCrawlIndex) -> AsyncIterator[Capture | None]:
        """Yield the rows of a page; None for invalid ones, which are counted.

        Raises FailedError if all are invalid, or too many.
        """
        lines = read_stream_lines(response.body, self._problems, crawl.id)
        good = bad = 0
        while batch := await asyncio.to_thread(lambda: list(islice(lines, _BATCH_ROWS))):
            for capture in await asyncio.to_thread(self._parse_rows, batch, crawl):
                good, bad = good + (capture is not None), bad + (capture is None)
                yield capture
            if bad > max(good, _MAX_BAD_ROWS):
                break
        if bad > max(good, _MAX_BAD_ROWS) or (bad and not good):
            raise self._failed_error(crawl, "expected rows of JSON, found something else", "malformed")

    def _parse_rows(self, lines: list[Line], crawl: CommonCrawlIndex) -> list[Capture | None]:
        captures: list[Capture | None] = []
        for line in lines:
            if not line.text.strip():
                continue
            try:
                captures.append(_parse_row(line).to_capture())
            except RowError as error:
                self._problems.add(Problem(error.kind, crawl.id, line.number, line.offset, str(error)))
                captures.append(None)
        return captures

    def _is_requested(self, capture: Capture, prefix: PrefixQuery, crawl: CommonCrawlIndex) -> bool:
        if prefix.covers(capture.key):
            return True
        message = "expected rows of what was asked for, found another page's"
        self._problems.add(Problem("other-page", crawl.id, None, 0, message))
        return False

    def _failed_error(self, crawl: CommonCrawlIndex, message: str, kind: str) -> FailedError:
        return FailedError(f"{crawl.id}: {message}", self._archive.id, kind)


def _page_digest(response: HttpResponse) -> bytes:
    """Return a digest that identifies a page."""
    digest = hashlib.sha256()
    for piece in iter_pieces(response.body):
        digest.update(piece)
    response.body.seek(0)
    return digest.digest()


def _server_message(response: HttpResponse) -> str | None:
    """Return the message of a response without rows; None if it is not in the server's format."""
    try:
        answer = json.loads(response.body.read(_MAX_MESSAGE_BYTES))
    except (ValueError, RecursionError):
        return None
    message = (answer.get("message") or answer.get("error")) if isinstance(answer, dict) else None
    return message if isinstance(message, str) else None


def _parse_row(line: Line) -> IndexRow:
    """Parse a row. Raises RowError of kind `bad-json`."""
    try:
        text = line.text.decode("utf-8", "surrogateescape")
        values = ROW_DECODER.decode(text)
        if not isinstance(values, dict):
            raise RowError("bad-json", "expected an object, found something else")
        fields = {name: value for name, value in values.items() if isinstance(value, str) and value != NO_VALUE}
        "".join(fields.values()).encode("utf-8", "surrogateescape")  # fails for half of a surrogate pair
    except (ValueError, RecursionError) as error:
        raise RowError("bad-json", f"expected an object: {str(error)[:80]}") from None
    return IndexRow(fields.pop("urlkey", ""), fields.pop("timestamp", ""), fields, line.number, line.offset)


class CommonCrawlRecords:
    """Fetches single records of WARC files with range requests."""

    def __init__(self, archive: Archive, client: HttpClient) -> None:
        self._archive = archive
        self._client = client

    async def fetch_record(self, capture: Capture, filename: str, offset: int, length: int) -> StoredRecord | None:
        """Return the record of a capture; None if its file does not exist. Raises FailedError, NotNowError."""
        if not _WARC_FILENAME.fullmatch(filename) or length == 0:
            raise self._failed_error("expected the name of a WARC and a length, found something else", "malformed")
        if length > MAX_RECORD_BYTES:
            raise self._failed_error(
                f"expected a record of at most {MAX_RECORD_BYTES} bytes, found {length}", "too-large"
            )
        url = (self._archive.replay or "").replace("{filename}", quote(filename))
        headers = {"Range": f"bytes={offset}-{offset + length - 1}", "Accept-Encoding": "identity"}
        request = HttpRequest(url, RequestKind.REPLAY, headers, max(length, _MAX_WHOLE_BYTES))
        response = await self._client.send(self._archive, request)
        with response.body:
            if response.status in (404, 410):
                return None
            self._seek(response, offset, length)
            return await asyncio.to_thread(self._open_record, response, capture, length)

    def _seek(self, response: HttpResponse, offset: int, length: int) -> None:
        """Seek to the beginning of the record in a response. Raises FailedError if the response does not contain it."""
        if response.status == 200:
            if response.size < offset + length:
                raise self._failed_error("expected a part of a file, found another file", "malformed")
            response.body.seek(offset)
            return
        if response.status == 416:
            raise self._failed_error(f"its index says {offset}, and its file ends before that", "status")
        if response.status != 206:
            raise self._failed_error(f"expected a part of a file, found status {response.status}", "status")
        content_range = _CONTENT_RANGE.fullmatch((response.header("Content-Range") or "").strip())
        if content_range is None or int(content_range[1]) != offset or int(content_range[2]) > offset + length - 1:
            raise self._failed_error("expected the part of a file that was asked for, found another", "malformed")
        if response.size != int(content_range[2]) - offset + 1:
            raise self._failed_error("expected the part of a file that was asked for, found less", "reset")

    def _open_record(self, response: HttpResponse, capture: Capture, length: int) -> StoredRecord:
        """Return the record in a response. It stays readable after its temporary file is deleted."""
        with tempfile.NamedTemporaryFile(prefix="unlost-record-") as file:
            remaining = length
            while remaining and (piece := response.body.read(min(remaining, 1 << 16))):
                file.write(piece)
                remaining -= len(piece)
            file.flush()
            try:
                record = reader.open_warc_record(file.name, 0)
            except ArchiveFileError as error:
                message = "expected a record where the index has one, found something else"
                raise self._failed_error(message, "malformed") from error
        warc_capture.check_record_identity(record, capture, self._archive)
        return record

    def _failed_error(self, message: str, kind: str) -> FailedError:
        return FailedError(message, self._archive.id, kind)


class CommonCrawlClient:
    """Client for Common Crawl.

    `archive.cdx` is the URL of the list of crawls, `archive.replay` that of a WARC file, with `{filename}` in it.
    Captures have no URI-M: file, offset and length identify them.

    Args:
        archive: The archive's entry in the registry.
        client: Sends the requests.
        max_crawls: Number of crawls to query, the newest first; None for all. Each costs one request for a page, and at
            least two for a prefix. If crawls are skipped, lists end with ListCutError.

    Attributes:
        problems: Counts what could not be read in responses.
    """

    def __init__(self, archive: Archive, client: HttpClient, *, max_crawls: int | None = None) -> None:
        if archive.cdx is None or "{filename}" not in (archive.replay or ""):
            raise UsageError(f"{archive.id}: expected `cdx`, and `replay` with {{filename}} in it")
        self.archive = archive
        self.problems = Problems()
        self._client = client
        self._max_crawls = max_crawls
        self._index = CommonCrawlIndexClient(archive, client, self.problems)
        self._records = CommonCrawlRecords(archive, client)
        self._crawls: list[CommonCrawlIndex] | None = None
        self._crawls_lock = asyncio.Lock()

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield the captures of a URL, the newest crawl first. Raises UriError, ListCutError, FailedError."""
        async for capture in self._list_captures(PrefixQuery.for_page(uri), datetime_negotiation.ALL_TIME):
            yield capture

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield the captures below a prefix, the newest crawl first.

        Crawls at other times are not queried. Raises UriError, DateError, ListCutError, FailedError.
        """
        span = datetime_negotiation.pad_range(first, last)
        async for capture in self._list_captures(PrefixQuery.parse(prefix), span):
            yield capture

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Fetch a capture from the WARC file that it names; None if that file does not exist.

        If the capture does not name a file, fetches the closest capture to its date. Raises FailedError, of kind
        `foreign` if the record is of another URL or date.
        """
        if capture.filename is None or capture.offset is None or capture.length is None:
            return await self.get(capture.uri, capture.datetime)
        record = await self._fetch_record(capture)
        if record is None:
            return None
        if (record.header("WARC-Type") or "").lower() != "revisit":
            return await asyncio.to_thread(warc_capture.read_capture, record, capture, self.archive)
        original = await self._revisit_original(record)
        if original is None:
            message = "the record says `as before`, and what was before is not in its index"
            raise FailedError(message, self.archive.id, "malformed")
        fetched = await asyncio.to_thread(warc_capture.read_capture, *original, self.archive)
        return warc_capture.apply_revisit(record, capture, fetched)

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Fetch the capture closest to a date, or the last one. Queries crawls until none can have a closer capture.

        Raises UriError, DateError, FailedError, NotNowError.
        """
        best = await self._closest(uri, *datetime_negotiation.date_span(date), revisits=False)
        return None if best is None else await self.fetch(best)

    async def last_capture_date(self, uri: str) -> str | None:
        """Return the date of the last capture, 14 digits. Queries the newest crawls until one has a capture."""
        last = await self._closest(uri, *datetime_negotiation.date_span(None), revisits=True)
        return None if last is None else last.datetime

    async def list_crawls(self) -> list[CommonCrawlIndex]:
        """Return all crawls, newest first. The list is requested once. Raises FailedError, NotNowError."""
        async with self._crawls_lock:
            if self._crawls is None:
                self._crawls = await self._fetch_crawl_list()
        return self._crawls

    async def _fetch_crawl_list(self) -> list[CommonCrawlIndex]:
        url = self.archive.cdx or ""
        response = await self._client.send(self.archive, HttpRequest(url, RequestKind.INDEX, max_bytes=_MAX_LIST_BYTES))
        with response.body:
            if response.status != 200:
                message = f"expected the list of crawls, found status {response.status}"
                raise FailedError(message, self.archive.id, "status")
            try:
                crawls, skipped = parse_crawl_list(response.body.read(), url)
            except (ValueError, RecursionError):
                message = "expected the list of crawls, found something else"
                raise FailedError(message, self.archive.id, "malformed") from None
        if skipped:
            message = "expected a crawl with an index server at the host of the list"
            self.problems.add(Problem("bad-crawl", url, None, 0, message), skipped)
        return crawls

    async def _list_captures(self, prefix: PrefixQuery, span: tuple[str, str]) -> AsyncIterator[Capture]:
        crawls = [crawl for crawl in await self.list_crawls() if crawl.seconds_from(*span) == 0]
        selected = crawls[: self._max_crawls]
        cut = None
        for crawl in selected:
            try:
                async for capture in self._index.captures(crawl, prefix, span):
                    yield self._with_archive(capture)
            except ListCutError as error:
                cut = cut or error
        if cut is not None:
            raise cut
        if len(selected) < len(crawls):
            message = f"{len(selected)} of {len(crawls)} crawls were asked, as many as was said"
            raise ListCutError(message, self.archive.id)

    async def _closest(self, uri: str, first: str, last: str, *, revisits: bool) -> Capture | None:
        """Return the capture closest to a period, querying the crawls in the order of their distance to it."""
        page = PrefixQuery.for_page(uri)
        crawls = sorted(await self.list_crawls(), key=lambda crawl: crawl.seconds_from(first, last))
        closest, closest_rank = None, (float("inf"), 0.0)
        for crawl in crawls[: self._max_crawls]:
            if closest is not None and (crawl.seconds_from(first, last), -float(crawl.last)) > closest_rank:
                break  # this crawl and all further ones have only captures that are farther away
            async for capture in self._index.captures(crawl, page, datetime_negotiation.ALL_TIME):
                rank = datetime_negotiation.distance_rank(capture.datetime, first, last)
                if rank < closest_rank and (revisits or not capture.revisit):
                    closest, closest_rank = self._with_archive(capture), rank
        return closest

    async def _fetch_record(self, capture: Capture) -> StoredRecord | None:
        if capture.filename is None or capture.offset is None or capture.length is None:
            return None
        return await self._records.fetch_record(capture, capture.filename, capture.offset, capture.length)

    async def _revisit_original(self, revisit: StoredRecord) -> tuple[StoredRecord, Capture] | None:
        """Return the record to which a revisit refers, and its row of the index."""
        target = warc_capture.revisit_target(revisit)
        if target is None:
            return None
        url, moment = target
        capture = await self._closest(url, moment, moment, revisits=False)
        if capture is None or capture.datetime != moment:
            return None
        record = await self._fetch_record(capture)
        return None if record is None else (record, capture)

    def _with_archive(self, capture: Capture) -> Capture:
        return replace(capture, archive=self.archive.id, migrated=self.archive.is_migrated(capture.mime))
