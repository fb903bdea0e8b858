"""What robots.txt says, as RFC 9309 has it: kept for a day, asked for again only then."""

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
from unlost.http.url import parse_url
from unlost.http.user_agent import PRODUCT_TOKEN

MAX_ROBOTS_BYTES = 500 << 10
"""How much of it is read: what RFC 9309 asks for at least."""

MAX_REDIRECTS = 5
"""How many are followed: as many as RFC 9309 asks for at least."""

TTL_SECONDS = 86_400.0
"""How long it is believed: as long as RFC 9309 allows."""

RETRY_SECONDS = 3_600.0
"""When it is asked for again if it could not be had."""

MAX_DELAY_SECONDS = 60.0
"""The longest pause that it can ask for: with more, a site of a thousand pages would take weeks. What it asks beyond
that is told, and whoever wants to obey it sets the delay of the plan."""

_MAX_PARSED = 64  # hosts whose rules are kept ready; those of others are read again
_AGENT = re.compile(r"(\s*user[- ]?agent)(?:\s*:|\s)\s*([^#]*)", re.IGNORECASE)
_OWN_AGENT_NAMES = {PRODUCT_TOKEN[:length] for length in range(1, len(PRODUCT_TOKEN) + 1)} | {""}


@dataclass(frozen=True, slots=True)
class RobotsResponse:
    """An answer to the question for robots.txt.

    asked: when, in seconds since 1970. status: None if there was no answer.
    """

    requested_at: float
    status: int | None
    text: bytes

    @property
    def is_unreachable(self) -> bool:
        """Whether nobody can tell what is allowed: the site has a fault, or is not there, or wants to be left alone."""
        return self.status is None or self.status >= 500 or self.status == 429

    def is_fresh(self, now: float) -> bool:
        """Return whether it may still be believed."""
        age = now - self.requested_at
        return 0 <= age < (RETRY_SECONDS if self.is_unreachable else TTL_SECONDS)


class RobotsRules:
    """What a site wants us to do.

    delay: seconds between two requests that it asks for, at most MAX_DELAY_SECONDS; None if it says nothing.
    asked_delay: the same, as it stands there.
    sitemaps: the addresses of its sitemaps, absolute.
    is_for_now: whether everything is forbidden since robots.txt could not be had.
    """

    def __init__(self, response: RobotsResponse, origin: str) -> None:
        self.is_unreachable = response.is_unreachable
        # Whatever is no text of rules, and no fault of the site, forbids nothing: it is not there.
        text = response.text if response.status is not None and 200 <= response.status < 300 else b""
        self._protego = Protego.parse(merge_foreign_agents(text))
        self.requested_delay = _crawl_delay(self._protego)
        self.delay = None if self.requested_delay is None else min(self.requested_delay, MAX_DELAY_SECONDS)
        self.sitemaps = tuple(dict.fromkeys(urljoin(f"{origin}/", each) for each in self._protego.sitemaps))

    def allows(self, uri: str) -> bool:
        """Return whether an address may be asked for."""
        return not self.is_unreachable and bool(self._protego.can_fetch(uri, PRODUCT_TOKEN))


def merge_foreign_agents(text: bytes) -> str:
    r"""Return robots.txt as text, with the names of all programs that cannot be us made one.

    It says the same to us. A file that names thousands of programs, with thousands of rules for all of them, would take
    their product in time and memory otherwise.

    >>> merge_foreign_agents(b"User-agent: a\nUser-agent: Un*\nDisallow: /")
    'User-agent: x\nUser-agent: Un*\nDisallow: /'
    """
    lines = text[:MAX_ROBOTS_BYTES].decode("utf-8-sig", "replace").splitlines()
    return "\n".join(map(_mask_foreign_agent, lines))


def _mask_foreign_agent(line: str) -> str:
    found = _AGENT.match(line)
    if found is None or found[2].strip().lower().replace("*", "") in _OWN_AGENT_NAMES:
        return line
    return f"{found[1]}: x"


