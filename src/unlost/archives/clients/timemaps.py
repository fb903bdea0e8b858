"""Lists all copies of a page by its TimeMap, over all the pages that the TimeMap has."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

from unlost import uri as addresses
from unlost.archives.archive import Archive, Work
from unlost.archives.asking.question import Asks, Partial, Question, Reply
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

MAX_PAGE_BYTES = 1 << 28
"""The largest page of a TimeMap: about two million mementos. Of a larger one, what is beyond is left out."""

_PIECE_BYTES = 1 << 22  # of a page that are read at a time
_LONG = 1 << 20  # bytes of a list, which takes so long to read that others get their turn meanwhile

_ACCEPT = {"Accept": f"{MEDIA_TYPE}, */*;q=0.1"}

_Told = TypeVar("_Told", TimeMap, Listing)
_Read = Callable[[bytes, str, Problems, str], _Told]


class _Page(NamedTuple, Generic[_Told]):
    """One page.

    base: the address that its links are relative to. parts: what it says; a long page is read in several parts.
    is_cut: whether it is too long to be held. error: what ended the response before its body was whole.
    """

    base: str
    parts: tuple[_Told, ...]
    is_cut: bool = False
    error: BaseException | None = None


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
            page = await self._page(address, read, is_first=address == walk.begin)
            fresh = 0
            for count, capture in enumerate(self._captures(uri, page, recent)):
                if count % ROWS_AT_ONCE == 0 and page.error is None:
                    await asyncio.sleep(0)
                if capture is not None:
                    fresh += 1
                    yield capture
            if page.error is not None:
                raise page.error
            if fresh or not any(part.mementos for part in page.parts):
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
        page = await self._page(begin, read, is_first=True)
        if not page.parts:
            return
        walk = _Walk(self.archive, begin)
        seen = SeenMementos()
        size = 0
        for address in walk:
            is_first = address == begin
            if not is_first:
                page = await self._page(address, read, is_first=False)
            lists = [part.mementos for part in page.parts if part.mementos]
            for mementos in lists:
                yield mementos
                size += mementos.size
            if page.error is not None:
                raise page.error
            if page.is_cut or size > MAX_BYTES:
                walk.cut()
            # Most lists have one page, and then nothing needs to be remembered.
            elif not lists or (is_first and not _further(page.parts)) or max(map(seen.add, lists)) > 0:
                walk.go_on_from(page)
        walk.end()

    async def _page(self, address: str, read: _Read[_Told], *, is_first: bool) -> _Page[_Told]:
        """Return a page as `read` reads it; without parts if the archive has none.

        If the body is not whole, the page has what was received, and the error. Raises FailedError, CancelledError if
        that is nothing.
        """
        received = Partial()
        question = Question(address, Work.INDEX, _ACCEPT, MAX_PAGE_BYTES, partial=received)
        error: BaseException | None = None
        try:
            reply = await self.courier.ask(self.archive, question)
        except (FailedError, asyncio.CancelledError) as raised:
            if received.reply is None or received.reply.status != 200:
                raise
            reply, error = received.reply, raised
        with reply.body:
            if not holds_something(self.archive, reply):
                if not is_first:
                    raise FailedError("a page of the TimeMap is not there", self.archive.id, "status")
                return _Page(reply.url, ())
            found = Problems()
            read_all = partial(_read_parts, reply, read, found, f"{self.archive.id} timemap", is_whole=error is None)
            parts = read_all() if reply.size < _LONG else await asyncio.to_thread(read_all)
            if not _is_timemap(parts) and names_exclusion(reply):
                raise ExcludedError(f"{self.archive.name} does not show it", self.archive.id)
        reason = _unreadable(reply, parts, found)
        if reason and error is not None:
            raise error
        if reason:
            raise FailedError(f"expected a TimeMap in link-format, found {reason}", self.archive.id, "malformed")
        for kind, first in found.first.items():
            self.problems.add(first, found.counts[kind])
        return _Page(reply.url, parts, "too-large" in found.counts, error)

    def _captures(self, uri: str, page: _Page[TimeMap], recent: Recent) -> Iterator[Capture | None]:
        """Yield for every copy a capture, or None if it came before or has no address."""
        original = next((part.original for part in page.parts if part.original), None)
        if original is None or not same_page(original, uri):
            original = asked(uri)
        key = addresses.key(original)
        for memento in chain.from_iterable(part.mementos for part in page.parts):
            address = joined(page.base, memento.uri)
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
        for link in _further(page.parts):
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


def _read_parts(reply: Reply, read: _Read[_Told], found: Problems, name: str, *, is_whole: bool) -> tuple[_Told, ...]:
    """Return what a body says, read in pieces that end before an entry.

    is_whole: otherwise the last entry may be cut, and is left out.
    """
    parts: list[_Told] = []
    text = b""
    while piece := reply.body.read(_PIECE_BYTES):
        text += piece
        if len(piece) == _PIECE_BYTES:
            end = _last_entry(text) or len(text)  # no entry is so long: without one, it is other text
            parts.append(read(text[:end], reply.url, found, name))
            text = text[end:]
    if not is_whole:
        text = text[: _last_entry(text)]
    if text or not parts:
        parts.append(read(text, reply.url, found, name))
    return tuple(parts)


def _last_entry(text: bytes) -> int:
    """Return where the last entry begins; 0 if that is not known."""
    return max(text.rfind(begin) + len(begin) - 1 for begin in (b"\n<", b",<", b", <")) if b"<" in text else 0


def _further(parts: Sequence[TimeMap | Listing]) -> list[ListLink]:
    """Return the links to other pages of a list: those with dates of their own, in the same format."""
    itself = next((part.itself for part in parts if part.itself), None)
    own = (itself.start, itself.until) if itself else (None, None)
    return [
        link
        for part in parts
        for link in part.timemaps
        if (link.start or link.until)
        and (link.start, link.until) != own
        and (link.type or MEDIA_TYPE).partition(";")[0].strip().lower() == MEDIA_TYPE
    ]


def _is_timemap(parts: Sequence[TimeMap | Listing]) -> bool:
    """Return whether any link of a TimeMap was read."""
    return any(part.original or part.itself or part.timegate or part.timemaps or part.mementos for part in parts)


def _unreadable(reply: Reply, parts: Sequence[TimeMap | Listing], found: Problems) -> str:
    """Return why no list of mementos could be read; nothing if one was.

    A TimeMap without mementos is readable: the archive has none. It is not if entries were left out, which may have
    been mementos. An empty body is a TimeMap only if the archive declares it as one.
    """
    if "html" in found.counts:
        return "HTML"
    if any(part.mementos for part in parts) or _further(parts):
        return ""
    if found.total:
        kinds = ", ".join(f"{count} {kind}" for kind, count in found.counts.items())
        return f"no readable memento ({kinds})" if _is_timemap(parts) else "other text"
    if _is_timemap(parts):
        return ""
    declared = (reply.header("content-type") or "").partition(";")[0].strip().lower()
    return "" if declared == MEDIA_TYPE and not any(part.others for part in parts) else "no link of a TimeMap"


def _place(address: str) -> str:
    """Return an address without its scheme, which archives change from page to page."""
    return address.partition("://")[2]
