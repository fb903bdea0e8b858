"""Politeness: robots.txt, one request at a time per host, delays, and Retry-After.

Also runs one task per host, several hosts in parallel.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

from unlost.clock import Clock
from unlost.crawl.fetcher import Fetcher, FetchRequest, FetchResponse
from unlost.crawl.robots import MAX_DELAY_SECONDS, RobotsClient, RobotsRules, RobotsStore
from unlost.errors import RobotsError, SiteError, SiteWaitError
from unlost.http.rate_limit import parse_retry_after
from unlost.http.url import HttpUrl, parse_url

EventCallback = Callable[[str, Mapping[str, object]], None]
"""Gets a word for what happened, and what there is to say about it; docs/crawl.md lists them."""
MAX_WAIT_SECONDS = 300.0
"""How long a host may keep us waiting before it is left for another run."""
_RETRY_SECONDS = 30.0  # to wait for a host that says 429 or 503 and not for how long; four times as long the next time
_MAX_ATTEMPTS = 3  # to get something else than 429 or 503
_MAX_RESPONSE_PAUSE_SECONDS = 30.0  # seconds of pause at most since a host was slow
_POLL_SECONDS = 1.0  # how long to wait at once, before looking whether to stop


class FetchStoppedError(Exception):
    """Somebody wants to stop, who would have had to wait. Never seen by users."""


@dataclass(slots=True)
class _HostState:
    """What is known of a host.

    free_at: when it may be asked next, in seconds since 1970. told_until: the same, if it was the host that said so.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    free_at: float = 0.0
    retry_after: float = 0.0


class PoliteFetcher:
    """Visits pages politely; one event loop uses it.

    delay: seconds between two requests to one host, at least.
    patience: how many seconds a host may keep us waiting by saying so.
    should_stop: is asked while there is nothing to do but wait.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        store: RobotsStore,
        clock: Clock,
        delay: float,
        *,
        max_wait: float = MAX_WAIT_SECONDS,
        on_event: EventCallback = lambda _, __: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._fetcher = fetcher
        self._robots = RobotsClient(fetcher, store, clock)
        self._clock = clock
        self._delay = delay
        self._max_wait = max_wait
        self._on_event = on_event
        self._should_stop = should_stop
        self._hosts: dict[str, _HostState] = {}
        self._reported_origins: set[str] = set()

    async def robots_rules(self, uri: str) -> RobotsRules:
        """Return the rules for an address, asked for in turn if they are not known. Raises SiteWaitError, SiteError."""
        address = _parse_url(uri)
        host = self._host_state(address.host_port.host)
        async with host.lock:
            return await self._get_rules(host, address.origin)

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Return the answer, once it is this request's turn.

        429 and 503 are obeyed: it is asked again, some times; then they are the answer. Raises RobotsError for what
        robots.txt forbids, SiteWaitError for a host that wants us to wait for longer than we are ready to, SiteError.
        """
        address = _parse_url(request.uri)
        host = self._host_state(address.host_port.host)
        async with host.lock:
            rules = await self._get_rules(host, address.origin)
            if not rules.allows(str(address)):
                what = "could not be had" if rules.is_unreachable else "does not want it"
                raise RobotsError(
                    f"{address.host_port.host[:100]}: robots.txt {what}", is_temporary=rules.is_unreachable
                )
            for tries in range(_MAX_ATTEMPTS):
                answer = await self._send(host, request, rules)
                if answer.status not in (429, 503) or tries == _MAX_ATTEMPTS - 1:
                    return answer
                answer.body.close()
                self._record_retry_after(host, answer, _RETRY_SECONDS * 4**tries, address.host_port.host)
            raise AssertionError  # the last try returns

    async def _get_rules(self, host: _HostState, origin: str) -> RobotsRules:
        found = self._robots.get_cached(origin)
        if found is not None:
            return found
        await self._wait(host)
        begun = self._clock.now()
        found = await self._robots.fetch(origin)
        self._schedule_next(host, begun, found)
        asked = found.requested_delay
        if asked is not None and asked > MAX_DELAY_SECONDS and origin not in self._reported_origins:
            self._reported_origins.add(origin)
            self._on_event("delay-capped", {"origin": origin, "asked": asked, "seconds": MAX_DELAY_SECONDS})
        return found

    async def _send(self, host: _HostState, request: FetchRequest, rules: RobotsRules) -> FetchResponse:
        await self._wait(host)
        begun = self._clock.now()
        try:
            return await self._fetcher.fetch(request)
        finally:
            self._schedule_next(host, begun, rules)

    def _schedule_next(self, host: _HostState, begun: float, rules: RobotsRules) -> None:
        """Leave a host alone for a while: as long as it wants, and as long as the answer took."""
        now = self._clock.now()
        host.free_at = now + max(self._delay, rules.delay or 0.0, min(now - begun, _MAX_RESPONSE_PAUSE_SECONDS))

    def _record_retry_after(self, host: _HostState, answer: FetchResponse, otherwise: float, name: str) -> None:
        now = self._clock.now()
        told = parse_retry_after(answer.header("retry-after"), answer.header("date"), now)
        host.retry_after = now + (otherwise if told is None else told)
        host.free_at = max(host.free_at, host.retry_after)
        self._on_event("waiting", {"host": name, "until": host.free_at, "status": answer.status})

    async def _wait(self, host: _HostState) -> None:
        now = self._clock.now()
        if host.retry_after - now > self._max_wait:
            raise SiteWaitError(f"it said to come back in {host.retry_after - now:,.0f} s", host.retry_after)
        while (left := host.free_at - self._clock.now()) > 0:
            if self._should_stop():
                raise FetchStoppedError
            await self._clock.sleep(min(left, _POLL_SECONDS))

    def _host_state(self, name: str) -> _HostState:
        return self._hosts.setdefault(name, _HostState())


def _parse_url(uri: str) -> HttpUrl:
    try:
        return parse_url(uri)
    except ValueError as error:
        raise SiteError(f"not an address to visit: {error}", "malformed") from error


async def run_host_tasks(
    hosts: Callable[[], Sequence[str]],
    run_host: Callable[[str], Coroutine[None, None, None]],
    max_parallel: int,
    tasks: dict[str, asyncio.Task[None]],
    wake_up: asyncio.Event,
) -> None:
    """Have each host visited by one task, as many at once as are allowed, until there is none to visit.

    hosts: gives those on which something is to be visited; is asked again whenever a task ends, or `more` is set.
    tasks: gets the hosts that are being visited. Raises what a task raises, once all others have ended.
    """
    try:
        while True:
            wake_up.clear()
            for host in hosts():
                if len(tasks) >= max(1, max_parallel):
                    break
                if host not in tasks:
                    tasks[host] = asyncio.create_task(run_host(host))
            if not tasks:
                return
            waiting = asyncio.create_task(wake_up.wait())
            await asyncio.wait({*tasks.values(), waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            for host, task in list(tasks.items()):
                if task.done():
                    del tasks[host]
                    task.result()
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


async def run_shielded(work: Coroutine[None, None, None]) -> None:
    """Do something that must not be left half done, also if somebody wants to end everything meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
