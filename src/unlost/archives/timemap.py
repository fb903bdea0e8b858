"""Queries the TimeMaps and TimeGates of an archive (RFC 7089)."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

from unlost import dates
from unlost import uri as addresses
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
    Mementos,
    MementoTuple,
    SeenMementos,
    TimeMapLink,
    read_archive_timemap,
    read_timemap,
)
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive, RequestKind
from unlost.uri.normalize import normalize_input_url

MAX_PAGES = 1_000
"""How many pages of one TimeMap are asked for. The largest archive gives a page of 10,000 copies and more."""
MAX_TIMEMAP_BYTES = 1 << 27
"""How much memory the copies of one TimeMap may take, over all its pages: about a million copies."""
MAX_PAGE_BYTES = 1 << 28
"""The largest page of a TimeMap: about two million mementos. Of a larger one, what is beyond is left out."""
_PIECE_BYTES = 1 << 22  # of a page that are read at a time
_THREADED_PARSE_BYTES = 1 << 20  # bytes of a list, which takes so long to read that others get their turn meanwhile
_ACCEPT = {"Accept": f"{MEDIA_TYPE}, */*;q=0.1"}
_ParsedT = TypeVar("_ParsedT", LinkFormatTimeMap, ArchiveTimeMap)
_Parser = Callable[[bytes, str, Problems, str], _ParsedT]


class _TimeMapPage(NamedTuple, Generic[_ParsedT]):
    """One page.

    base: the address that its links are relative to. parts: what it says; a long page is read in several parts.
    is_cut: whether it is too long to be held. error: what ended the response before its body was whole.
    """

    base: str
    parts: tuple[_ParsedT, ...]
    is_cut: bool = False
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class TimeMapClient:
    """The TimeMaps of one archive, in link-format."""

    archive: Archive
    client: HttpClient
    problems: Problems

    async def captures(self, uri: str, first: str | None = None) -> AsyncIterator[Capture]:
        """Yield the captures of a page, each once.

        first: the address of the TimeMap, if it is not the one of the registry.
        Raises FailedError of kind `malformed` if none can be read, ListCutError at the end if pages were left out.
        """

        def read(body: bytes, _: str, found: Problems, name: str) -> LinkFormatTimeMap:
            return read_timemap(body, found, name)

        walk = _PageWalk(self.archive, first or f"{self.archive.timemap}{normalize_input_url(uri)}")
        recent = RecentlySeen()
        for address in walk:
            page = await self._fetch_page(address, read, is_first=address == walk.first_url)
            fresh = 0
            for count, capture in enumerate(self._new_captures(uri, page, recent)):
                if count % ROWS_PER_YIELD == 0 and page.error is None:
                    await asyncio.sleep(0)
                if capture is not None:
                    fresh += 1
                    yield capture
            if page.error is not None:
                raise page.error
            if fresh or not any(part.mementos for part in page.parts):
                walk.enqueue_links(page)
        walk.check_complete()

    async def pages(self, uri: str, first: str | None = None) -> AsyncIterator[Mementos]:
        """Yield the copies of a page, those of each page of the TimeMap together; pages may repeat each other.

        Whatever is raised, now or by whoever cancels this, does not touch what was yielded: those copies are there.
        first: the address of the TimeMap, if it is not the one of the registry.
        Raises FailedError of kind `malformed` if none can be read, ListCutError at the end if pages were left out,
        or copies that are more than `MAX_BYTES`.
        """

        def read(body: bytes, base: str, found: Problems, name: str) -> ArchiveTimeMap:
            return read_archive_timemap(body, self.archive.id, base, found, name)

        begin = first or f"{self.archive.timemap}{normalize_input_url(uri)}"
        page = await self._fetch_page(begin, read, is_first=True)
        if not page.parts:
            return
        walk = _PageWalk(self.archive, begin)
        seen = SeenMementos()
        size = 0
        for address in walk:
            is_first = address == begin
            if not is_first:
                page = await self._fetch_page(address, read, is_first=False)
            lists = [part.mementos for part in page.parts if part.mementos]
            for mementos in lists:
                yield mementos
                size += mementos.size
            if page.error is not None:
                raise page.error
            if page.is_cut or size > MAX_TIMEMAP_BYTES:
                walk.cut()
            # Most lists have one page, and then nothing needs to be remembered.
            elif not lists or (is_first and not _page_links(page.parts)) or max(map(seen.add, lists)) > 0:
                walk.enqueue_links(page)
        walk.check_complete()

    async def _fetch_page(self, address: str, read: _Parser[_ParsedT], *, is_first: bool) -> _TimeMapPage[_ParsedT]:
        """Return a page as `read` reads it; without parts if the archive has none.

        If the body is not whole, the page has what was received, and the error. Raises FailedError, CancelledError if
        that is nothing.
        """
        received = PartialResponse()
        question = HttpRequest(address, RequestKind.INDEX, _ACCEPT, MAX_PAGE_BYTES, partial=received)
        error: BaseException | None = None
        try:
            reply = await self.client.send(self.archive, question)
        except (FailedError, asyncio.CancelledError) as raised:
            if received.response is None or received.response.status != 200:
                raise
            reply, error = received.response, raised
        with reply.body:
            if not has_content(self.archive, reply):
                if not is_first:
                    raise FailedError("a page of the TimeMap is not there", self.archive.id, "status")
                return _TimeMapPage(reply.url, ())
            found = Problems()
            read_all = partial(_read_parts, reply, read, found, f"{self.archive.id} timemap", is_whole=error is None)
            parts = read_all() if reply.size < _THREADED_PARSE_BYTES else await asyncio.to_thread(read_all)
            if not _is_timemap(parts) and names_exclusion(reply):
                raise ExcludedError(f"{self.archive.name} does not show it", self.archive.id)
        reason = _unreadable_reason(reply, parts, found)
        if reason and error is not None:
            raise error
        if reason:
            raise FailedError(f"expected a TimeMap in link-format, found {reason}", self.archive.id, "malformed")
        for kind, first in found.first.items():
            self.problems.add(first, found.counts[kind])
        return _TimeMapPage(reply.url, parts, "too-large" in found.counts, error)

    def _new_captures(
        self, uri: str, page: _TimeMapPage[LinkFormatTimeMap], recent: RecentlySeen
    ) -> Iterator[Capture | None]:
        """Yield for every copy a capture, or None if it came before or has no address."""
        original = next((part.original for part in page.parts if part.original), None)
        if original is None or not is_same_page(original, uri):
            original = normalize_input_url(uri)
        key = addresses.key(original)
        for memento in chain.from_iterable(part.mementos for part in page.parts):
            address = join_url(page.base, memento.uri)
            if url_host(address) is None:
                message = "expected a web address of a copy"
                self.problems.add(Problem("bad-uri", f"{self.archive.id} timemap", None, 0, message))
                yield None
            elif recent.is_new((address, memento.datetime)):
                yield Capture(original, key, memento.datetime, archive=self.archive.id, urim=address)
            else:
                yield None


class _PageWalk:
    """A way over the pages of a TimeMap: yields the address of each page that is to be asked for, once.

    begin: the first of them.
    """

    def __init__(self, archive: Archive, first_url: str) -> None:
        self.first_url = first_url
        self._archive = archive
        self._pages, self._requested = deque([first_url]), {_without_scheme(first_url)}
        self._left_out = False

    def __iter__(self) -> Iterator[str]:
        while self._pages:
            yield self._pages.popleft()

    def enqueue_links(self, page: _TimeMapPage[LinkFormatTimeMap] | _TimeMapPage[ArchiveTimeMap]) -> None:
        """Take what a page leads to. A page that only repeats others leads nowhere: do not go on from it."""
        for link in _page_links(page.parts):
            next_page = join_url(page.base, link.uri)
            if _without_scheme(next_page) in self._requested:
                continue
            is_elsewhere = url_host(next_page) not in {*archive_hosts(self._archive), url_host(page.base)}
            if is_elsewhere or len(self._requested) >= MAX_PAGES:
                self._left_out = True
                continue
            self._requested.add(_without_scheme(next_page))
            self._pages.append(next_page)

    def cut(self) -> None:
        """Leave out all that is still to come."""
        self._left_out = True
        self._pages.clear()

    def check_complete(self) -> None:
        """Raise ListCutError if something was left out."""
        if self._left_out:
            message = "the TimeMap is too long, or has pages elsewhere: something was left out"
            raise ListCutError(message, self._archive.id)


def _read_parts(
    response: HttpResponse, read: _Parser[_ParsedT], found: Problems, name: str, *, is_whole: bool
) -> tuple[_ParsedT, ...]:
    """Return what a body says, read in pieces that end before an entry.

    is_whole: otherwise the last entry may be cut, and is left out.
    """
    parts: list[_ParsedT] = []
    text = b""
    while piece := response.body.read(_PIECE_BYTES):
        text += piece
        if len(piece) == _PIECE_BYTES:
            end = _last_entry(text) or len(text)  # no entry is so long: without one, it is other text
            parts.append(read(text[:end], response.url, found, name))
            text = text[end:]
    if not is_whole:
        text = text[: _last_entry(text)]
    if text or not parts:
        parts.append(read(text, response.url, found, name))
    return tuple(parts)


def _last_entry(text: bytes) -> int:
    """Return where the last entry begins; 0 if that is not known."""
    return max(text.rfind(begin) + len(begin) - 1 for begin in (b"\n<", b",<", b", <")) if b"<" in text else 0


def _page_links(parts: Sequence[LinkFormatTimeMap | ArchiveTimeMap]) -> list[TimeMapLink]:
    """Return the links to other pages of a list: those with dates of their own, in the same format."""
    itself = next((part.self_link for part in parts if part.self_link), None)
    own = (itself.start, itself.until) if itself else (None, None)
    return [
        link
        for part in parts
        for link in part.timemaps
        if (link.start or link.until)
        and (link.start, link.until) != own
        and (link.type or MEDIA_TYPE).partition(";")[0].strip().lower() == MEDIA_TYPE
    ]


def _is_timemap(parts: Sequence[LinkFormatTimeMap | ArchiveTimeMap]) -> bool:
    """Return whether any link of a TimeMap was read."""
    return any(part.original or part.self_link or part.timegate or part.timemaps or part.mementos for part in parts)


def _unreadable_reason(
    response: HttpResponse, parts: Sequence[LinkFormatTimeMap | ArchiveTimeMap], found: Problems
) -> str:
    """Return why no list of mementos could be read; nothing if one was.

    A TimeMap without mementos is readable: the archive has none. It is not if entries were left out, which may have
    been mementos. An empty body is a TimeMap only if the archive declares it as one.
    """
    if "html" in found.counts:
        return "HTML"
    if any(part.mementos for part in parts) or _page_links(parts):
        return ""
    if found.total:
        kinds = ", ".join(f"{count} {kind}" for kind, count in found.counts.items())
        return f"no readable memento ({kinds})" if _is_timemap(parts) else "other text"
    if _is_timemap(parts):
        return ""
    declared = (response.header("content-type") or "").partition(";")[0].strip().lower()
    return "" if declared == MEDIA_TYPE and not any(part.other_links for part in parts) else "no link of a TimeMap"


def _without_scheme(address: str) -> str:
    """Return an address without its scheme, which archives change from page to page."""
    return address.partition("://")[2]


_MAX_TIMEGATE_BYTES = 1 << 16  # of a response, which may be the memento itself: its headers are enough


@dataclass(frozen=True, slots=True)
class TimeGateResult:
    """The mementos that a TimeGate named: the one that it selected, and those of its Link header.

    knows_first, knows_last: whether the first and the last memento that the archive has are among them.
    """

    mementos: Mementos
    knows_first: bool = False
    knows_last: bool = False


async def query_timegate(archive: Archive, client: HttpClient, uri: str, date: str | None) -> TimeGateResult | None:
    """Return what the TimeGate of an archive names; None if the archive has no memento of the page.

    date: 14 digits; without one, the TimeGate selects the last memento.
    Raises ExcludedError, NotNowError, FailedError of kind `malformed` if the response does not name a memento.
    """
    headers = {} if date is None else {"Accept-Datetime": dates.to_http(date)}
    reply = await _query(archive, client, f"{archive.timegate}{normalize_input_url(uri)}", headers)
    with reply.body:
        if reply.header("memento-datetime") is None and not 300 <= reply.status < 400:
            if not has_content(archive, reply):
                return None
            raise _malformed_error(archive, "a page without Memento-Datetime")
        links = parse_link_headers(reply)
        if links.original is not None and not is_same_page(join_url(reply.url, links.original), uri):
            raise _malformed_error(archive, "a memento of another page")
    named = {join_url(reply.url, each.uri): each.datetime for each in links.mementos}
    address, moment = await _selected_memento(archive, client, uri, reply, named, headers)
    if url_host(address) is None:
        raise _malformed_error(archive, "a memento without a web URL")
    rows = [
        MementoTuple(when, archive.id, where) for where, when in {**named, address: moment}.items() if url_host(where)
    ]
    return TimeGateResult(
        Mementos(rows),
        any(each.first for each in links.mementos),
        date is None or any(each.last for each in links.mementos),
    )


async def _query(archive: Archive, client: HttpClient, address: str, headers: dict[str, str]) -> HttpResponse:
    """Return the response of a TimeGate. A body that is too large does not matter."""
    partial = PartialResponse()
    question = HttpRequest(address, RequestKind.INDEX, headers, _MAX_TIMEGATE_BYTES, max_redirects=0, partial=partial)
    try:
        return await client.send(archive, question)
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
    copy = parse_memento_url(target)
    if copy is not None and len(copy.datetime) == 14 and is_same_page(copy.uri, uri):
        return target, copy.datetime
    # It redirects to another TimeGate, or to a memento whose URL has no date.
    try:
        arrival = await ReplayClient(archive, client, Problems()).resolve(uri, target, headers, stop_at_date=True)
    except FailedError as error:  # of that URL: the TimeGate itself has responded
        raise _malformed_error(archive, f"a redirect that cannot be followed ({error})") from None
    if arrival is None:
        raise _malformed_error(archive, "a redirect to a memento that does not exist")
    arrival.response.body.close()
    return arrival.url, arrival.datetime


def _malformed_error(archive: Archive, found: str) -> FailedError:
    return FailedError(f"expected the response of a TimeGate, found {found}", archive.id, "malformed")
