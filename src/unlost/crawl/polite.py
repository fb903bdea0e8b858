"""Visits pages as their hosts wish: as robots.txt allows, one at a time, with pauses, and later if they say so."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from unlost.archives.asking.addresses import Address, parse
from unlost.archives.manners.admission import seconds_to_wait
from unlost.clock import Clock
from unlost.crawl.robots import MAX_DELAY_SECONDS, Robots, RobotsStore, Rules
from unlost.crawl.visitor import Answer, Request, Visitor
from unlost.errors import RobotsError, SiteError, SiteWaitError

Tell = Callable[[str, Mapping[str, object]], None]
"""Gets a word for what happened, and what there is to say about it; docs/crawl.md lists them."""

PATIENCE_SECONDS = 300.0
"""How long a host may keep us waiting before it is left for another run."""

_BUSY_SECONDS = 30.0  # to wait for a host that says 429 or 503 and not for how long; four times as long the next time
_TRIES = 3  # to get something else than 429 or 503
_LONGEST_TOOK = 30.0  # seconds of pause at most since a host was slow
_LOOK_SECONDS = 1.0  # how long to wait at once, before looking whether to stop


class StoppedError(Exception):
    """Somebody wants to stop, who would have had to wait. Never seen by users."""


@dataclass(slots=True)
class _Host:
    """What is known of a host.

    free_at: when it may be asked next, in seconds since 1970. told_until: the same, if it was the host that said so.
    """

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    free_at: float = 0.0
    told_until: float = 0.0


class PoliteVisitor:
    """Visits pages politely; one event loop uses it.

    delay: seconds between two requests to one host, at least.
    patience: how many seconds a host may keep us waiting by saying so.
    should_stop: is asked while there is nothing to do but wait.
    """

    def __init__(
        self,
        visitor: Visitor,
        store: RobotsStore,
        clock: Clock,
        delay: float,
        *,
        patience: float = PATIENCE_SECONDS,
        tell: Tell = lambda _, __: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._visitor = visitor
        self._robots = Robots(visitor, store, clock)
        self._clock = clock
        self._delay = delay
        self._patience = patience
        self._tell = tell
        self._should_stop = should_stop
        self._hosts: dict[str, _Host] = {}
        self._told: set[str] = set()

    async def rules(self, uri: str) -> Rules:
        """Return the rules for an address, asked for in turn if they are not known. Raises SiteWaitError, SiteError."""
        address = _address(uri)
        host = self._host(address.place.host)
        async with host.turn:
            return await self._rules(host, address.origin)

    async def visit(self, request: Request) -> Answer:
        """Return the answer, once it is this request's turn.

        429 and 503 are obeyed: it is asked again, some times; then they are the answer. Raises RobotsError for what
        robots.txt forbids, SiteWaitError for a host that wants us to wait for longer than we are ready to, SiteError.
        """
        address = _address(request.uri)
        host = self._host(address.place.host)
        async with host.turn:
            rules = await self._rules(host, address.origin)
            if not rules.allow(str(address)):
                what = "could not be had" if rules.is_for_now else "does not want it"
                raise RobotsError(f"{address.place.host[:100]}: robots.txt {what}", is_for_now=rules.is_for_now)
            for tries in range(_TRIES):
                answer = await self._asked(host, request, rules)
                if answer.status not in (429, 503) or tries == _TRIES - 1:
                    return answer
                answer.body.close()
                self._told_to_wait(host, answer, _BUSY_SECONDS * 4**tries, address.place.host)
            raise AssertionError  # the last try returns

    async def _rules(self, host: _Host, origin: str) -> Rules:
        found = self._robots.known(origin)
        if found is not None:
            return found
        await self._wait(host)
        begun = self._clock.now()
        found = await self._robots.ask(origin)
        self._rest(host, begun, found)
        asked = found.asked_delay
        if asked is not None and asked > MAX_DELAY_SECONDS and origin not in self._told:
            self._told.add(origin)
            self._tell("delay-capped", {"origin": origin, "asked": asked, "seconds": MAX_DELAY_SECONDS})
        return found

    async def _asked(self, host: _Host, request: Request, rules: Rules) -> Answer:
        await self._wait(host)
        begun = self._clock.now()
        try:
            return await self._visitor.visit(request)
        finally:
            self._rest(host, begun, rules)

    def _rest(self, host: _Host, begun: float, rules: Rules) -> None:
        """Leave a host alone for a while: as long as it wants, and as long as the answer took."""
        now = self._clock.now()
        host.free_at = now + max(self._delay, rules.delay or 0.0, min(now - begun, _LONGEST_TOOK))

    def _told_to_wait(self, host: _Host, answer: Answer, otherwise: float, name: str) -> None:
        now = self._clock.now()
        told = seconds_to_wait(answer.header("retry-after"), answer.header("date"), now)
        host.told_until = now + (otherwise if told is None else told)
        host.free_at = max(host.free_at, host.told_until)
        self._tell("waiting", {"host": name, "until": host.free_at, "status": answer.status})

    async def _wait(self, host: _Host) -> None:
        now = self._clock.now()
        if host.told_until - now > self._patience:
            raise SiteWaitError(f"it said to come back in {host.told_until - now:,.0f} s", host.told_until)
        while (left := host.free_at - self._clock.now()) > 0:
            if self._should_stop():
                raise StoppedError
            await self._clock.sleep(min(left, _LOOK_SECONDS))

    def _host(self, name: str) -> _Host:
        return self._hosts.setdefault(name, _Host())


def _address(uri: str) -> Address:
    try:
        return parse(uri)
    except ValueError as error:
        raise SiteError(f"not an address to visit: {error}", "malformed") from error
