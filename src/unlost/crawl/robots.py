"""What robots.txt says, as RFC 9309 has it: kept for a day, asked for again only then."""

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urljoin

from protego import Protego

from unlost.archives.asking.addresses import parse
from unlost.archives.asking.agent import PRODUCT
from unlost.clock import Clock
from unlost.crawl.visitor import Answer, Request, Visitor
from unlost.errors import SiteError

MAX_BYTES = 500 << 10
"""How much of it is read: what RFC 9309 asks for at least."""

REDIRECTS = 5
"""How many are followed: as many as RFC 9309 asks for at least."""

KEPT_SECONDS = 86_400.0
"""How long it is believed: as long as RFC 9309 allows."""

RETRY_SECONDS = 3_600.0
"""When it is asked for again if it could not be had."""

MAX_DELAY_SECONDS = 60.0
"""The longest pause that it can ask for: with more, a site of a thousand pages would take weeks. What it asks beyond
that is told, and whoever wants to obey it sets the delay of the plan."""

_IN_MEMORY = 64  # hosts whose rules are kept ready; those of others are read again
_AGENT = re.compile(r"(\s*user[- ]?agent)(?:\s*:|\s)\s*([^#]*)", re.IGNORECASE)
_OURS = {PRODUCT[:length] for length in range(1, len(PRODUCT) + 1)} | {""}


@dataclass(frozen=True, slots=True)
class KeptRobots:
    """An answer to the question for robots.txt.

    asked: when, in seconds since 1970. status: None if there was no answer.
    """

    asked: float
    status: int | None
    text: bytes

    @property
    def is_for_now(self) -> bool:
        """Whether nobody can tell what is allowed: the site has a fault, or is not there, or wants to be left alone."""
        return self.status is None or self.status >= 500 or self.status == 429

    def is_fresh(self, now: float) -> bool:
        """Return whether it may still be believed."""
        age = now - self.asked
        return 0 <= age < (RETRY_SECONDS if self.is_for_now else KEPT_SECONDS)


class Rules:
    """What a site wants us to do.

    delay: seconds between two requests that it asks for, at most MAX_DELAY_SECONDS; None if it says nothing.
    asked_delay: the same, as it stands there.
    sitemaps: the addresses of its sitemaps, absolute.
    is_for_now: whether everything is forbidden since robots.txt could not be had.
    """

    def __init__(self, kept: KeptRobots, origin: str) -> None:
        self.is_for_now = kept.is_for_now
        # Whatever is no text of rules, and no fault of the site, forbids nothing: it is not there.
        text = kept.text if kept.status is not None and 200 <= kept.status < 300 else b""
        self._protego = Protego.parse(readable(text))
        self.asked_delay = _delay(self._protego)
        self.delay = None if self.asked_delay is None else min(self.asked_delay, MAX_DELAY_SECONDS)
        self.sitemaps = tuple(dict.fromkeys(urljoin(f"{origin}/", each) for each in self._protego.sitemaps))

    def allow(self, uri: str) -> bool:
        """Return whether an address may be asked for."""
        return not self.is_for_now and bool(self._protego.can_fetch(uri, PRODUCT))


def readable(text: bytes) -> str:
    r"""Return robots.txt as text, with the names of all programs that cannot be us made one.

    It says the same to us. A file that names thousands of programs, with thousands of rules for all of them, would take
    their product in time and memory otherwise.

    >>> readable(b"User-agent: a\nUser-agent: Un*\nDisallow: /")
    'User-agent: x\nUser-agent: Un*\nDisallow: /'
    """
    lines = text[:MAX_BYTES].decode("utf-8-sig", "replace").splitlines()
    return "\n".join(map(_with_known_agent, lines))


def _with_known_agent(line: str) -> str:
    found = _AGENT.match(line)
    if found is None or found[2].strip().lower().replace("*", "") in _OURS:
        return line
    return f"{found[1]}: x"


def _delay(protego: Protego) -> float | None:
    delay, rate = protego.crawl_delay(PRODUCT), protego.request_rate(PRODUCT)
    told = [] if delay is None else [float(delay)]
    if rate is not None:
        told.append(rate.seconds / rate.requests)
    return max(told, default=None)


class RobotsStore(Protocol):
    """Where answers are kept."""

    def get(self, origin: str) -> KeptRobots | None:
        """Return what is kept of a site; None if nothing is. origin: scheme, host and port."""
        ...

    def put(self, origin: str, kept: KeptRobots) -> None:
        """Keep an answer."""
        ...


class MemoryRobots:
    """Answers that are kept as long as the program runs, and there is room: what was put longest ago goes first.

    most_bytes: of all that is kept.
    """

    def __init__(self, most_bytes: int = 64 << 20) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[str, KeptRobots] = OrderedDict()
        self._bytes = 0

    def get(self, origin: str) -> KeptRobots | None:
        """Return what is kept of a site."""
        return self._kept.get(origin)

    def put(self, origin: str, kept: KeptRobots) -> None:
        """Keep an answer."""
        before = self._kept.pop(origin, None)
        self._bytes += _room(kept) - (0 if before is None else _room(before))
        self._kept[origin] = kept
        while self._bytes > self._most and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= _room(gone)


def _room(kept: KeptRobots) -> int:
    return 500 + len(kept.text)  # what Python needs for one without any text, about


class Robots:
    """Knows the rules of sites."""

    def __init__(self, visitor: Visitor, store: RobotsStore, clock: Clock) -> None:
        self._visitor = visitor
        self._store = store
        self._clock = clock
        self._ready: OrderedDict[str, tuple[KeptRobots, Rules]] = OrderedDict()

    def known(self, origin: str) -> Rules | None:
        """Return the rules of a site if they are known, and not too old."""
        kept = self._store.get(origin)
        if kept is None or not kept.is_fresh(self._clock.now()):
            return None
        ready = self._ready.pop(origin, None)
        rules = ready[1] if ready is not None and ready[0] == kept else Rules(kept, origin)
        self._ready[origin] = kept, rules
        if len(self._ready) > _IN_MEMORY:
            self._ready.popitem(last=False)
        return rules

    async def ask(self, origin: str, following: Callable[[Answer], None] | None = None) -> Rules:
        """Ask for the rules of a site, and keep them. following: gets every answer, also those that redirect."""
        kept = await self._asked(f"{origin}/robots.txt", following)
        self._store.put(origin, kept)
        self._ready.pop(origin, None)
        return Rules(kept, origin)

    async def _asked(self, uri: str, following: Callable[[Answer], None] | None) -> KeptRobots:
        now = self._clock.now()
        for _ in range(REDIRECTS + 1):
            try:
                answer = await self._visitor.visit(Request(uri, max_bytes=MAX_BYTES))
            except SiteError:
                return KeptRobots(now, None, b"")
            with answer.body:
                if following is not None:
                    following(answer)
                location = answer.header("location")
                if answer.status not in (301, 302, 303, 307, 308) or not location:
                    # One that broke off may lack what forbids: it could not be had.
                    is_lost = answer.truncated in ("time", "disconnect") and answer.status < 300
                    return KeptRobots(now, None if is_lost else answer.status, answer.body.read(MAX_BYTES))
            try:
                uri = str(parse(urljoin(uri, location.strip())))
            except ValueError:
                break
        return KeptRobots(now, 404, b"")  # as RFC 9309 has it: there is none
