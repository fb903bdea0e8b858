"""robots.txt as in RFC 9309: fetched once per origin, cached for a day."""

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urljoin

from protego import Protego

from unlost.clock import Clock
from unlost.crawl.fetcher import Fetcher, FetchRequest, FetchResponse
from unlost.errors import SiteError
from unlost.http.models import PRODUCT_TOKEN
from unlost.http.url import parse_url

MAX_ROBOTS_BYTES = 500 << 10
"""Bytes that are parsed: the minimum that RFC 9309 requires (section 2.5: 500 KiB)."""

MAX_REDIRECTS = 5
"""Redirects that are followed: the minimum that RFC 9309 requires (section 2.3.1.2)."""

TTL_SECONDS = 86_400.0
"""How long a response is cached: the maximum that RFC 9309 allows (section 2.4: 24 hours)."""

RETRY_SECONDS = 3_600.0
"""After how long an unreachable robots.txt is requested again."""

MAX_DELAY_SECONDS = 60.0
"""The longest Crawl-delay that is honoured: with a longer one, a large crawl would take weeks. A longer delay is
reported as `delay-capped`; users can honour it with `CrawlConfig.delay`.
"""

_MAX_PARSED = 64  # origins whose parsed rules are cached
_AGENT = re.compile(r"(\s*user[- ]?agent)(?:\s*:|\s)\s*([^#]*)", re.IGNORECASE)
_OWN_AGENT_NAMES = {PRODUCT_TOKEN[:length] for length in range(1, len(PRODUCT_TOKEN) + 1)} | {""}


@dataclass(frozen=True, slots=True)
class RobotsResponse:
    """A response to a request for robots.txt.

    Attributes:
        requested_at: In seconds since 1970.
        status: HTTP status; None if there was no response.
        text: The body.
    """

    requested_at: float
    status: int | None
    text: bytes

    @property
    def is_unreachable(self) -> bool:
        """Whether the file could not be fetched: network error or 5xx (RFC 9309 section 2.3.1.4), or 429."""
        return self.status is None or self.status >= 500 or self.status == 429

    def is_fresh(self, now: float) -> bool:
        """Return whether the response may still be used."""
        age = now - self.requested_at
        return 0 <= age < (RETRY_SECONDS if self.is_unreachable else TTL_SECONDS)


class RobotsRules:
    """The rules of one origin that apply to this crawler.

    Attributes:
        delay: Seconds between two requests (Crawl-delay or Request-rate), at most MAX_DELAY_SECONDS; None if not set.
        requested_delay: The same without the limit.
        sitemaps: Absolute URLs of the sitemaps.
        is_unreachable: Whether everything is disallowed because robots.txt could not be fetched.
    """

    def __init__(self, response: RobotsResponse, origin: str) -> None:
        self.is_unreachable = response.is_unreachable
        # Unavailable (4xx, unresolved redirects): everything is allowed (RFC 9309 section 2.3.1.3).
        text = response.text if response.status is not None and 200 <= response.status < 300 else b""
        self._protego = Protego.parse(merge_foreign_agents(text))
        self.requested_delay = _crawl_delay(self._protego)
        self.delay = None if self.requested_delay is None else min(self.requested_delay, MAX_DELAY_SECONDS)
        self.sitemaps = tuple(dict.fromkeys(urljoin(f"{origin}/", each) for each in self._protego.sitemaps))

    def allows(self, uri: str) -> bool:
        """Return whether a URL may be fetched."""
        return not self.is_unreachable and bool(self._protego.can_fetch(uri, PRODUCT_TOKEN))


def merge_foreign_agents(text: bytes) -> str:
    r"""Return robots.txt as text, with all user agents that cannot match ours replaced by `x`.

    The rules for our user agent stay the same. The parser stores every rule for every user agent of a group, so a file
    with thousands of both would otherwise take time and memory proportional to their product.

    >>> merge_foreign_agents(b"User-agent: a\nUser-agent: Un*\nDisallow: /")
    'User-agent: x\nUser-agent: Un*\nDisallow: /'
    """
    lines = text[:MAX_ROBOTS_BYTES].decode("utf-8-sig", "replace").splitlines()
    return "\n".join(map(_mask_foreign_agent, lines))


