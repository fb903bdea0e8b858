"""Common Crawl: a CDX index for each crawl, and single records of large WARCs by HTTP Range."""

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
from unlost.archives.cdx import ROW_DECODER
from unlost.archives.prefix_query import PrefixQuery, list_with_folder_page
from unlost.capture import Capture
from unlost.errors import ArchiveFileError, DateError, FailedError, ListCutError, UsageError
from unlost.http.body import iter_pieces
from unlost.http.models import HttpClient, HttpRequest, HttpResponse
from unlost.index.cdx import NO_VALUE, IndexRow, RowError
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive, RequestKind
from unlost.text_lines import Line, read_stream_lines
from unlost.warc import reader
from unlost.warc.reader import StoredRecord

MAX_CRAWLS = 10_000
"""What a list may have; the public one has more than a hundred, and gets one more each month."""
_WEEKLY = re.compile(r"CC-MAIN-(\d{4})-(\d{2})", re.ASCII)
_YEARLY = re.compile(r"CC-MAIN-(\d{4})(?:-(\d{4}))?", re.ASCII)
# A crawl takes weeks, and its name has one of them: those before and after it may belong to it, too.
_CRAWL_MARGIN = timedelta(weeks=10)


class CommonCrawlIndex(NamedTuple):
    """One crawl.

    id: as `CC-MAIN-2024-10`. address: of its index server.
    first, last: 14 digits, between which it captured; of one that does not say, all times there are.
    """

    id: str
    url: str
    first: str
    last: str

    def seconds_from(self, first: str, last: str) -> float:
        """Return how far it is from a span of time; 0 if they meet."""
        return datetime_negotiation.gap_seconds(self.first, self.last, first, last)


def parse_crawl_list(text: bytes, address: str) -> tuple[list[CommonCrawlIndex], int]:
    """Return the crawls of a `collinfo.json`, newest first, and how many entries of it were left out.

    An entry is left out if it is none, or if its index is not at the host of the list, which is all that was trusted.
    address: of the list. Raises ValueError if it is no list.

    >>> text = b'[{"id": "CC-MAIN-2013-20", "cdx-api": "http://i.org/CC-MAIN-2013-20-index"}, {"id": "x"}]'
    >>> read_crawls(text, "http://i.org/collinfo.json")
    ([Crawl(id='CC-MAIN-2013-20', address='http://i.org/CC-MAIN-2013-20-index', first='20130304...', last=...)], 1)
    """
    entries = json.loads(text)
    if not isinstance(entries, list) or len(entries) > MAX_CRAWLS:
        raise ValueError(f"expected a list of at most {MAX_CRAWLS} crawls")
    found = [crawl for entry in entries if (crawl := _parse_crawl(entry, address)) is not None]
    # The list is newest first; those that say when they were are sorted by it, whatever the list does.
    return sorted(found, key=lambda crawl: crawl.last, reverse=True), len(entries) - len(found)


def _parse_crawl(entry: object, address: str) -> CommonCrawlIndex | None:
    if not isinstance(entry, dict):
        return None
    name, index = entry.get("id"), entry.get("cdx-api")
    if not isinstance(index, str) or _origin(index) != _origin(address):
        return None
    if not isinstance(name, str):
        name = index.rpartition("/")[2].removesuffix("-index")
    begin, end = _dates_from_name(name)
    return CommonCrawlIndex(name, index, _parse_iso(entry.get("from")) or begin, _parse_iso(entry.get("to")) or end)


