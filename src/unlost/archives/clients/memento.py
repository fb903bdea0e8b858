"""Archives that are asked as RFC 7089 has it: TimeMaps list the copies of a page, TimeGates find the closest one."""

from collections.abc import AsyncIterator

from unlost import dates
from unlost import uri as addresses
from unlost.archives import closeness
from unlost.archives.archive import Archive
from unlost.archives.asking.question import Asks
from unlost.archives.clients.cdx_server import CdxServer
from unlost.archives.clients.replay import Replay, links_of
from unlost.archives.clients.timemaps import TimeMaps
from unlost.archives.clients.urims import host_of, joined, raw_address, same_page
from unlost.archives.repository import StoredCopy
from unlost.archives.spelling import asked
from unlost.errors import ListCutError, UnsupportedError
from unlost.formats.capture import Capture
from unlost.formats.linkformat import MEDIA_TYPE
from unlost.formats.mementos import Memento, Mementos
from unlost.formats.problems import Problems


class MementoArchive:
    """An archive with a TimeMap, a TimeGate, or both; it lists what is below a prefix if it has a CDX server, too.

    problems: counts what could not be read in its responses.
    """

    def __init__(self, archive: Archive, courier: Asks) -> None:
        self.archive = archive
        self.problems = Problems()
        self._replay = Replay(archive, courier, self.problems)
        self._timemaps = TimeMaps(archive, courier, self.problems)
        self._cdx = CdxServer(archive, courier, self.problems)

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield all captures of one URL; their status and media type are known only from a CDX server.

        Without a TimeMap and a CDX server, the captures that the TimeGate names, then ListCutError: there may be
        others. Raises UriError.
        """
        if self.archive.timemap is not None:
            async for capture in self._timemaps.captures(uri):
                yield capture
        elif self.archive.cdx is not None:
            async for capture in self._cdx.captures(uri):
                yield capture
        elif self.archive.timegate is not None:
            async for capture in self._named_by_timegate(uri):
                yield capture
        else:
            raise UnsupportedError("it has neither a TimeMap nor a TimeGate", self.archive.id)

    async def pages(self, uri: str) -> AsyncIterator[Mementos]:
        """Yield the copies of one address, a page of the TimeMap at a time, as `TimeMaps.pages` does.

        Without a TimeMap, those that the TimeGate names, then ListCutError. Raises UriError.
        """
        if self.archive.timemap is not None:
            async for copies in self._timemaps.pages(uri):
                yield copies
            return
        async for capture in self.captures(uri):
            if capture.urim is not None:
                yield Mementos([Memento(capture.datetime, self.archive.id, capture.urim)])

    async def under(self, prefix: str, first: str | None = None, last: str | None = None) -> AsyncIterator[Capture]:
        """Yield all captures below a prefix, as `Repository` has it. Raises UnsupportedError without a CDX server."""
        if self.archive.cdx is None:
            raise UnsupportedError(f"it lists no addresses below {prefix[:80]}", self.archive.id)
        async for capture in self._cdx.under(prefix, first, last):
            yield capture

    async def fetch(self, capture: Capture) -> StoredCopy | None:
        """Return a copy, raw where the archive gives it so, else as it shows it. Raises FailedError, ExcludedError."""
        address = raw_address(self.archive, capture.datetime, capture.uri) or capture.urim
        if address is None and self.archive.cdx is not None:
            # A CDX row has no URI-M: the TimeGate or the TimeMap resolves it.
            return await self.get(capture.uri, capture.datetime)
        if address is None or host_of(address) is None:
            raise UnsupportedError("the capture has no address in this archive", self.archive.id)
        return await self._replay.copy(capture.uri, address, capture)

    async def get(self, uri: str, date: str | None = None) -> StoredCopy | None:
        """Return the copy closest to a date, by the TimeGate, or else by the TimeMap. Raises UriError, DateError."""
        moment = closeness.moment(date)
        if self.archive.timegate is None:
            return await self._get_listed(uri, date)
        headers = {} if date is None else {"Accept-Datetime": dates.to_http(moment)}
        gate = f"{self.archive.timegate}{asked(uri)}"
        if self.archive.replay is None:
            return await self._replay.copy(uri, gate, headers=headers)
        arrival = await self._replay.arrive(uri, gate, headers, stop_at_date=True)
        if arrival is None:
            return None
        arrival.reply.body.close()  # as the archive shows it, with a banner
        address = raw_address(self.archive, arrival.datetime, uri)
        return await self._replay.copy(uri, address or gate)

    async def crawl_date(self, uri: str) -> str | None:
        """Return when the last copy was captured, as the TimeGate says, or else the TimeMap."""
        if self.archive.timegate is None:
            return max([capture.datetime async for capture in self.captures(uri)], default=None)
        arrival = await self._replay.arrive(uri, f"{self.archive.timegate}{asked(uri)}", stop_at_date=True)
        if arrival is None:
            return None
        arrival.reply.body.close()
        named = [memento.datetime for memento in links_of(arrival.reply).mementos if memento.last]
        return max([arrival.datetime, *named])

    async def _get_listed(self, uri: str, date: str | None) -> StoredCopy | None:
        if self.archive.timemap is None:
            return await self._replay.copy(uri, self._replay.raw(closeness.moment(date), uri))
        best = await closeness.closest(self.captures(uri), date)
        return None if best is None else await self.fetch(best)

    async def _named_by_timegate(self, uri: str) -> AsyncIterator[Capture]:
        arrival = await self._replay.arrive(uri, f"{self.archive.timegate}{asked(uri)}", stop_at_date=True)
        if arrival is None:
            return
        arrival.reply.body.close()
        links = links_of(arrival.reply)
        lists = [
            link.uri
            for link in links.timemaps
            if (link.type or MEDIA_TYPE) == MEDIA_TYPE and host_of(link.uri) == host_of(arrival.reply.url)
        ]
        if lists:
            async for capture in self._timemaps.captures(uri, lists[0]):
                yield capture
            return
        original = links.original if links.original and same_page(links.original, uri) else asked(uri)
        key = addresses.key(original)
        named = {memento.datetime: joined(arrival.reply.url, memento.uri) for memento in links.mementos}
        for moment, address in sorted(({arrival.datetime: arrival.address} | named).items()):
            yield Capture(original, key, moment, archive=self.archive.id, urim=address)
        raise ListCutError("it has no TimeMap: only copies that its TimeGate names are listed", self.archive.id)