def _mask_foreign_agent(line: str) -> str:
    match = _AGENT.match(line)
    if match is None or match[2].strip().lower().replace("*", "") in _OWN_AGENT_NAMES:
        return line
    return f"{match[1]}: x"


def _crawl_delay(protego: Protego) -> float | None:
    delay, rate = protego.crawl_delay(PRODUCT_TOKEN), protego.request_rate(PRODUCT_TOKEN)
    delays = [] if delay is None else [float(delay)]
    if rate is not None:
        delays.append(rate.seconds / rate.requests)
    return max(delays, default=None)


class RobotsStore(Protocol):
    """Stores robots.txt responses by origin."""

    def get(self, origin: str) -> RobotsResponse | None:
        """Return the stored response of an origin (scheme, host and port); None if there is none."""
        ...

    def put(self, origin: str, response: RobotsResponse) -> None:
        """Store a response."""
        ...


class MemoryRobotsStore:
    """Stores responses in memory; when `max_bytes` is exceeded, the oldest ones are evicted."""

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        self._max_bytes = max_bytes
        self._responses: OrderedDict[str, RobotsResponse] = OrderedDict()
        self._bytes = 0

    def get(self, origin: str) -> RobotsResponse | None:
        """Return the stored response of an origin; None if there is none."""
        return self._responses.get(origin)

    def put(self, origin: str, response: RobotsResponse) -> None:
        """Store a response."""
        replaced = self._responses.pop(origin, None)
        self._bytes += _memory_size(response) - (0 if replaced is None else _memory_size(replaced))
        self._responses[origin] = response
        while self._bytes > self._max_bytes and len(self._responses) > 1:
            _, evicted = self._responses.popitem(last=False)
            self._bytes -= _memory_size(evicted)


def _memory_size(response: RobotsResponse) -> int:
    return 500 + len(response.text)  # 500 bytes: approximate overhead of the Python objects


class RobotsClient:
    """Fetches, stores and parses robots.txt."""

    def __init__(self, fetcher: Fetcher, store: RobotsStore, clock: Clock) -> None:
        self._fetcher = fetcher
        self._store = store
        self._clock = clock
        self._parsed: OrderedDict[str, tuple[RobotsResponse, RobotsRules]] = OrderedDict()

    def get_cached(self, origin: str) -> RobotsRules | None:
        """Return the rules of an origin if they are stored and fresh."""
        response = self._store.get(origin)
        if response is None or not response.is_fresh(self._clock.now()):
            return None
        parsed = self._parsed.pop(origin, None)
        rules = parsed[1] if parsed is not None and parsed[0] == response else RobotsRules(response, origin)
        self._parsed[origin] = response, rules
        if len(self._parsed) > _MAX_PARSED:
            self._parsed.popitem(last=False)
        return rules

    async def fetch(self, origin: str, on_response: Callable[[FetchResponse], None] | None = None) -> RobotsRules:
        """Fetch and store the rules of an origin.

        Args:
            origin: Scheme, host and port.
            on_response: Called with each response, including redirects.
        """
        response = await self._fetch_response(f"{origin}/robots.txt", on_response)
        self._store.put(origin, response)
        self._parsed.pop(origin, None)
        return RobotsRules(response, origin)

    async def _fetch_response(self, uri: str, on_response: Callable[[FetchResponse], None] | None) -> RobotsResponse:
        now = self._clock.now()
        for _ in range(MAX_REDIRECTS + 1):
            try:
                response = await self._fetcher.fetch(FetchRequest(uri, max_bytes=MAX_ROBOTS_BYTES))
            except SiteError:
                return RobotsResponse(now, None, b"")
            with response.body:
                if on_response is not None:
                    on_response(response)
                location = response.header("location")
                if response.status not in (301, 302, 303, 307, 308) or not location:
                    # A truncated file may lack a Disallow rule: treat it as unreachable.
                    is_lost = response.truncated in ("time", "disconnect") and response.status < 300
                    return RobotsResponse(
                        now, None if is_lost else response.status, response.body.read(MAX_ROBOTS_BYTES)
                    )
            try:
                uri = str(parse_url(urljoin(uri, location.strip())))
            except ValueError:
                break
        return RobotsResponse(now, 404, b"")  # too many redirects: unavailable (RFC 9309 section 2.3.1.2)