def _origin(address: str) -> tuple[str, str] | None:
    """Return scheme and host of an address; None if it is none of the web."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    return (parts.scheme, parts.netloc) if parts.scheme in ("http", "https") else None


def _parse_iso(value: object) -> str | None:
    try:
        return dates.from_iso(value) if isinstance(value, str) else None
    except DateError:
        return None


def _dates_from_name(name: str) -> tuple[str, str]:
    """Return from when to when a crawl may have gone, by the week or the years in its name."""
    if week := _WEEKLY.fullmatch(name):
        try:
            monday = datetime.fromisocalendar(int(week[1]), int(week[2]), 1).replace(tzinfo=UTC)
            return dates.from_datetime(monday - _CRAWL_MARGIN), dates.from_datetime(monday + _CRAWL_MARGIN)
        except (ValueError, OverflowError):
            pass
    if years := _YEARLY.fullmatch(name):
        return f"{years[1]}0101000000", f"{years[2] or years[1]}1231235959"
    return datetime_negotiation.ALL_TIME


MAX_INDEX_PAGES = 10_000
"""Pages of one query that are asked for. A page is five blocks of 3,000 rows, as the server has it."""
_MAX_PAGE_BYTES = 64 << 20  # 15,000 rows of some 500 bytes are 8 MB
_MAX_MESSAGE_BYTES = 1 << 16
_FULL_PAGE = 1_000  # rows: captures of one address that are fewer have no second page
_BATCH = 500
_MAX_BAD_ROWS = 1_000  # rows that cannot be read, if they are more than those that can


class CommonCrawlIndexClient:
    """Asks the index servers of crawls.

    problems: gets the rows that could not be read, and those of pages that were not asked for (`other-page`).
    """

    def __init__(self, archive: Archive, client: HttpClient, problems: Problems) -> None:
        self._archive = archive
        self._client = client
        self._problems = problems

    async def captures(
        self, crawl: CommonCrawlIndex, prefix: PrefixQuery, span: tuple[str, str]
    ) -> AsyncIterator[Capture]:
        """Yield what a crawl has of a page or below a prefix, from a moment to a moment, in the server's order.

        Raises ListCutError behind the last row if the server has more pages than it gives, FailedError, NotNowError.
        """
        async for capture in list_with_folder_page(prefix, lambda part: self._list_captures(crawl, part, span)):
            yield capture

    async def _list_captures(
        self, crawl: CommonCrawlIndex, prefix: PrefixQuery, span: tuple[str, str]
    ) -> AsyncIterator[Capture]:
        # For one address nearly all lists have one page: it is not asked how many there are unless it is full.
        pages = 1 if prefix.match == "exact" else await self._count_pages(crawl, prefix, span)
        number, before = 0, b""
        while number < min(pages, MAX_INDEX_PAGES):
            reply = await self._query(crawl, prefix, span, page=str(number))
            if reply is None:
                return
            rows = 0
            with reply.body:
                mark = await asyncio.to_thread(_page_digest, reply)
                if mark == before and reply.size:
                    message = f"{crawl.id}: page {number} repeats the one before it: what is on it is not known"
                    raise ListCutError(message, self._archive.id)
                before = mark
                async for capture in self._rows(reply, crawl):
                    rows += 1
                    if (
                        capture
                        and self._is_requested(capture, prefix, crawl)
                        and span[0] <= capture.datetime <= span[1]
                    ):
                        yield capture
            if number == 0 and prefix.match == "exact" and rows >= _FULL_PAGE:
                pages = await self._count_pages(crawl, prefix, span)
            number += 1
        if pages > MAX_INDEX_PAGES:
            raise ListCutError(f"{crawl.id}: {pages} pages, of which {MAX_INDEX_PAGES} were read", self._archive.id)

    async def _count_pages(self, crawl: CommonCrawlIndex, prefix: PrefixQuery, span: tuple[str, str]) -> int:
        """Return how many pages a list has; 1 of a server that has no pages, and lists everything instead."""
        reply = await self._query(crawl, prefix, span, showNumPages="true")
        if reply is None:
            return 0
        with reply.body:
            line = reply.body.readline(_MAX_MESSAGE_BYTES)
        try:
            answer = json.loads(line)
            pages = answer.get("pages", 1 if "urlkey" in answer else None) if isinstance(answer, dict) else answer
        except (ValueError, RecursionError):
            pages = None
        if isinstance(pages, bool) or not isinstance(pages, int) or pages < 0:
            raise self._failed_error(crawl, "expected how many pages there are, found something else", "malformed")
        return pages

    async def _query(
        self, crawl: CommonCrawlIndex, prefix: PrefixQuery, span: tuple[str, str], **more: str
    ) -> HttpResponse | None:
        """Return an answer of the index server; None if it says that it has no captures."""
        query = {"url": prefix.url, "matchType": prefix.match, "output": "json"}
        if span != datetime_negotiation.ALL_TIME:
            query |= {"from": span[0], "to": span[1]}
        url = f"{crawl.url}?{urlencode(query | more, errors='surrogateescape')}"
        reply = await self._client.send(self._archive, HttpRequest(url, RequestKind.INDEX, max_bytes=_MAX_PAGE_BYTES))
        if reply.status == 200:
            return reply
        with reply.body:
            message = _server_message(reply)
        if reply.status == 404 and message is not None and "captures" in message.lower():
            return None
        said = "" if message is None else f": {ascii(message)[1:-1][:120]}"
        raise self._failed_error(crawl, f"expected rows, found status {reply.status}{said}", "status")

    async def _rows(self, response: HttpResponse, crawl: CommonCrawlIndex) -> AsyncIterator[Capture | None]:
        """Yield the rows of a page; None for those that cannot be read, which are counted.

        Raises FailedError if none can, or if so many cannot that it is no use to go on.
        """
        lines = read_stream_lines(response.body, self._problems, crawl.id)
        good = bad = 0
        while batch := await asyncio.to_thread(lambda: list(islice(lines, _BATCH))):
            for capture in await asyncio.to_thread(self._read, batch, crawl):
                good, bad = good + (capture is not None), bad + (capture is None)
                yield capture
            if bad > max(good, _MAX_BAD_ROWS):
                break
        if bad > max(good, _MAX_BAD_ROWS) or (bad and not good):
            raise self._failed_error(crawl, "expected rows of JSON, found something else", "malformed")

    def _read(self, lines: list[Line], crawl: CommonCrawlIndex) -> list[Capture | None]:
        found: list[Capture | None] = []
        for line in lines:
            if not line.text.strip():
                continue
            try:
                found.append(_parse_row(line).to_capture())
            except RowError as error:
                self._problems.add(Problem(error.kind, crawl.id, line.number, line.offset, str(error)))
                found.append(None)
        return found

    def _is_requested(self, capture: Capture, prefix: PrefixQuery, crawl: CommonCrawlIndex) -> bool:
        if prefix.covers(capture.key):
            return True
        message = "expected rows of what was asked for, found another page's"
        self._problems.add(Problem("other-page", crawl.id, None, 0, message))
        return False

    def _failed_error(self, crawl: CommonCrawlIndex, message: str, kind: str) -> FailedError:
        return FailedError(f"{crawl.id}: {message}", self._archive.id, kind)


def _page_digest(response: HttpResponse) -> bytes:
    """Return by what a page is known again."""
    digest = hashlib.sha256()
    for piece in iter_pieces(response.body):
        digest.update(piece)
    response.body.seek(0)
    return digest.digest()


def _server_message(response: HttpResponse) -> str | None:
    """Return what an answer of the server's own says; None if it is not of the form that it writes."""
    try:
        answer = json.loads(response.body.read(_MAX_MESSAGE_BYTES))
    except (ValueError, RecursionError):
        return None
    said = (answer.get("message") or answer.get("error")) if isinstance(answer, dict) else None
    return said if isinstance(said, str) else None


