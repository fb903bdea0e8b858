"""archive.today: TimeMaps and TimeGates of RFC 7089, behind captchas and under many names; no lists of what it has."""

from collections.abc import AsyncIterator
from dataclasses import replace

from unlost.archives import closeness
from unlost.archives.archive import Archive
from unlost.archives.asking.question import HttpClient
from unlost.archives.clients.memento import MementoClient
from unlost.archives.clients.today_courier import ArchiveTodayHttpClient
from unlost.archives.clients.urims import parse_memento_url, is_same_page
from unlost.archives.repository import FetchedCapture
from unlost.clock import Clock, SystemClock
from unlost.errors import FailedError
from unlost.formats.capture import Capture
from unlost.formats.problems import Problem, Problems


class ArchiveTodayClient:
    """archive.today as a repository.

    It keeps pages as a browser showed them, rewritten: what comes back is *migrated*. Where it has a TimeMap, that
    chooses the closest copy, since TimeGates are behind captchas more often.

    problems: what of its answers could not be read, counted.
    """

    def __init__(self, archive: Archive, client: HttpClient, *, clock: Clock | None = None) -> None:
        self.archive = archive
        self._client = ArchiveTodayHttpClient(archive, client, clock or SystemClock())
        self._memento = MementoClient(archive, self._client)

    @property
    def problems(self) -> Problems:
        """What could not be read, counted."""
        return self._memento.problems

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield the captures of an address, in the order of its TimeMap. Raises UriError, FailedError, NotNowError."""
        async for capture in self._memento.captures(uri):
            if not self._client.domains.is_own(capture.urim or ""):
                message = "expected a copy at one of the archive's names, found one elsewhere"
                self.problems.add(Problem("other-host", f"{self.archive.id} timemap", None, 0, message))
                continue
            yield self._with_captured_url(capture)

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Raise UnsupportedError: it lists nothing but the copies of single pages."""
        async for capture in self._memento.list_prefix(prefix, first, last):
            yield capture

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Return a copy as the archive shows it. Raises FailedError, NotNowError."""
        if capture.urim is None:
            return await self.get(capture.uri, capture.datetime)
        if not self._client.domains.is_own(capture.urim):
            raise FailedError("expected a capture of this archive, found another's", self.archive.id, "foreign")
        return await self._memento.fetch(capture)

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Return the copy closest to a date, or the last one. Raises UriError, DateError, FailedError, NotNowError."""
        if self.archive.timemap is None:
            return await self._memento.get(uri, date)
        best = await closeness.closest_capture(self.captures(uri), date)
        return None if best is None else await self.fetch(best)

    async def last_capture_date(self, uri: str) -> str | None:
        """Return when the last copy was captured, 14 digits. Raises UriError, FailedError, NotNowError."""
        if self.archive.timemap is None:
            return await self._memento.last_capture_date(uri)
        return max([capture.datetime async for capture in self.captures(uri)], default=None)

    def _with_captured_url(self, capture: Capture) -> Capture:
        """Return a capture with the very address that was captured: lists mix those of http and https."""
        copy = parse_memento_url(capture.urim or "")
        address = copy.uri if copy and is_same_page(copy.uri, capture.uri) else capture.uri
        return replace(capture, uri=address, migrated=self.archive.is_migrated("text/html"))