def _crawl_delay(protego: Protego) -> float | None:
    delay, rate = protego.crawl_delay(PRODUCT_TOKEN), protego.request_rate(PRODUCT_TOKEN)
    told = [] if delay is None else [float(delay)]
    if rate is not None:
        told.append(rate.seconds / rate.requests)
    return max(told, default=None)


class RobotsStore(Protocol):
    """Where answers are kept."""

    def get(self, origin: str) -> RobotsResponse | None:
        """Return what is kept of a site; None if nothing is. origin: scheme, host and port."""
        ...

    def put(self, origin: str, response: RobotsResponse) -> None:
        """Keep an answer."""
        ...


class MemoryRobotsStore:
    """Answers that are kept as long as the program runs, and there is room: what was put longest ago goes first.

    most_bytes: of all that is kept.
    """

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        self._max_bytes = max_bytes
        self._responses: OrderedDict[str, RobotsResponse] = OrderedDict()
        self._bytes = 0

    def get(self, origin: str) -> RobotsResponse | None:
        """Return what is kept of a site."""
        return self._responses.get(origin)

    def put(self, origin: str, response: RobotsResponse) -> None:
        """Keep an answer."""
        before = self._responses.pop(origin, None)
        self._bytes += _memory_size(response) - (0 if before is None else _memory_size(before))
        self._responses[origin] = response
        while self._bytes > self._max_bytes and len(self._responses) > 1:
            _, gone = self._responses.popitem(last=False)
            self._bytes -= _memory_size(gone)


def _memory_size(kept: RobotsResponse) -> int:
    return 500 + len(kept.text)  # what Python needs for one without any text, about


class RobotsClient:
    """Knows the rules of sites."""

    def __init__(self, fetcher: Fetcher, store: RobotsStore, clock: Clock) -> None:
        self._fetcher = fetcher
        self._store = store
        self._clock = clock
        self._parsed: OrderedDict[str, tuple[RobotsResponse, RobotsRules]] = OrderedDict()

    def get_cached(self, origin: str) -> RobotsRules | None:
        """Return the rules of a site if they are known, and not too old."""
        kept = self._store.get(origin)
        if kept is None or not kept.is_fresh(self._clock.now()):
            return None
        ready = self._parsed.pop(origin, None)
        rules = ready[1] if ready is not None and ready[0] == kept else RobotsRules(kept, origin)
        self._parsed[origin] = kept, rules
        if len(self._parsed) > _MAX_PARSED:
            self._parsed.popitem(last=False)
        return rules

    async def fetch(self, origin: str, on_response: Callable[[FetchResponse], None] | None = None) -> RobotsRules:
        """Ask for the rules of a site, and keep them. following: gets every answer, also those that redirect."""
        kept = await self._fetch_response(f"{origin}/robots.txt", on_response)
        self._store.put(origin, kept)
        self._parsed.pop(origin, None)
        return RobotsRules(kept, origin)

    async def _fetch_response(self, uri: str, on_response: Callable[[FetchResponse], None] | None) -> RobotsResponse:
        now = self._clock.now()
        for _ in range(MAX_REDIRECTS + 1):
            try:
                answer = await self._fetcher.fetch(FetchRequest(uri, max_bytes=MAX_ROBOTS_BYTES))
            except SiteError:
                return RobotsResponse(now, None, b"")
            with answer.body:
                if on_response is not None:
                    on_response(answer)
                location = answer.header("location")
                if answer.status not in (301, 302, 303, 307, 308) or not location:
                    # One that broke off may lack what forbids: it could not be had.
                    is_lost = answer.truncated in ("time", "disconnect") and answer.status < 300
                    return RobotsResponse(now, None if is_lost else answer.status, answer.body.read(MAX_ROBOTS_BYTES))
            try:
                uri = str(parse_url(urljoin(uri, location.strip())))
            except ValueError:
                break
        return RobotsResponse(now, 404, b"")  # as RFC 9309 has it: there is none
