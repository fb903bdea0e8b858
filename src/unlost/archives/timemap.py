"""Queries the TimeMaps and TimeGates of an archive (RFC 7089)."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

from unlost import dates
from unlost.archives.base import has_content, names_exclusion
from unlost.archives.cdx import ROWS_PER_YIELD, RecentlySeen
from unlost.archives.memento_urls import archive_hosts, is_same_page, join_url, parse_memento_url, url_host
from unlost.archives.replay import ReplayClient, parse_link_headers
from unlost.capture import Capture
from unlost.errors import DateError, ExcludedError, FailedError, ListCutError
from unlost.http.models import HttpClient, HttpRequest, HttpResponse, PartialResponse
from unlost.memento.timemap import (
    MEDIA_TYPE,
    ArchiveTimeMap,
    LinkFormatTimeMap,
    MementoDedup,
    Mementos,
    MementoTuple,
    TimeMapLink,
    read_archive_timemap,
    read_timemap,
)
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive, RequestKind
from unlost.uri import keys
from unlost.uri.normalize import normalize_input_url

MAX_PAGES = 1_000
"""Maximum number of pages of one TimeMap that are requested. The largest archive returns 10,000 mementos and more per
page."""
MAX_TIMEMAP_BYTES = 1 << 27
"""Memory for the mementos of one TimeMap, over all its pages: about a million mementos."""
MAX_PAGE_BYTES = 1 << 28
"""Largest page of a TimeMap: about two million mementos. The rest of a larger page is skipped."""
_MAX_TIMEGATE_BYTES = 1 << 16  # of a TimeGate's response, which may be the memento itself; its headers are enough
_PIECE_BYTES = 1 << 22  # of a page that are parsed at once
_THREADED_PARSE_BYTES = 1 << 20  # larger pages are parsed in a thread
_ACCEPT = {"Accept": f"{MEDIA_TYPE}, */*;q=0.1"}
_ParsedT = TypeVar("_ParsedT", LinkFormatTimeMap, ArchiveTimeMap)
_Parser = Callable[[bytes, str, Problems, str], _ParsedT]


class _TimeMapPage(NamedTuple, Generic[_ParsedT]):
    """One page of a TimeMap.

    Attributes:
        base: The URL to which its links are relative.
        parts: Its content. A long page is parsed in several parts.
        is_cut: Whether the mementos of the page exceed the memory limit.
        error: The error that ended the response before its body was complete.
    """

    base: str
    parts: tuple[_ParsedT, ...]
    is_cut: bool = False
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class TimeMapClient:
    """Queries the TimeMaps of one archive, in link-format (RFC 6690)."""

    archive: Archive
    client: HttpClient
    problems: Problems

    async def captures(self, uri: str, first: str | None = None) -> AsyncIterator[Capture]:
        """Yield the captures of a page, each once.

        Args:
            uri: The page.
            first: URL of the TimeMap; by default, that of the registry.

        Raises:
            FailedError: The request failed; of kind `malformed` if no memento can be read.
            ListCutError: Pages of the TimeMap were skipped. Raised after the last capture.
        """

        def parse(body: bytes, _: str, problems: Problems, name: str) -> LinkFormatTimeMap:
            return read_timemap(body, problems, name)

        walk = _PageWalk(self.archive, first or f"{self.archive.timemap}{normalize_input_url(uri)}")
        recent = RecentlySeen()
        for url in walk:
            page = await self._fetch_page(url, parse, is_first=url == walk.first_url)
            new_count = 0
            for count, capture in enumerate(self._new_captures(uri, page, recent)):
                if count % ROWS_PER_YIELD == 0 and page.error is None:
                    await asyncio.sleep(0)
                if capture is not None:
                    new_count += 1
                    yield capture
            if page.error is not None:
                raise page.error
            if new_count or not any(part.mementos for part in page.parts):
                walk.enqueue_links(page)
        walk.check_complete()

    async def pages(self, uri: str, first: str | None = None) -> AsyncIterator[Mementos]:
        """Yield the mementos of a page, one page of the TimeMap at a time. Pages may overlap.

        Mementos that were yielded remain valid if an error is raised afterwards, or if the iteration is cancelled.

        Args:
            uri: The page.
            first: URL of the TimeMap; by default, the one of the registry.

        Raises:
            FailedError: The request failed; of kind `malformed` if no memento can be read.
            ListCutError: Pages were skipped, or the mementos exceed `MAX_TIMEMAP_BYTES`.
        """

        def parse(body: bytes, base: str, problems: Problems, name: str) -> ArchiveTimeMap:
            return read_archive_timemap(body, self.archive.id, base, problems, name)

        begin = first or f"{self.archive.timemap}{normalize_input_url(uri)}"
        page = await self._fetch_page(begin, parse, is_first=True)
        if not page.parts:
            return
        walk = _PageWalk(self.archive, begin)
        seen = MementoDedup()
        size = 0
        for url in walk:
            is_first = url == begin
            if not is_first:
                page = await self._fetch_page(url, parse, is_first=False)
            lists = [part.mementos for part in page.parts if part.mementos]
            for mementos in lists:
                yield mementos
                size += mementos.memory_size
            if page.error is not None:
                raise page.error
            if page.is_cut or size > MAX_TIMEMAP_BYTES:
                walk.cut()
            # Most TimeMaps have one page, whose mementos need not be remembered.
            elif not lists or (is_first and not _page_links(page.parts)) or max(map(seen.add, lists)) > 0:
                walk.enqueue_links(page)
        walk.check_complete()

    async def _fetch_page(self, url: str, parse: _Parser[_ParsedT], *, is_first: bool) -> _TimeMapPage[_ParsedT]:
        """Return a parsed page; without parts if the archive has no mementos.

        If the body is incomplete, the page has the mementos that were received, and the error. If nothing was received,
        the error is raised.
        """
        received = PartialResponse()
        request = HttpRequest(url, RequestKind.INDEX, _ACCEPT, MAX_PAGE_BYTES, partial=received)
        error: BaseException | None = None
        try:
            response = await self.client.send(self.archive, request)
        except (FailedError, asyncio.CancelledError) as raised:
            if received.response is None or received.response.status != 200:
                raise
            response, error = received.response, raised
        with response.body:
            if not has_content(self.archive, response):
                if not is_first:
                    raise FailedError("a page of the TimeMap is not there", self.archive.id, "status")
                return _TimeMapPage(response.url, ())
            problems = Problems()
            name = f"{self.archive.id} timemap"
            parse_all = partial(_parse_parts, response, parse, problems, name, is_whole=error is None)
            parts = parse_all() if response.size < _THREADED_PARSE_BYTES else await asyncio.to_thread(parse_all)
            if not _is_timemap(parts) and names_exclusion(response):
                raise ExcludedError(f"{self.archive.name} does not show it", self.archive.id)
        reason = _unreadable_reason(response, parts, problems)
        if reason and error is not None:
            raise error
        if reason:
            raise FailedError(f"expected a TimeMap in link-format, found {reason}", self.archive.id, "malformed")
        for kind, first in problems.first.items():
            self.problems.add(first, problems.counts[kind])
        return _TimeMapPage(response.url, parts, "too-large" in problems.counts, error)

    def _new_captures(
        self, uri: str, page: _TimeMapPage[LinkFormatTimeMap], recent: RecentlySeen
    ) -> Iterator[Capture | None]:
        """Yield a capture for every memento, or None if it is a duplicate or has no web URL."""
        original = next((part.original for part in page.parts if part.original), None)
        if original is None or not is_same_page(original, uri):
            original = normalize_input_url(uri)
        key = keys.key(original)
        for memento in chain.from_iterable(part.mementos for part in page.parts):
            url = join_url(page.base, memento.uri)
            if url_host(url) is None:
                message = "expected a web address of a copy"
                self.problems.add(Problem("bad-uri", f"{self.archive.id} timemap", None, 0, message))
                yield None
            elif recent.is_new((url, memento.datetime)):
                yield Capture(original, key, memento.datetime, archive=self.archive.id, urim=url)
            else:
                yield None


class _PageWalk:
    """Iterates over the URLs of the pages of a TimeMap, each once.

    Attributes:
        first_url: The first of them.
    """

    def __init__(self, archive: Archive, first_url: str) -> None:
        self.first_url = first_url
        self._archive = archive
        self._pages, self._requested = deque([first_url]), {_without_scheme(first_url)}
        self._is_incomplete = False

    def __iter__(self) -> Iterator[str]:
        while self._pages:
            yield self._pages.popleft()

    def enqueue_links(self, page: _TimeMapPage[LinkFormatTimeMap] | _TimeMapPage[ArchiveTimeMap]) -> None:
        """Add the pages to which a page links. Do not call it for a page without new mementos: it might never end."""
        for link in _page_links(page.parts):
            next_page = join_url(page.base, link.uri)
            if _without_scheme(next_page) in self._requested:
                continue
            is_elsewhere = url_host(next_page) not in {*archive_hosts(self._archive), url_host(page.base)}
            if is_elsewhere or len(self._requested) >= MAX_PAGES:
                self._is_incomplete = True
                continue
            self._requested.add(_without_scheme(next_page))
            self._pages.append(next_page)

    def cut(self) -> None:
        """Skip all remaining pages."""
        self._is_incomplete = True
        self._pages.clear()

    def check_complete(self) -> None:
        """Raise ListCutError if pages were skipped."""
        if self._is_incomplete:
            message = "the TimeMap is too long, or has pages elsewhere: something was left out"
            raise ListCutError(message, self._archive.id)


def _parse_parts(
    response: HttpResponse, parse: _Parser[_ParsedT], problems: Problems, name: str, *, is_whole: bool
) -> tuple[_ParsedT, ...]:
    """Parse a body in parts that end before an entry. Of an incomplete body, the last entry is dropped."""
    parts: list[_ParsedT] = []
    text = b""
    while piece := response.body.read(_PIECE_BYTES):
        text += piece
        if len(piece) == _PIECE_BYTES:
            end = _last_entry(text) or len(text)  # an entry is shorter than a part: without one, it is other text
            parts.append(parse(text[:end], response.url, problems, name))
            text = text[end:]
    if not is_whole:
        text = text[: _last_entry(text)]
    if text or not parts:
        parts.append(parse(text, response.url, problems, name))
    return tuple(parts)


def _last_entry(text: bytes) -> int:
    """Return where the last entry begins; 0 if that is unknown."""
    return max(text.rfind(begin) + len(begin) - 1 for begin in (b"\n<", b",<", b", <")) if b"<" in text else 0


def _page_links(parts: Sequence[LinkFormatTimeMap | ArchiveTimeMap]) -> list[TimeMapLink]:
    """Return the links to other pages: those with dates of their own, in the same format."""
    self_link = next((part.self_link for part in parts if part.self_link), None)
    own = (self_link.start, self_link.until) if self_link else (None, None)
    return [
        link
        for part in parts
        for link in part.timemaps
        if (link.start or link.until)
        and (link.start, link.until) != own
        and (link.type or MEDIA_TYPE).partition(";")[0].strip().lower() == MEDIA_TYPE
    ]


def _is_timemap(parts: Sequence[LinkFormatTimeMap | ArchiveTimeMap]) -> bool:
    """Return whether any link of a TimeMap was parsed."""
    return any(part.original or part.self_link or part.timegate or part.timemaps or part.mementos for part in parts)


def _unreadable_reason(
    response: HttpResponse, parts: Sequence[LinkFormatTimeMap | ArchiveTimeMap], problems: Problems
) -> str:
    """Return why no memento could be read; empty if the TimeMap is readable.

    A changed format or an error page with status 200 must not be taken for "no mementos". So a TimeMap without mementos
    is readable only if no entries were skipped, which may have been mementos, and an empty body is a TimeMap only if
    Content-Type says so.
    """
    if "html" in problems.counts:
        return "HTML"
    if any(part.mementos for part in parts) or _page_links(parts):
        return ""
    if problems.total:
        kinds = ", ".join(f"{count} {kind}" for kind, count in problems.counts.items())
        return f"no readable memento ({kinds})" if _is_timemap(parts) else "other text"
    if _is_timemap(parts):
        return ""
    declared = (response.header("content-type") or "").partition(";")[0].strip().lower()
    return "" if declared == MEDIA_TYPE and not any(part.other_links for part in parts) else "no link of a TimeMap"


def _without_scheme(url: str) -> str:
    """Return a URL without its scheme, which archives change from page to page."""
    return url.partition("://")[2]


@dataclass(frozen=True, slots=True)
class TimeGateResult:
    """The mementos that a TimeGate named: the selected one, and those of its Link header.

    Attributes:
        mementos: The mementos.
        knows_first: Whether the first memento of the archive is among them.
        knows_last: Whether the last memento of the archive is among them.
    """

    mementos: Mementos
    knows_first: bool = False
    knows_last: bool = False


async def query_timegate(archive: Archive, client: HttpClient, uri: str, date: str | None) -> TimeGateResult | None:
    """Query an archive's TimeGate.

    Args:
        archive: The archive.
        client: Sends the requests.
        uri: The page.
        date: 14 digits; with None, the TimeGate selects the last memento.

    Returns:
        The mementos named; None if the archive has no memento of the page.

    Raises:
        ExcludedError: The archive does not serve the page.
        NotNowError: The archive must not be queried now.
        FailedError: The request failed; of kind `malformed` if the response does not name a memento.
    """
    headers = {} if date is None else {"Accept-Datetime": dates.to_http(date)}
    response = await _query(archive, client, f"{archive.timegate}{normalize_input_url(uri)}", headers)
    with response.body:
        if response.header("memento-datetime") is None and not 300 <= response.status < 400:
            if not has_content(archive, response):
                return None
            raise _malformed_error(archive, "a page without Memento-Datetime")
        links = parse_link_headers(response)
        if links.original is not None and not is_same_page(join_url(response.url, links.original), uri):
            raise _malformed_error(archive, "a memento of another page")
    named = {join_url(response.url, each.uri): each.datetime for each in links.mementos}
    url, moment = await _selected_memento(archive, client, uri, response, named, headers)
    if url_host(url) is None:
        raise _malformed_error(archive, "a memento without a web URL")
    rows = [MementoTuple(when, archive.id, where) for where, when in {**named, url: moment}.items() if url_host(where)]
    return TimeGateResult(
        Mementos(rows),
        any(each.first for each in links.mementos),
        date is None or any(each.last for each in links.mementos),
    )


async def _query(archive: Archive, client: HttpClient, url: str, headers: dict[str, str]) -> HttpResponse:
    """Return the response of a TimeGate. A body that is too large is ignored."""
    partial = PartialResponse()
    request = HttpRequest(url, RequestKind.INDEX, headers, _MAX_TIMEGATE_BYTES, max_redirects=0, partial=partial)
    try:
        return await client.send(archive, request)
    except FailedError as error:
        if error.kind != "too-large" or partial.response is None:
            raise
        return partial.response


async def _selected_memento(
    archive: Archive,
    client: HttpClient,
    uri: str,
    response: HttpResponse,
    named: dict[str, str],
    headers: dict[str, str],
) -> tuple[str, str]:
    """Return the URL and the date of the memento that a TimeGate selected. Raises FailedError."""
    moment = response.header("memento-datetime")
    location = response.header("location") if 300 <= response.status < 400 else None
    if location is None:
        try:
            return join_url(response.url, response.header("content-location") or ""), dates.from_http(moment or "")
        except DateError as error:
            raise _malformed_error(archive, str(error)) from None
    target = join_url(response.url, location)
    if target in named:
        return target, named[target]
    memento = parse_memento_url(target)
    if memento is not None and len(memento.datetime) == 14 and is_same_page(memento.uri, uri):
        return target, memento.datetime
    # It redirects to another TimeGate, or to a memento whose URL has no date.
    try:
        replay_target = await ReplayClient(archive, client, Problems()).resolve(uri, target, headers, stop_at_date=True)
    except FailedError as error:  # of that URL: the TimeGate itself has responded
        raise _malformed_error(archive, f"a redirect that cannot be followed ({error})") from None
    if replay_target is None:
        raise _malformed_error(archive, "a redirect to a memento that does not exist")
    replay_target.response.body.close()
    return replay_target.url, replay_target.datetime


def _malformed_error(archive: Archive, actual: str) -> FailedError:
    return FailedError(f"expected the response of a TimeGate, found {actual}", archive.id, "malformed")
