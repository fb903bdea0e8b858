"""Client for archive.today: TimeMaps and TimeGates behind captchas and under many domains."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from urllib.parse import urlsplit

from unlost.archives import datetime_negotiation
from unlost.archives.base import FetchedCapture
from unlost.archives.memento import MementoClient
from unlost.archives.memento_urls import is_same_page, join_url, parse_memento_url
from unlost.capture import Capture
from unlost.clock import Clock, SystemClock
from unlost.errors import FailedError, NotNowError
from unlost.http.models import HttpClient, HttpRequest, HttpResponse
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive

DOMAINS = frozenset(f"archive.{ending}" for ending in ("today", "ph", "is", "md", "li", "fo", "vn"))
"""Its names, as its own front page and the lists of aggregators had them from 2012 to 2026."""
_ORIGIN = re.compile(r"https?://[^/?#<>\"\s]+", re.IGNORECASE)
_DOTTED_DATE = re.compile(r"/(\d{4})\.(\d{2})\.(\d{2})-(\d{6})(?=/)", re.ASCII)
_URL_HEADERS = ("location", "content-location", "link")


class ArchiveTodayDomains:
    """Brings all its names to the one of the registry, and that one to the name at which it is just now.

    home: scheme and host of the registry's addresses.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.registered = _origin(archive.timemap or archive.timegate or "") or "http://archive.today"
        self._current = self.registered

    @property
    def archive(self) -> Archive:
        """The archive with addresses at its present name, so that what that says counts as its own."""
        places = {
            field: self._current + value.removeprefix(self.registered)
            for field in ("timemap", "timegate")
            if (value := getattr(self._archive, field)) is not None and value.startswith(self.registered)
        }
        return replace(self._archive, **places)

    def is_own(self, url: str) -> bool:
        """Return whether an address is one of this archive, under any of its names."""
        origin = _origin(url)
        return origin is not None and (origin in (self.registered, self._current) or _host(origin) in DOMAINS)

    def at_current_domain(self, url: str) -> str:
        """Return an address of the archive at its present name; others as they are."""
        return self._current + url.removeprefix(_origin(url) or "") if self.is_own(url) else url

    def follow_move(self, url: str, target: str) -> bool:
        """Return whether a redirect leads only to another name of the archive, and remember that name."""
        origin, before = _origin(target), _origin(url)
        if origin is None or before is None or origin == before or not self.is_own(target):
            return False
        if target.removeprefix(origin) != url.removeprefix(before):
            return False
        self._current = origin
        return True

    def normalize_response(self, response: HttpResponse) -> HttpResponse:
        """Return an answer as if the archive had one name: where it is from, and where its headers lead."""
        headers = tuple(
            (name, self._at_registered_domain(value)) if name.lower() in _URL_HEADERS else (name, value)
            for name, value in response.headers
        )
        return replace(response, url=self._at_registered_domain(response.url), headers=headers)

    def _at_registered_domain(self, text: str) -> str:
        """Return a text with all addresses of the archive at home, and dates in the form that other archives have."""
        text = _ORIGIN.sub(lambda found: self.registered if self.is_own(found[0]) else found[0], text)
        return _DOTTED_DATE.sub(r"/\1\2\3\4", text)


def _origin(url: str) -> str | None:
    found = _ORIGIN.match(url)
    return found[0] if found else None


def _host(origin: str) -> str | None:
    try:
        return (urlsplit(origin).hostname or "").removeprefix("www.")
    except ValueError:
        return None


CAPTCHA_PAUSE_SECONDS = 3600.0
"""After a captcha, by our own choice: who goes on asking only makes it last, also for the person at this machine."""
CAPTCHA_ADVICE = (
    "open it in a browser at this machine and answer its captcha, wait some hours, or leave this archive out"
)
_CAPTCHA_MARKS = (b"captcha", b"please complete the security check", b"one more step")
_INSPECTED_BYTES = 1 << 16  # bytes of a page: the marks stand in its head
_MAX_MOVES = 4  # from name to name, for one question


class ArchiveTodayHttpClient:
    """A courier for one client of archive.today."""

    def __init__(self, archive: Archive, client: HttpClient, clock: Clock) -> None:
        self.domains = ArchiveTodayDomains(archive)
        self._client = client
        self._clock = clock
        self._paused_until = 0.0

    async def send(self, archive: Archive, request: HttpRequest) -> HttpResponse:
        """Return the answer, with all names of the archive brought to one. Raises NotNowError, FailedError.

        A captcha is FailedError of kind `status`; for an hour after it nothing is sent, which is NotNowError.
        """
        if self._clock.now() < self._paused_until:
            raise NotNowError(f"it asked for a captcha: {CAPTCHA_ADVICE}", archive.id, self._paused_until, "blocked")
        url, follows, moves = request.url, request.max_redirects, 0
        while True:
            reply = await self._send_once(
                archive, replace(request, url=self.domains.at_current_domain(url), max_redirects=0)
            )
            link = reply.header("location") if 300 <= reply.status < 400 else None
            if link is None:
                break
            target = join_url(reply.url, link)
            if moves < _MAX_MOVES and self.domains.follow_move(reply.url, target):
                moves += 1
            elif request.max_redirects == 0:
                break
            elif follows == 0 or not self.domains.is_own(target):
                reply.body.close()
                raise FailedError(f"it redirects to {ascii(target)[1:-1][:100]}", archive.id, "redirects")
            else:
                follows -= 1
            reply.body.close()
            url = target
        self._check_captcha(archive, reply)
        return self.domains.normalize_response(reply)

    async def _send_once(self, archive: Archive, request: HttpRequest) -> HttpResponse:
        try:
            return await self._client.send(self.domains.archive, request)
        except NotNowError as error:
            message = f"{error}: it may want a captcha: {CAPTCHA_ADVICE}"
            raise NotNowError(message, archive.id, error.until, error.reason) from error

    def _check_captcha(self, archive: Archive, response: HttpResponse) -> None:
        """Raise FailedError for a page that asks for a captcha."""
        if response.header("memento-datetime") is not None:
            return
        head = response.body.read(_INSPECTED_BYTES).lower()
        response.body.seek(0)
        if head.lstrip()[:1] == b"<" and b"<html" in head and any(mark in head for mark in _CAPTCHA_MARKS):
            response.body.close()
            self._paused_until = self._clock.now() + CAPTCHA_PAUSE_SECONDS
            raise FailedError(f"it asks for a captcha: {CAPTCHA_ADVICE}", archive.id, "status")


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
        best = await datetime_negotiation.closest_capture(self.captures(uri), date)
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
