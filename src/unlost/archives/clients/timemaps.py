"""Lists all copies of a page by its TimeMap, over all the pages that the TimeMap has."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from unlost import uri as addresses
from unlost.archives.archive import Archive, Work
from unlost.archives.asking.question import Asks, Question
from unlost.archives.clients.cdx_query import ROWS_AT_ONCE
from unlost.archives.clients.recent import Recent
from unlost.archives.clients.statuses import holds_something, names_exclusion
from unlost.archives.clients.urims import host_of, hosts, joined, same_page
from unlost.archives.spelling import asked
from unlost.errors import ExcludedError, FailedError, ListCutError
from unlost.formats.capture import Capture
from unlost.formats.linkformat import MEDIA_TYPE, ListLink, TimeMap, read_timemap
from unlost.formats.problems import Problem, Problems

MAX_PAGES = 1_000
"""How many pages of one TimeMap are asked for. The largest archive gives a page of 10,000 copies and more."""

_LONG = 1 << 20  # bytes of a list, which takes so long to read that others get their turn meanwhile

_ACCEPT = {"Accept": f"{MEDIA_TYPE}, */*;q=0.1"}


@dataclass(frozen=True, slots=True)
class TimeMaps:
    """The TimeMaps of one archive, in link-format."""

    archive: Archive
    courier: Asks
    problems: Problems

    async def captures(self, uri: str, first: str | None = None) -> AsyncIterator[Capture]:
        """Yield the captures of a page, each once.

        first: the address of the TimeMap, if it is not the one of the registry.
        Raises FailedError of kind `malformed` for what is no TimeMap, ListCutError at the end if pages were left out.
        """
        begin = first or f"{self.archive.timemap}{asked(uri)}"
        pages, asked_for = deque([begin]), {_place(begin)}
        recent = Recent()
        left_out = False
        while pages:
            page = pages.popleft()
            base, timemap = await self._page(page, is_first=page == begin)
            fresh = 0
            for count, capture in enumerate(self._captures(uri, base, timemap, recent)):
                if count % ROWS_AT_ONCE == 0:
                    await asyncio.sleep(0)
                if capture is not None:
                    fresh += 1
                    yield capture
            if timemap.mementos and not fresh:
                continue  # what leads on from a page that only repeats others leads nowhere
            for link in _further(timemap):
                next_page = joined(base, link.uri)
                if _place(next_page) in asked_for:
                    continue
                if len(asked_for) >= MAX_PAGES or host_of(next_page) not in {*hosts(self.archive), host_of(base)}:
                    left_out = True
                    continue
                asked_for.add(_place(next_page))
                pages.append(next_page)
        if left_out:
            raise ListCutError("the TimeMap has pages elsewhere, or too many: they were left out", self.archive.id)

    async def _page(self, address: str, *, is_first: bool) -> tuple[str, TimeMap]:
        """Return a page, and the address that its links are relative to."""
        reply = await self.courier.ask(self.archive, Question(address, Work.INDEX, _ACCEPT))
        with reply.body:
            if not holds_something(self.archive, reply):
                if not is_first:
                    raise FailedError("a page of the TimeMap is not there", self.archive.id, "status")
                return reply.url, TimeMap()
            found = Problems()
            name = f"{self.archive.id} timemap"
            if reply.size < _LONG:
                timemap = read_timemap(reply.body.read(), found, name)
            else:
                timemap = await asyncio.to_thread(lambda: read_timemap(reply.body.read(), found, name))
            is_nothing = timemap == TimeMap(others=timemap.others)
            if is_nothing and names_exclusion(reply):
                raise ExcludedError(f"{self.archive.name} does not show it", self.archive.id)
        if found.counts.get("html") or (is_nothing and found.total):
            said = "HTML" if found.counts.get("html") else "other text"
            raise FailedError(f"expected a TimeMap in link-format, found {said}", self.archive.id, "malformed")
        for kind, first in found.first.items():
            self.problems.add(first, found.counts[kind])
        return reply.url, timemap

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


def _further(timemap: TimeMap) -> list[ListLink]:
    """Return the links to other pages of a list: those with dates of their own, in the same format."""
    own = (timemap.itself.start, timemap.itself.until) if timemap.itself else (None, None)
    return [
        link
        for link in timemap.timemaps
        if (link.start or link.until)
        and (link.start, link.until) != own
        and (link.type or MEDIA_TYPE).partition(";")[0].strip().lower() == MEDIA_TYPE
    ]


def _place(address: str) -> str:
    """Return an address without its scheme, which archives change from page to page."""
    return address.partition("://")[2]
