"""Common Crawl: an index server for each crawl, and the records themselves as parts of large WARCs."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from unlost.archives import closeness
from unlost.archives.archive import Archive, RequestKind
from unlost.archives.asking.question import HttpClient, HttpRequest
from unlost.archives.bodies import warc_copy
from unlost.archives.clients.crawl_index import CommonCrawlIndexClient
from unlost.archives.clients.crawl_records import CommonCrawlRecords
from unlost.archives.clients.crawls import CommonCrawlIndex, parse_crawl_list
from unlost.archives.prefix import PrefixQuery
from unlost.archives.repository import FetchedCapture
from unlost.errors import FailedError, ListCutError, UsageError
from unlost.formats.capture import Capture
from unlost.formats.problems import Problem, Problems
from unlost.formats.warc import StoredRecord

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
        async for capture in self._list_captures(PrefixQuery.for_page(uri), closeness.ALL_TIME):
            yield capture

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield the captures below a prefix, the newest crawl first.

        Crawls that were at other times are not asked. Raises UriError, DateError, ListCutError, FailedError.
        """
        span = closeness.pad_range(first, last)
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
            return await asyncio.to_thread(warc_copy.read_capture, record, capture, self.archive)
        original = await self._revisit_original(record)
        if original is None:
            message = "the record says `as before`, and what was before is not in its index"
            raise FailedError(message, self.archive.id, "malformed")
        copy = await asyncio.to_thread(warc_copy.read_capture, *original, self.archive)
        return warc_copy.apply_revisit(record, capture, copy)

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Return the copy closest to a date, or the last one; crawls are asked until none could have a closer one.

        Raises UriError, DateError, FailedError, NotNowError.
        """
        best = await self._closest(uri, *closeness.date_span(date), revisits=False)
        return None if best is None else await self.fetch(best)

    async def last_capture_date(self, uri: str) -> str | None:
        """Return when the last copy was captured, 14 digits: the newest crawls are asked until one has it."""
        last = await self._closest(uri, *closeness.date_span(None), revisits=True)
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
            async for capture in self._index.captures(crawl, page, closeness.ALL_TIME):
                rank = closeness.distance_rank(capture.datetime, first, last)
                if rank < best_rank and (revisits or not capture.revisit):
                    best, best_rank = self._with_archive(capture), rank
        return best

    async def _fetch_record(self, capture: Capture) -> StoredRecord | None:
        if capture.filename is None or capture.offset is None or capture.length is None:
            return None
        return await self._records.fetch_record(capture, capture.filename, capture.offset, capture.length)

    async def _revisit_original(self, revisit: StoredRecord) -> tuple[StoredRecord, Capture] | None:
        """Return the record that a revisit speaks of, and what the index says of it."""
        named = warc_copy.revisit_target(revisit)
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
