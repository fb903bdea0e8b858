"""The index server of one crawl of Common Crawl: rows of JSON, in pages."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from itertools import islice
from urllib.parse import urlencode

from unlost.archives import closeness
from unlost.archives.archive import Archive, RequestKind
from unlost.archives.asking.question import HttpClient, HttpRequest, HttpResponse
from unlost.archives.bodies.body import iter_pieces
from unlost.archives.clients.below import list_with_folder_page
from unlost.archives.clients.crawls import CommonCrawlIndex
from unlost.archives.clients.json_rows import ROW_DECODER
from unlost.archives.prefix import PrefixQuery
from unlost.errors import FailedError, ListCutError
from unlost.formats.capture import Capture
from unlost.formats.lines import Line, read_stream_lines
from unlost.formats.problems import Problem, Problems
from unlost.formats.row import NO_VALUE, IndexRow, RowError

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
        if span != closeness.ALL_TIME:
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
