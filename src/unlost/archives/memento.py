"""Client for archives that speak the Memento protocol (RFC 7089): TimeMap, TimeGate, or both."""

from collections.abc import AsyncIterator

from unlost import dates
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
from unlost.uri import keys
from unlost.uri.normalize import normalize_input_url


class MementoClient:
    """Client for an archive with a TimeMap, a TimeGate, or both. If it has a CDX server, prefixes can be listed, too.

    Attributes:
        problems: Counts what could not be read in responses.
    """

    def __init__(self, archive: Archive, client: HttpClient) -> None:
        self.archive = archive
        self.problems = Problems()
        self._replay = ReplayClient(archive, client, self.problems)
        self._timemaps = TimeMapClient(archive, client, self.problems)
        self._cdx = CdxServerClient(archive, client, self.problems)

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield all captures of a URL. Their status and media type are known only from a CDX server.

        Without a TimeMap and a CDX server, yields the captures that the TimeGate names, then raises ListCutError: there
        may be others. Raises UriError, too.
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
        """Yield the mementos of a URL, one page of the TimeMap at a time, as `TimeMapClient.pages` does.

        Without a TimeMap, yields those that the TimeGate names, then raises ListCutError. Raises UriError, too.
        """
        if self.archive.timemap is not None:
            async for mementos in self._timemaps.pages(uri):
                yield mementos
            return
        async for capture in self.captures(uri):
            if capture.urim is not None:
                yield Mementos([MementoTuple(capture.datetime, self.archive.id, capture.urim)])

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield all captures below a prefix, see `ArchiveClient.list_prefix`. Needs a CDX server."""
        if self.archive.cdx is None:
            raise UnsupportedError(f"it lists no addresses below {prefix[:80]}", self.archive.id)
        async for capture in self._cdx.list_prefix(prefix, first, last):
            yield capture

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Fetch a capture: raw, if the registry has a URL for that, else as displayed. Raises ArchiveError."""
        url = raw_memento_url(self.archive, capture.datetime, capture.uri) or capture.urim
        if url is None and self.archive.cdx is not None:
            # A CDX row has no URI-M: the TimeGate or the TimeMap resolves it.
            return await self.get(capture.uri, capture.datetime)
        if url is None or url_host(url) is None:
            raise UnsupportedError("the capture has no address in this archive", self.archive.id)
        return await self._replay.fetch(capture.uri, url, capture)

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Fetch the capture closest to a date, from the TimeGate or else the TimeMap. Raises UriError, DateError."""
        moment = datetime_negotiation.target_datetime(date)
        if self.archive.timegate is None:
            return await self._get_from_timemap(uri, date)
        headers = {} if date is None else {"Accept-Datetime": dates.to_http(moment)}
        timegate = f"{self.archive.timegate}{normalize_input_url(uri)}"
        if self.archive.replay is None:
            return await self._replay.fetch(uri, timegate, headers=headers)
        target = await self._replay.resolve(uri, timegate, headers, stop_at_date=True)
        if target is None:
            return None
        target.response.body.close()  # the archive displays it with a banner; the raw capture is fetched instead
        url = raw_memento_url(self.archive, target.datetime, uri)
        return await self._replay.fetch(uri, url or timegate)

    async def last_capture_date(self, uri: str) -> str | None:
        """Return the date of the last capture, from the TimeGate or else the TimeMap."""
        if self.archive.timegate is None:
            return max([capture.datetime async for capture in self.captures(uri)], default=None)
        target = await self._replay.resolve(
            uri, f"{self.archive.timegate}{normalize_input_url(uri)}", stop_at_date=True
        )
        if target is None:
            return None
        target.response.body.close()
        last = [memento.datetime for memento in parse_link_headers(target.response).mementos if memento.last]
        return max([target.datetime, *last])

    async def _get_from_timemap(self, uri: str, date: str | None) -> FetchedCapture | None:
        if self.archive.timemap is None:
            return await self._replay.fetch(uri, self._replay.raw_url(datetime_negotiation.target_datetime(date), uri))
        closest = await datetime_negotiation.closest_capture(self.captures(uri), date)
        return None if closest is None else await self.fetch(closest)

    async def _list_from_timegate(self, uri: str) -> AsyncIterator[Capture]:
        target = await self._replay.resolve(
            uri, f"{self.archive.timegate}{normalize_input_url(uri)}", stop_at_date=True
        )
        if target is None:
            return
        target.response.body.close()
        links = parse_link_headers(target.response)
        timemaps = [
            link.uri
            for link in links.timemaps
            if (link.type or MEDIA_TYPE) == MEDIA_TYPE and url_host(link.uri) == url_host(target.response.url)
        ]
        if timemaps:
            async for capture in self._timemaps.captures(uri, timemaps[0]):
                yield capture
            return
        original = links.original if links.original and is_same_page(links.original, uri) else normalize_input_url(uri)
        key = keys.key(original)
        mementos = {memento.datetime: join_url(target.response.url, memento.uri) for memento in links.mementos}
        for moment, url in sorted(({target.datetime: target.url} | mementos).items()):
            yield Capture(original, key, moment, archive=self.archive.id, urim=url)
        raise ListCutError("it has no TimeMap: only copies that its TimeGate names are listed", self.archive.id)
