"""Client for archive.today, which has TimeMaps and TimeGates, many domains, and captchas.

It lists no prefixes, rewrites the HTML of its captures (a migrated format), and responds to frequent requests with a
captcha or 429. An HTTP client of its own maps all its domains to the one in the registry, so that the Memento client
and the rate limits treat them as one archive.
"""

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
"""Its domains, as its front page and the lists of aggregators named them from 2012 to 2026."""
CAPTCHA_PAUSE_SECONDS = 3600.0
"""Pause after a captcha. A choice of unlost: further requests prolong the captcha, also for the user's browser."""
CAPTCHA_ADVICE = (
    "open it in a browser at this machine and answer its captcha, wait some hours, or leave this archive out"
)
_CAPTCHA_MARKS = (b"captcha", b"please complete the security check", b"one more step")
_INSPECTED_BYTES = 1 << 16  # beginning of a page that is searched for these
_MAX_MOVES = 4  # redirects between domains for one request
_ORIGIN = re.compile(r"https?://[^/?#<>\"\s]+", re.IGNORECASE)
_DOTTED_DATE = re.compile(r"/(\d{4})\.(\d{2})\.(\d{2})-(\d{6})(?=/)", re.ASCII)  # another form of dates in its URLs
_URL_HEADERS = ("location", "content-location", "link")


class ArchiveTodayDomains:
    """Maps all domains of the archive to the one in the registry, and that one to the current domain.

    Attributes:
        registered: Scheme and host of the registry's URLs.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.registered = _origin(archive.timemap or archive.timegate or "") or "http://archive.today"
        self._current = self.registered

    @property
    def archive(self) -> Archive:
        """The archive with URLs at its current domain, so that the client treats its responses as the archive's own."""
        urls = {
            field: self._current + value.removeprefix(self.registered)
            for field in ("timemap", "timegate")
            if (value := getattr(self._archive, field)) is not None and value.startswith(self.registered)
        }
        return replace(self._archive, **urls)

    def is_own(self, url: str) -> bool:
        """Return whether a URL is on one of the archive's domains."""
        origin = _origin(url)
        return origin is not None and (origin in (self.registered, self._current) or _host(origin) in DOMAINS)

    def at_current_domain(self, url: str) -> str:
        """Return a URL of the archive at its current domain; any other URL is returned unchanged."""
        return self._current + url.removeprefix(_origin(url) or "") if self.is_own(url) else url

    def follow_move(self, url: str, target: str) -> bool:
        """Return whether a redirect only changes the domain, and if so, make it the current one."""
        origin, old_origin = _origin(target), _origin(url)
        if origin is None or old_origin is None or origin == old_origin or not self.is_own(target):
            return False
        if target.removeprefix(origin) != url.removeprefix(old_origin):
            return False
        self._current = origin
        return True

    def normalize_response(self, response: HttpResponse) -> HttpResponse:
        """Return a response with all URLs of the archive at the registered domain, in the URL and the headers."""
        headers = tuple(
            (name, self._at_registered_domain(value)) if name.lower() in _URL_HEADERS else (name, value)
            for name, value in response.headers
        )
        return replace(response, url=self._at_registered_domain(response.url), headers=headers)

    def _at_registered_domain(self, text: str) -> str:
        """Return a text with the registered domain in all URLs of the archive, and dates as 14 digits."""
        text = _ORIGIN.sub(lambda match: self.registered if self.is_own(match[0]) else match[0], text)
        return _DOTTED_DATE.sub(r"/\1\2\3\4", text)


def _origin(url: str) -> str | None:
    match = _ORIGIN.match(url)
    return match[0] if match else None


def _host(origin: str) -> str | None:
    try:
        return (urlsplit(origin).hostname or "").removeprefix("www.")
    except ValueError:
        return None


