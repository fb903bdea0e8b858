"""Politeness: robots.txt, one request at a time per host, delays, and Retry-After.

`PoliteFetcher` can be used without a crawl. `run_host_tasks` runs one task per host, several hosts in parallel.
"""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

from unlost.clock import Clock
from unlost.crawl.fetcher import Fetcher, FetchRequest, FetchResponse
from unlost.crawl.robots import MAX_DELAY_SECONDS, RobotsClient, RobotsRules, RobotsStore
from unlost.errors import RobotsError, SiteError, SiteWaitError
from unlost.http.policy import MAX_WAITS, RETRIES
from unlost.http.rate_limit import parse_retry_after
from unlost.http.url import HttpUrl, parse_url

EventCallback = Callable[[str, Mapping[str, object]], None]
"""Called with the name of an event and its details; docs/crawl.md lists the events."""
_MAX_RESPONSE_PAUSE_SECONDS = 30.0  # limit of the pause that equals the duration of the last response
_POLL_SECONDS = 1.0  # interval at which `should_stop` is checked during a wait


class FetchStoppedError(Exception):
    """`should_stop` returned True during a wait. Handled by the caller; never shown to users."""


@dataclass(slots=True)
class _HostState:
    """Scheduling state of a host.

    Attributes:
        free_at: When the next request may be sent, in seconds since 1970.
        retry_after: The earliest time that the host itself demanded, in seconds since 1970.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    free_at: float = 0.0
    retry_after: float = 0.0


class PoliteFetcher:
    """Fetches pages politely. Must be used from one event loop.

    Args:
        fetcher: Sends the requests.
        store: Stores robots.txt files.
        clock: The source of time.
        delay: Minimum seconds between two requests to one host.
        max_wait: Longest wait in seconds that a host may demand by Retry-After.
        on_event: Called with events such as `waiting` and `delay-capped`.
        should_stop: Polled during waits.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        store: RobotsStore,
        clock: Clock,
        delay: float,
        *,
        max_wait: float = MAX_WAITS["live"],
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
        """Return the robots.txt rules for a URL, fetched if they are not cached. Raises SiteWaitError, SiteError."""
        url = _parse_url(uri)
        host = self._host_state(url.host_port.host)
        async with host.lock:
            return await self._get_rules(host, url.origin)

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Wait until the request may be sent, send it, and return the response.

        After 429 or 503 the request is repeated, honouring Retry-After, as `RETRIES["throttled"]` says; then the
        response is returned.

        Raises:
            RobotsError: robots.txt disallows the URL.
            SiteWaitError: The host demands a longer wait than `max_wait`.
            SiteError: There was no response.
            FetchStoppedError: `should_stop` returned True during a wait.
        """
        url = _parse_url(request.uri)
        host = self._host_state(url.host_port.host)
        async with host.lock:
            rules = await self._get_rules(host, url.origin)
            if not rules.allows(str(url)):
                what = "could not be had" if rules.is_unreachable else "does not want it"
                raise RobotsError(f"{url.host_port.host[:100]}: robots.txt {what}", is_temporary=rules.is_unreachable)
            policy = RETRIES["throttled"]
            for retry in itertools.count():
                response = await self._send(host, request, rules)
                if not policy.allows(str(response.status), retry):
                    return response
                response.body.close()
                self._record_retry_after(host, response, policy.delay_before(retry), url.host_port.host)
            raise AssertionError  # the loop returns

    async def _get_rules(self, host: _HostState, origin: str) -> RobotsRules:
        rules = self._robots.get_cached(origin)
        if rules is not None:
            return rules
        await self._wait(host)
        started_at = self._clock.now()
        rules = await self._robots.fetch(origin)
        self._schedule_next(host, started_at, rules)
        requested_delay = rules.requested_delay
        if requested_delay is not None and requested_delay > MAX_DELAY_SECONDS and origin not in self._reported_origins:
            self._reported_origins.add(origin)
            self._on_event("delay-capped", {"origin": origin, "asked": requested_delay, "seconds": MAX_DELAY_SECONDS})
        return rules

    async def _send(self, host: _HostState, request: FetchRequest, rules: RobotsRules) -> FetchResponse:
        await self._wait(host)
        started_at = self._clock.now()
        try:
            return await self._fetcher.fetch(request)
        finally:
            self._schedule_next(host, started_at, rules)

    def _schedule_next(self, host: _HostState, started_at: float, rules: RobotsRules) -> None:
        """Set when the next request may be sent: after the delay, Crawl-delay, or the duration of the last response.

        The longest of the three applies.
        """
        now = self._clock.now()
        host.free_at = now + max(self._delay, rules.delay or 0.0, min(now - started_at, _MAX_RESPONSE_PAUSE_SECONDS))

    def _record_retry_after(self, host: _HostState, response: FetchResponse, default: float, name: str) -> None:
        now = self._clock.now()
        seconds = parse_retry_after(response.header("retry-after"), response.header("date"), now)
        host.retry_after = now + (default if seconds is None else seconds)
        host.free_at = max(host.free_at, host.retry_after)
        self._on_event("waiting", {"host": name, "until": host.free_at, "status": response.status})

    async def _wait(self, host: _HostState) -> None:
        now = self._clock.now()
        if host.retry_after - now > self._max_wait:
            raise SiteWaitError(f"it said to come back in {host.retry_after - now:,.0f} s", host.retry_after)
        while (remaining := host.free_at - self._clock.now()) > 0:
            if self._should_stop():
                raise FetchStoppedError
            await self._clock.sleep(min(remaining, _POLL_SECONDS))

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
    """Run one task per host, at most `max_parallel` at once, until no host has work left.

    Args:
        hosts: Returns the hosts with work; called again when a task ends or `wake_up` is set.
        run_host: Processes one host.
        max_parallel: Maximum number of running tasks.
        tasks: Filled with the running tasks, by host.
        wake_up: Set by the caller when hosts may have new work.

    If a task raises, the others are cancelled and the exception is raised after they have ended.
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
            wake_up_task = asyncio.create_task(wake_up.wait())
            await asyncio.wait({*tasks.values(), wake_up_task}, return_when=asyncio.FIRST_COMPLETED)
            wake_up_task.cancel()
            for host, task in list(tasks.items()):
                if task.done():
                    del tasks[host]
                    task.result()
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


async def run_shielded(work: Coroutine[None, None, None]) -> None:
    """Run work to its end, even if the caller is cancelled in the meantime."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
