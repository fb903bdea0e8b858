"""Lists all copies of a page by its TimeMap, over all the pages that the TimeMap has."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from unlost import uri as addresses
from unlost.archives.archive import Archive, Work
from unlost.archives.asking.question import Asks, Question, Reply
from unlost.archives.clients.cdx_query import ROWS_AT_ONCE
from unlost.archives.clients.recent import Recent
from unlost.archives.clients.statuses import holds_something, names_exclusion
from unlost.archives.clients.urims import host_of, hosts, joined, same_page
from unlost.archives.spelling import asked
from unlost.errors import ExcludedError, FailedError, ListCutError
from unlost.formats.capture import Capture
from unlost.formats.linkformat import MEDIA_TYPE, ListLink, TimeMap, read_timemap
from unlost.formats.mementos import Listing, Mementos, SeenMementos, read_mementos
from unlost.formats.problems import Problem, Problems

MAX_PAGES = 1_000
"""How many pages of one TimeMap are asked for. The largest archive gives a page of 10,000 copies and more."""

MAX_BYTES = 1 << 27
"""How much memory the copies of one TimeMap may take, over all its pages: about a million copies."""

_LONG = 1 << 20  # bytes of a list, which takes so long to read that others get their turn meanwhile

_ACCEPT = {"Accept": f"{MEDIA_TYPE}, */*;q=0.1"}

_NOTHING = Listing(Mementos())

_Told = TypeVar("_Told", TimeMap, Listing)


class _Page(NamedTuple, Generic[_Told]):
    """One page. base: the address that its links are relative to. is_cut: whether it is too long to be held."""

    base: str
    told: _Told
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class TimeMaps:
    """The TimeMaps of one archive, in link-format."""

    archive: Archive
    courier: Asks
    problems: Problems

    async def captures(self, uri: str, first: str | None = None) -> AsyncIterator[Capture]:
        """Yield the captures of a page, each once.

        first: the address of the TimeMap, if it is not the one of the registry.
        Raises FailedError of kind `malformed` if none can be read, ListCutError at the end if pages were left out.
        """

        def read(body: bytes, _: str, found: Problems, name: str) -> TimeMap:
            return read_timemap(body, found, name)

        walk = _Walk(self.archive, first or f"{self.archive.timemap}{asked(uri)}")
        recent = Recent()
        for address in walk:
            page = await self._page(address, read, TimeMap(), is_first=address == walk.begin)
            fresh = 0
            for count, capture in enumerate(self._captures(uri, page.base, page.told, recent)):
                if count % ROWS_AT_ONCE == 0:
                    await asyncio.sleep(0)
                if capture is not None:
                    fresh += 1
                    yield capture
            if fresh or not page.told.mementos:
                walk.go_on_from(page)
        walk.end()

    async def pages(self, uri: str, first: str | None = None) -> AsyncIterator[Mementos]:
        """Yield the copies of a page, those of each page of the TimeMap together; pages may repeat each other.

        Whatever is raised, now or by whoever cancels this, does not touch what was yielded: those copies are there.
        first: the address of the TimeMap, if it is not the one of the registry.
        Raises FailedError of kind `malformed` if none can be read, ListCutError at the end if pages were left out,
        or copies that are more than `MAX_BYTES`.
        """

        def read(body: bytes, base: str, found: Problems, name: str) -> Listing:
            return read_mementos(body, self.archive.id, base, found, name)

        begin = first or f"{self.archive.timemap}{asked(uri)}"
        page = await self._page(begin, read, _NOTHING, is_first=True)
        if page.told is _NOTHING:
            return
        walk = _Walk(self.archive, begin)
        seen = SeenMementos()
        size = 0
        for address in walk:
            is_first = address == begin
            if not is_first:
                page = await self._page(address, read, _NOTHING, is_first=False)
            copies = page.told.mementos
            if copies:
                yield copies
            size += copies.size
            if page.is_cut or size > MAX_BYTES:
                walk.cut()
            # Most lists have one page, and then nothing needs to be remembered.
            elif not copies or (is_first and not page.told.timemaps) or seen.add(copies):
                walk.go_on_from(page)
        walk.end()

    async def _page(
        self, address: str, read: Callable[[bytes, str, Problems, str], _Told], nothing: _Told, *, is_first: bool
    ) -> _Page[_Told]:
        """Return a page as `read` reads it, of body and base; `nothing` if there is none."""
        reply = await self.courier.ask(self.archive, Question(address, Work.INDEX, _ACCEPT))
        with reply.body:
            if not holds_something(self.archive, reply):
                if not is_first:
                    raise FailedError("a page of the TimeMap is not there", self.archive.id, "status")
                return _Page(reply.url, nothing)
            found = Problems()
            name = f"{self.archive.id} timemap"
            if reply.size < _LONG:
                told = read(reply.body.read(), reply.url, found, name)
            else:
                told = await asyncio.to_thread(lambda: read(reply.body.read(), reply.url, found, name))
            if not _is_timemap(told) and names_exclusion(reply):
                raise ExcludedError(f"{self.archive.name} does not show it", self.archive.id)
        if reason := _unreadable(reply, told, found):
            raise FailedError(f"expected a TimeMap in link-format, found {reason}", self.archive.id, "malformed")
        for kind, first in found.first.items():
            self.problems.add(first, found.counts[kind])
        return _Page(reply.url, told, is_cut="too-large" in found.counts)

    def _captures(self, uri: str, base: str, timemap: TimeMap, recent: Recent) -> Iterator[Capture | None]:
        """Yield for every copy a capture, or None if it came before or has no address."""
        original = timemap.original
        if original is None or not same_page(original, uri):
            original = asked(uri)
        key = addresses.key(original)
        for memento in timemap.mementos:
            address = joined(base, memento.uri)
            if host_of(address) is None:
                message = "expected a web address of a copy"
                self.problems.add(Problem("bad-uri", f"{self.archive.id} timemap", None, 0, message))
                yield None
            elif recent.is_new((address, memento.datetime)):
                yield Capture(original, key, memento.datetime, archive=self.archive.id, urim=address)
            else:
                yield None


class _Walk:
    """A way over the pages of a TimeMap: yields the address of each page that is to be asked for, once.

    begin: the first of them.
    """

    def __init__(self, archive: Archive, begin: str) -> None:
        self.begin = begin
        self._archive = archive
        self._pages, self._asked_for = deque([begin]), {_place(begin)}
        self._left_out = False

    def __iter__(self) -> Iterator[str]:
        while self._pages:
            yield self._pages.popleft()

    def go_on_from(self, page: _Page[TimeMap] | _Page[Listing]) -> None:
        """Take what a page leads to. A page that only repeats others leads nowhere: do not go on from it."""
        for link in _further(page.told):
            next_page = joined(page.base, link.uri)
            if _place(next_page) in self._asked_for:
                continue
            is_elsewhere = host_of(next_page) not in {*hosts(self._archive), host_of(page.base)}
            if is_elsewhere or len(self._asked_for) >= MAX_PAGES:
                self._left_out = True
                continue
            self._asked_for.add(_place(next_page))
            self._pages.append(next_page)

    def cut(self) -> None:
        """Leave out all that is still to come."""
        self._left_out = True
        self._pages.clear()

    def end(self) -> None:
        """Raise ListCutError if something was left out."""
        if self._left_out:
            message = "the TimeMap is too long, or has pages elsewhere: something was left out"
            raise ListCutError(message, self._archive.id)


def _further(told: TimeMap | Listing) -> list[ListLink]:
    """Return the links to other pages of a list: those with dates of their own, in the same format."""
    own = (told.itself.start, told.itself.until) if told.itself else (None, None)
    return [
        link
        for link in told.timemaps
        if (link.start or link.until)
        and (link.start, link.until) != own
        and (link.type or MEDIA_TYPE).partition(";")[0].strip().lower() == MEDIA_TYPE
    ]


def _is_timemap(told: TimeMap | Listing) -> bool:
    """Return whether any link of a TimeMap was read."""
    return bool(told.original or told.itself or told.timegate or told.timemaps or told.mementos)


def _unreadable(reply: Reply, told: TimeMap | Listing, found: Problems) -> str:
    """Return why no list of mementos could be read; nothing if one was.

    A TimeMap without mementos is readable: the archive has none. It is not if entries were left out, which may have
    been mementos. An empty body is a TimeMap only if the archive declares it as one.
    """
    if "html" in found.counts:
        return "HTML"
    if told.mementos or _further(told):
        return ""
    if found.total:
        kinds = ", ".join(f"{count} {kind}" for kind, count in found.counts.items())
        return f"no readable memento ({kinds})" if _is_timemap(told) else "other text"
    if _is_timemap(told):
        return ""
    declared = (reply.header("content-type") or "").partition(";")[0].strip().lower()
    return "" if declared == MEDIA_TYPE and not told.others else "no link of a TimeMap"


def _place(address: str) -> str:
    """Return an address without its scheme, which archives change from page to page."""
    return address.partition("://")[2]