class ArchiveTodayHttpClient:
    """An `HttpClient` for archive.today that handles its domains and captchas."""

    def __init__(self, archive: Archive, client: HttpClient, clock: Clock) -> None:
        self.domains = ArchiveTodayDomains(archive)
        self._client = client
        self._clock = clock
        self._paused_until = 0.0

    async def send(self, archive: Archive, request: HttpRequest) -> HttpResponse:
        """Send a request and return the response, with all URLs of the archive at the registered domain.

        Raises:
            FailedError: The request failed; of kind `status` for a captcha.
            NotNowError: The archive must not be queried now, for example within `CAPTCHA_PAUSE_SECONDS` of a captcha.
        """
        if self._clock.now() < self._paused_until:
            raise NotNowError(f"it asked for a captcha: {CAPTCHA_ADVICE}", archive.id, self._paused_until, "blocked")
        url, follows, moves = request.url, request.max_redirects, 0
        while True:
            response = await self._send_once(
                archive, replace(request, url=self.domains.at_current_domain(url), max_redirects=0)
            )
            location = response.header("location") if 300 <= response.status < 400 else None
            if location is None:
                break
            target = join_url(response.url, location)
            if moves < _MAX_MOVES and self.domains.follow_move(response.url, target):
                moves += 1
            elif request.max_redirects == 0:
                break
            elif follows == 0 or not self.domains.is_own(target):
                response.body.close()
                raise FailedError(f"it redirects to {ascii(target)[1:-1][:100]}", archive.id, "redirects")
            else:
                follows -= 1
            response.body.close()
            url = target
        self._check_captcha(archive, response)
        return self.domains.normalize_response(response)

    async def _send_once(self, archive: Archive, request: HttpRequest) -> HttpResponse:
        try:
            return await self._client.send(self.domains.archive, request)
        except NotNowError as error:
            message = f"{error}: it may want a captcha: {CAPTCHA_ADVICE}"
            raise NotNowError(message, archive.id, error.until, error.reason) from error

    def _check_captcha(self, archive: Archive, response: HttpResponse) -> None:
        """Raise FailedError if a response asks for a captcha. Captures are exempt, since they may contain such text."""
        if response.header("memento-datetime") is not None:
            return
        head = response.body.read(_INSPECTED_BYTES).lower()
        response.body.seek(0)
        if head.lstrip()[:1] == b"<" and b"<html" in head and any(mark in head for mark in _CAPTCHA_MARKS):
            response.body.close()
            self._paused_until = self._clock.now() + CAPTCHA_PAUSE_SECONDS
            raise FailedError(f"it asks for a captcha: {CAPTCHA_ADVICE}", archive.id, "status")


class ArchiveTodayClient:
    """Client for archive.today.

    Its captures are rewritten pages, as a browser rendered them, so all are migrated. If the archive has a TimeMap, the
    closest capture is selected from it, because TimeGates ask for a captcha more often.

    Attributes:
        problems: Counts what could not be read in responses.
    """

    def __init__(self, archive: Archive, client: HttpClient, *, clock: Clock | None = None) -> None:
        self.archive = archive
        self._client = ArchiveTodayHttpClient(archive, client, clock or SystemClock())
        self._memento = MementoClient(archive, self._client)

    @property
    def problems(self) -> Problems:
        """Counts what could not be read in responses."""
        return self._memento.problems

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield the captures of a URL, in the order of the TimeMap. Raises UriError, FailedError, NotNowError."""
        async for capture in self._memento.captures(uri):
            if not self._client.domains.is_own(capture.urim or ""):
                message = "expected a copy at one of the archive's names, found one elsewhere"
                self.problems.add(Problem("other-host", f"{self.archive.id} timemap", None, 0, message))
                continue
            yield self._with_captured_url(capture)

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Raise UnsupportedError: the archive lists only the captures of single pages."""
        async for capture in self._memento.list_prefix(prefix, first, last):
            yield capture

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Fetch a capture as the archive shows it. Raises FailedError, NotNowError."""
        if capture.urim is None:
            return await self.get(capture.uri, capture.datetime)
        if not self._client.domains.is_own(capture.urim):
            raise FailedError("expected a capture of this archive, found another's", self.archive.id, "foreign")
        return await self._memento.fetch(capture)

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Fetch the capture closest to a date, or the last one. Raises UriError, DateError, ArchiveError."""
        if self.archive.timemap is None:
            return await self._memento.get(uri, date)
        closest = await datetime_negotiation.closest_capture(self.captures(uri), date)
        return None if closest is None else await self.fetch(closest)

    async def last_capture_date(self, uri: str) -> str | None:
        """Return the date of the last capture, 14 digits. Raises UriError, FailedError, NotNowError."""
        if self.archive.timemap is None:
            return await self._memento.last_capture_date(uri)
        return max([capture.datetime async for capture in self.captures(uri)], default=None)

    def _with_captured_url(self, capture: Capture) -> Capture:
        """Return a capture with the URL that was captured: a TimeMap lists those of http and https together."""
        memento = parse_memento_url(capture.urim or "")
        url = memento.uri if memento and is_same_page(memento.uri, capture.uri) else capture.uri
        return replace(capture, uri=url, migrated=self.archive.is_migrated("text/html"))