def _parse_row(line: Line) -> IndexRow:
    """Read a row. Raises RowError of kind `bad-json`."""
    try:
        text = line.text.decode("utf-8", "surrogateescape")
        values = ROW_DECODER.decode(text)
        if not isinstance(values, dict):
            raise RowError("bad-json", "expected an object, found something else")
        fields = {name: value for name, value in values.items() if isinstance(value, str) and value != NO_VALUE}
        "".join(fields.values()).encode("utf-8", "surrogateescape")  # half of a pair of surrogates is no text
    except (ValueError, RecursionError) as error:
        raise RowError("bad-json", f"expected an object: {str(error)[:80]}") from None
    return IndexRow(fields.pop("urlkey", ""), fields.pop("timestamp", ""), fields, line.number, line.offset)


MAX_RECORD_BYTES = 64 << 20
"""The largest record that is fetched, compressed. Common Crawl cuts bodies at 1 MiB, and means to do so at 5 MiB."""
_MAX_WHOLE_BYTES = 8 << 20
"""Of a WARC that a server gives as a whole, because it knows no ranges."""
_WARC_FILENAME = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*(?:/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*")
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(?:\d+|\*)", re.ASCII)


class CommonCrawlRecords:
    """Fetches records."""

    def __init__(self, archive: Archive, client: HttpClient) -> None:
        self._archive = archive
        self._client = client

    async def fetch_record(self, capture: Capture, filename: str, offset: int, length: int) -> StoredRecord | None:
        """Return the record of a capture; None if its file is gone. Raises FailedError, NotNowError."""
        if not _WARC_FILENAME.fullmatch(filename) or length == 0:
            raise self._failed_error("expected the name of a WARC and a length, found something else", "malformed")
        if length > MAX_RECORD_BYTES:
            raise self._failed_error(
                f"expected a record of at most {MAX_RECORD_BYTES} bytes, found {length}", "too-large"
            )
        url = (self._archive.replay or "").replace("{filename}", quote(filename))
        headers = {"Range": f"bytes={offset}-{offset + length - 1}", "Accept-Encoding": "identity"}
        question = HttpRequest(url, RequestKind.REPLAY, headers, max(length, _MAX_WHOLE_BYTES))
        reply = await self._client.send(self._archive, question)
        with reply.body:
            if reply.status in (404, 410):
                return None
            self._seek(reply, offset, length)
            return await asyncio.to_thread(self._read, reply, capture, length)

    def _seek(self, response: HttpResponse, offset: int, length: int) -> None:
        """Go to where the record begins in an answer. Raises FailedError if it is not in it."""
        if response.status == 200:
            if response.size < offset + length:
                raise self._failed_error("expected a part of a file, found another file", "malformed")
            response.body.seek(offset)
            return
        if response.status == 416:
            raise self._failed_error(f"its index says {offset}, and its file ends before that", "status")
        if response.status != 206:
            raise self._failed_error(f"expected a part of a file, found status {response.status}", "status")
        said = _CONTENT_RANGE.fullmatch((response.header("Content-Range") or "").strip())
        if said is None or int(said[1]) != offset or int(said[2]) > offset + length - 1:
            raise self._failed_error("expected the part of a file that was asked for, found another", "malformed")
        if response.size != int(said[2]) - offset + 1:
            raise self._failed_error("expected the part of a file that was asked for, found less", "reset")

    def _read(self, response: HttpResponse, capture: Capture, length: int) -> StoredRecord:
        """Return the record in an answer. What was opened stays readable although its file has no name any more."""
        with tempfile.NamedTemporaryFile(prefix="unlost-record-") as file:
            left = length
            while left and (piece := response.body.read(min(left, 1 << 16))):
                file.write(piece)
                left -= len(piece)
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


_MAX_LIST_BYTES = 8 << 20  # of the list of crawls: 40 kB in 2026


class CommonCrawlClient:
    """Common Crawl as a repository.

    `archive.cdx` is the address of the list of crawls, `archive.replay` that of a WARC, with `{filename}` in it.
    Captures have no URI-M: file, offset and length say where they are.

    crawls: how many crawls are asked at most, the newest first; None for all. Each costs a request for a page, and at
    least two for a prefix. Where this leaves crawls out, lists end with ListCutError.
    problems: what of its answers could not be read, counted.
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
        """Yield the captures of an address, the newest crawl first. Raises UriError, ListCutError, FailedError."""
        async for capture in self._list_captures(PrefixQuery.for_page(uri), datetime_negotiation.ALL_TIME):
            yield capture

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield the captures below a prefix, the newest crawl first.

        Crawls that were at other times are not asked. Raises UriError, DateError, ListCutError, FailedError.
        """
        span = datetime_negotiation.pad_range(first, last)
        async for capture in self._list_captures(PrefixQuery.parse(prefix), span):
            yield capture

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Return a copy, taken out of the WARC that the capture names; None if that WARC is gone.

        Of a capture that names none, the closest to its date. Raises FailedError, of kind `foreign` if the record is of
        another address or date.
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
        copy = await asyncio.to_thread(warc_capture.read_capture, *original, self.archive)
        return warc_capture.apply_revisit(record, capture, copy)

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Return the copy closest to a date, or the last one; crawls are asked until none could have a closer one.

        Raises UriError, DateError, FailedError, NotNowError.
        """
        best = await self._closest(uri, *datetime_negotiation.date_span(date), revisits=False)
        return None if best is None else await self.fetch(best)

    async def last_capture_date(self, uri: str) -> str | None:
        """Return when the last copy was captured, 14 digits: the newest crawls are asked until one has it."""
        last = await self._closest(uri, *datetime_negotiation.date_span(None), revisits=True)
        return None if last is None else last.datetime

    async def list_crawls(self) -> list[CommonCrawlIndex]:
        """Return all crawls, newest first. The list is asked for once. Raises FailedError, NotNowError."""
        async with self._crawls_lock:
            if self._crawls is None:
                self._crawls = await self._fetch_crawl_list()
        return self._crawls

    async def _fetch_crawl_list(self) -> list[CommonCrawlIndex]:
        address = self.archive.cdx or ""
        reply = await self._client.send(
            self.archive, HttpRequest(address, RequestKind.INDEX, max_bytes=_MAX_LIST_BYTES)
        )
        with reply.body:
            if reply.status != 200:
                message = f"expected the list of crawls, found status {reply.status}"
                raise FailedError(message, self.archive.id, "status")
            try:
                crawls, left_out = parse_crawl_list(reply.body.read(), address)
            except (ValueError, RecursionError):
                message = "expected the list of crawls, found something else"
                raise FailedError(message, self.archive.id, "malformed") from None
        if left_out:
            message = "expected a crawl with an index server at the host of the list"
            self.problems.add(Problem("bad-crawl", address, None, 0, message), left_out)
        return crawls

    async def _list_captures(self, prefix: PrefixQuery, span: tuple[str, str]) -> AsyncIterator[Capture]:
        crawls = [crawl for crawl in await self.list_crawls() if crawl.seconds_from(*span) == 0]
        chosen = crawls[: self._max_crawls]
        cut = None
        for crawl in chosen:
            try:
                async for capture in self._index.captures(crawl, prefix, span):
                    yield self._with_archive(capture)
            except ListCutError as error:
                cut = cut or error
        if cut is not None:
            raise cut
        if len(chosen) < len(crawls):
            message = f"{len(chosen)} of {len(crawls)} crawls were asked, as many as was said"
            raise ListCutError(message, self.archive.id)

    async def _closest(self, uri: str, first: str, last: str, *, revisits: bool) -> Capture | None:
        """Return the capture closest to a span of time, asking the crawls closest to it."""
        page = PrefixQuery.for_page(uri)
        crawls = sorted(await self.list_crawls(), key=lambda crawl: crawl.seconds_from(first, last))
        best, best_rank = None, (float("inf"), 0.0)
        for crawl in crawls[: self._max_crawls]:
            if best is not None and (crawl.seconds_from(first, last), -float(crawl.last)) > best_rank:
                break  # nothing of it, or of those behind it, can be closer
            async for capture in self._index.captures(crawl, page, datetime_negotiation.ALL_TIME):
                rank = datetime_negotiation.distance_rank(capture.datetime, first, last)
                if rank < best_rank and (revisits or not capture.revisit):
                    best, best_rank = self._with_archive(capture), rank
        return best

    async def _fetch_record(self, capture: Capture) -> StoredRecord | None:
        if capture.filename is None or capture.offset is None or capture.length is None:
            return None
        return await self._records.fetch_record(capture, capture.filename, capture.offset, capture.length)

    async def _revisit_original(self, revisit: StoredRecord) -> tuple[StoredRecord, Capture] | None:
        """Return the record that a revisit speaks of, and what the index says of it."""
        named = warc_capture.revisit_target(revisit)
        if named is None:
            return None
        address, moment = named
        capture = await self._closest(address, moment, moment, revisits=False)
        if capture is None or capture.datetime != moment:
            return None
        record = await self._fetch_record(capture)
        return None if record is None else (record, capture)

    def _with_archive(self, capture: Capture) -> Capture:
        return replace(capture, archive=self.archive.id, migrated=self.archive.is_migrated(capture.mime))
