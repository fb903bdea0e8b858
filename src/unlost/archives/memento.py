"""Client for archives that speak the Memento protocol (RFC 7089): TimeMap, TimeGate, or both."""

from collections.abc import AsyncIterator

from unlost import dates
from unlost import uri as addresses
from unlost.archives import datetime_negotiation
from unlost.archives.base import FetchedCapture
from unlost.archives.cdx_client import CdxServerClient
from unlost.archives.memento_urls import is_same_page, join_url, raw_memento_url, url_host
from unlost.archives.replay import ReplayClient, parse_link_headers
from unlost.archives.timemap import TimeMapClient
from unlost.capture import Capture
from unlost.errors import ListCutError, UnsupportedError
from unlost.http.models import HttpClient
from unlost.memento.timemap import MEDIA_TYPE, Mementos, MementoTuple
from unlost.problems import Problems
from unlost.registry.models import Archive
from unlost.uri.normalize import normalize_input_url


class MementoClient:
    """An archive with a TimeMap, a TimeGate, or both; it lists what is below a prefix if it has a CDX server, too.

    problems: counts what could not be read in its responses.
    """

    def __init__(self, archive: Archive, client: HttpClient) -> None:
        self.archive = archive
        self.problems = Problems()
        self._replay = ReplayClient(archive, client, self.problems)
        self._timemaps = TimeMapClient(archive, client, self.problems)
        self._cdx = CdxServerClient(archive, client, self.problems)

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
            async for capture in self._list_from_timegate(uri):
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
                yield Mementos([MementoTuple(capture.datetime, self.archive.id, capture.urim)])

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield all captures below a prefix, as `Repository` has it. Raises UnsupportedError without a CDX server."""
        if self.archive.cdx is None:
            raise UnsupportedError(f"it lists no addresses below {prefix[:80]}", self.archive.id)
        async for capture in self._cdx.list_prefix(prefix, first, last):
            yield capture

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Return a copy, raw where the archive gives it so, else as it shows it. Raises FailedError, ExcludedError."""
        address = raw_memento_url(self.archive, capture.datetime, capture.uri) or capture.urim
        if address is None and self.archive.cdx is not None:
            # A CDX row has no URI-M: the TimeGate or the TimeMap resolves it.
            return await self.get(capture.uri, capture.datetime)
        if address is None or url_host(address) is None:
            raise UnsupportedError("the capture has no address in this archive", self.archive.id)
        return await self._replay.fetch(capture.uri, address, capture)

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Return the copy closest to a date, by the TimeGate, or else by the TimeMap. Raises UriError, DateError."""
        moment = datetime_negotiation.target_datetime(date)
        if self.archive.timegate is None:
            return await self._get_from_timemap(uri, date)
        headers = {} if date is None else {"Accept-Datetime": dates.to_http(moment)}
        gate = f"{self.archive.timegate}{normalize_input_url(uri)}"
        if self.archive.replay is None:
            return await self._replay.fetch(uri, gate, headers=headers)
        arrival = await self._replay.resolve(uri, gate, headers, stop_at_date=True)
        if arrival is None:
            return None
        arrival.response.body.close()  # as the archive shows it, with a banner
        address = raw_memento_url(self.archive, arrival.datetime, uri)
        return await self._replay.fetch(uri, address or gate)

    async def last_capture_date(self, uri: str) -> str | None:
        """Return when the last copy was captured, as the TimeGate says, or else the TimeMap."""
        if self.archive.timegate is None:
            return max([capture.datetime async for capture in self.captures(uri)], default=None)
        arrival = await self._replay.resolve(
            uri, f"{self.archive.timegate}{normalize_input_url(uri)}", stop_at_date=True
        )
        if arrival is None:
            return None
        arrival.response.body.close()
        named = [memento.datetime for memento in parse_link_headers(arrival.response).mementos if memento.last]
        return max([arrival.datetime, *named])

    async def _get_from_timemap(self, uri: str, date: str | None) -> FetchedCapture | None:
        if self.archive.timemap is None:
            return await self._replay.fetch(uri, self._replay.raw_url(datetime_negotiation.target_datetime(date), uri))
        best = await datetime_negotiation.closest_capture(self.captures(uri), date)
        return None if best is None else await self.fetch(best)

    async def _list_from_timegate(self, uri: str) -> AsyncIterator[Capture]:
        arrival = await self._replay.resolve(
            uri, f"{self.archive.timegate}{normalize_input_url(uri)}", stop_at_date=True
        )
        if arrival is None:
            return
        arrival.response.body.close()
        links = parse_link_headers(arrival.response)
        lists = [
            link.uri
            for link in links.timemaps
            if (link.type or MEDIA_TYPE) == MEDIA_TYPE and url_host(link.uri) == url_host(arrival.response.url)
        ]
        if lists:
            async for capture in self._timemaps.captures(uri, lists[0]):
                yield capture
            return
        original = links.original if links.original and is_same_page(links.original, uri) else normalize_input_url(uri)
        key = addresses.key(original)
        named = {memento.datetime: join_url(arrival.response.url, memento.uri) for memento in links.mementos}
        for moment, address in sorted(({arrival.datetime: arrival.url} | named).items()):
            yield Capture(original, key, moment, archive=self.archive.id, urim=address)
        raise ListCutError("it has no TimeMap: only copies that its TimeGate names are listed", self.archive.id)
