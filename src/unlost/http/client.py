"""The HTTP client for archives: one pool of connections, rate limits, retries and redirects."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha1
from typing import BinaryIO, Self
from weakref import WeakValueDictionary

from unlost.clock import Clock
from unlost.errors import FailedError, NotNowError
from unlost.http import rate_limit
from unlost.http.concurrency import ConcurrencyLimiter, ConcurrencyOptions
from unlost.http.connectivity import Connectivity, ResponseOrigin
from unlost.http.exchange import HttpExchange, RequestTrace, StreamingResponse, Timeouts
from unlost.http.limit_store import LimitStore
from unlost.http.models import HttpRequest, HttpResponse
from unlost.http.pool import ConnectionPool, open_pools
from unlost.http.rate_limit import RateLimitState
from unlost.http.rate_limiter import Permit, RateLimiter, WaitBudget, not_now_error
from unlost.http.resolver import Resolver
from unlost.http.url import HostPort, HttpUrl, may_be_public_host, parse_url, registered_hosts, resolve_redirect
from unlost.http.user_agent import user_agent
from unlost.registry.models import Archive, ArchiveKind, RequestKind

DEFAULT_RETRIES = 2
"""Of what it often helps to try again; more would cost the archive as much as new questions."""

_DIGESTED_PAGE_BYTES = 1 << 16  # bytes of a page that tell whether it is the same as another
_RETRY_SECONDS = 1.0  # before the first; four times as long before the next
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
# What every archive has; captured bodies may come in other codings, and are decoded all the same.
_ACCEPT_ENCODING = "gzip, deflate"
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_CONGESTION_KINDS = {
    "timeout",
    "reset",
    "refused",
    "unreachable",
    "status",
}  # failures that fewer requests may help against
_CREDENTIAL_HEADERS = {"authorization", "cookie", "proxy-authorization"}
_log = logging.getLogger(__name__)


class ArchiveHttpClient:
    """Asks archives, with one pool of connections for all. Use it as an async context manager.

    store: the accounts by which limits are kept. Everybody who asks the same archives should share it.
    clock: what waits for limits and before trying again. Deadlines run on real time.
    contact: an address of mail or of a page, for whoever looks after an archive. Without one, half as much is asked.
    deadlines: how long an archive may take.
    patience: how many seconds, at most, one question may be kept waiting for limits and because the archive said so;
        what would take longer is a NotNowError at once.
    retries: how many times a question is sent again where that often helps, after growing pauses. With 0, as for who
        must answer soon, only what went out on a connection that turned out to be closed is, once and at once.
    connections_per_host: how many questions are on their way to one host at once, and how many connections are kept.
    concurrency: the bounds within which that adapts to how the host copes; without them it does not.
    slot_patience: how many seconds a question waits, at most, until fewer are on their way to the host; None if that
        counts as waiting for limits.
    proxies: whether to go through the proxies that the environment names (HTTP_PROXY and the like).
    tell: gets a line for people, once, if there is no contact; by default the log of this module.
    resolver: what looks names up; by default the system.
    network: records which archives can be reached; by default, a record of its own that never ends a run.
    sent: how many requests went to each archive, by kind: also those that were sent again, and to where it redirects.
        A request for which no connection could be made was not sent.
    """

    def __init__(
        self,
        store: LimitStore,
        clock: Clock,
        contact: str | None = None,
        timeouts: Timeouts | None = None,
        max_wait: float = 300.0,
        connections_per_host: int = 6,
        use_proxies: bool = False,
        retries: int = DEFAULT_RETRIES,
        warn: Callable[[str], None] = _log.warning,
        resolver: Resolver | None = None,
        connectivity: Connectivity | None = None,
        concurrency: ConcurrencyOptions | None = None,
        max_slot_wait: float | None = None,
    ) -> None:
        share = rate_limit.DEFAULT_SHARE if contact else rate_limit.SHARE_WITHOUT_CONTACT
        self._clock = clock
        self._rate_limiter = RateLimiter(store, clock, share)
        self._own_headers = f"User-Agent: {user_agent(contact)}\r\nAccept-Encoding: {_ACCEPT_ENCODING}\r\n"
        self._timeouts = timeouts or Timeouts()
        self._max_wait = max_wait
        self._max_slot_wait = max_slot_wait
        self._concurrency = concurrency or ConcurrencyOptions.fixed(connections_per_host)
        self._limiters: dict[HostPort, ConcurrencyLimiter] = {}  # of registered hosts
        # Redirects may lead to any number of hosts: their limiters exist only while they are in use.
        self._other_limiters: WeakValueDictionary[HostPort, ConcurrencyLimiter] = WeakValueDictionary()
        self._use_proxies = use_proxies
        self._retries = retries
        self._warn = warn
        self._has_warned = contact is not None
        self._resolver = resolver
        self._pools: dict[bool, ConnectionPool] = {}
        self._refusals: dict[
            str, _RefusedConnection
        ] = {}  # by archive: those of which it is not known yet what they mean
        self.connectivity = connectivity or Connectivity()
        self.request_counts: Counter[tuple[str, RequestKind]] = Counter()

    async def __aenter__(self) -> Self:
        """Open the pools: one for registered places, one for others."""
        self._pools = open_pools(self._resolver, use_proxies=self._use_proxies)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every connection. A refusal that nothing contradicts becomes a short block."""
        for pool in self._pools.values():
            pool.close()
        self._pools = {}
        if not self.connectivity.is_local_refusal():
            await self._block_refusing_archives(is_confirmed=False)

    async def send(self, archive: Archive, request: HttpRequest) -> HttpResponse:
        """Return the answer, whole. Raises NotNowError, FailedError, and OfflineError as `Connectivity.check` does."""
        try:
            url = parse_url(request.url)
        except ValueError as error:
            raise FailedError(f"not an address to ask: {error}", archive.id, "malformed") from error
        errand = _PendingRequest(
            request, url.host_port, WaitBudget(self._max_wait, self._max_slot_wait), self._timeouts.total
        )
        seen: set[HttpUrl] = set()
        while True:
            answer = await self._send_with_retries(archive, url, errand)
            if isinstance(answer, HttpResponse):
                return answer
            seen.add(url)
            url = _redirect_target(answer, url, archive)
            if url in seen:
                raise FailedError(f"redirects in a circle, to {str(url)[:100]}", archive.id, "redirects")
            if len(seen) > request.max_redirects:
                raise FailedError(f"more than {request.max_redirects} redirects", archive.id, "redirects")

    async def _send_with_retries(
        self, archive: Archive, url: HttpUrl, errand: "_PendingRequest"
    ) -> "HttpResponse | str":
        """Return the answer to one request, or where it redirects to; try again where that helps."""
        tries = 0
        while True:
            try:
                answer = await self._send_once(archive, url, errand)
            except FailedError as error:
                if (
                    errand.trace is not None
                    and errand.trace.is_stale_response
                    and errand.stale_responses < self._concurrency.initial
                ):
                    # No fault of this question, and none of the archive that needs a rest.
                    errand.stale_responses += 1
                    continue
                pause = _retry_delay(error, tries, errand, self._retries)
                if pause is None:
                    raise
                tries += 1
                errand.seconds_left -= pause
                await self._clock.sleep(pause)
            else:
                if answer is not None:
                    return answer  # else it said to wait, which the next turn does

    async def _send_once(
        self, archive: Archive, url: HttpUrl, errand: "_PendingRequest"
    ) -> "HttpResponse | str | None":
        place = url.host_port
        registered = registered_hosts(archive)
        own = place in registered
        # Most archives have more ports than are registered: they redirect from http to https.
        its_host = place.host in {each.host for each in registered}
        pool = self._pools.get(own)
        if pool is None:
            raise RuntimeError("use `async with Courier(…)`")
        if not own and not may_be_public_host(place.host):
            self.connectivity.raise_if_offline()
            raise FailedError(f"{place.host[:100]} is inside a network", archive.id, "redirects")
        limiter = self._limiter(place, own=own)
        turn = await self._acquire_permit(archive, errand, limiter, place)

        def sent() -> None:
            self.request_counts[archive.id, errand.request.kind] += 1
            turn.mark_sent()

        passage = errand.trace = RequestTrace(turn.mark_connecting, sent)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            headers = self._headers(errand, url, archive)
            until = begun + errand.seconds_left
            to_end = errand.request.until_close
            async with HttpExchange(
                pool, url, headers, passage, self._timeouts, until, archive.id, until_close=to_end
            ) as head:
                responded_at = loop.time()
                self._warn_about_contact()
                origin = ResponseOrigin(place.host, head.peer, url.scheme == "https")
                await self._record_response(archive, head, origin, errand, its_host=its_host)
                answer = await self._interpret(archive, head, turn, its_host, errand.request)
                if answer is None:
                    limiter.record_throttling(begun, loop.time())
                else:
                    limiter.record_response(begun, responded_at)
                return answer
        except asyncio.CancelledError:
            limiter.record_abandoned(begun, loop.time())
            raise
        except FailedError as error:
            if error.kind in _CONGESTION_KINDS:
                limiter.record_failure(begun, loop.time(), of_page=error.kind == "status")
            if its_host:
                await self._record_failure(archive, place, error, errand, turn)
            self.connectivity.raise_if_offline()
            raise
        finally:
            turn.release()
            errand.seconds_left -= loop.time() - begun

    def _limiter(self, host_port: HostPort, *, own: bool) -> ConcurrencyLimiter:
        """Return what limits how many requests are on their way to a host."""
        limiters: MutableMapping[HostPort, ConcurrencyLimiter] = self._limiters if own else self._other_limiters
        limiter = limiters.get(host_port)
        if limiter is None:
            limiter = limiters[host_port] = ConcurrencyLimiter(self._concurrency)
        return limiter

    def _warn_about_contact(self) -> None:
        """Say once that no contact is set. Without a response from any archive, that is not what to do about it."""
        if not self._has_warned:
            self._has_warned = True
            self._warn("no contact is set, so archives are asked half as often: set --contact or UNLOST_CONTACT")

    async def _acquire_permit(
        self, archive: Archive, errand: "_PendingRequest", slot: ConcurrencyLimiter, host_port: HostPort
    ) -> Permit:
        """Return the permit to send a request. Raises NotNowError, also while a refusal is not explained yet."""
        refusal = self._refusals.get(archive.id)
        try:
            if refusal is not None and refusal.host == host_port.host and self._clock.now() < refusal.until:
                raise not_now_error(archive.id, refusal.until, "blocked")
            return await self._rate_limiter.acquire(archive, errand.request.kind, slot, errand.wait_budget)
        except NotNowError:
            self.connectivity.record_skip(archive.id)
            self.connectivity.raise_if_offline()
            raise

    async def _record_failure(
        self, archive: Archive, host_port: HostPort, error: FailedError, errand: "_PendingRequest", turn: Permit
    ) -> None:
        """Record a failed request. A refused connection is a block if the network works otherwise."""
        passage = errand.trace
        if passage is not None and not passage.is_sent and archive.quotas:
            work = errand.request.kind
            await self._rate_limiter.update_state(
                archive, lambda ledger: (rate_limit.refund_quota(ledger, archive, work, turn.at), None)
            )
        self.connectivity.record_failure(archive.id, host_port.host, error.kind)
        # An archive without limits is a server of the user's own, which refuses only while it is not running.
        if error.kind == "refused" and (archive.limits or archive.quotas):
            self._refusals[archive.id] = _RefusedConnection(archive, host_port.host, self._clock.now(), turn.at)
            if self.connectivity.proves_block(host_port.host, self._clock.now()):
                await self._block_refusing_archives()

    async def _record_response(
        self,
        archive: Archive,
        head: StreamingResponse,
        origin: ResponseOrigin,
        errand: "_PendingRequest",
        *,
        its_host: bool,
    ) -> None:
        """Record a response: if it is the archive's own, connections that others refused are blocks.

        Of hosts that an archive redirects to, pages say nothing: they may be those of a captive portal.
        """
        if head.status == 407 and errand.trace is not None and errand.trace.is_proxied:
            await head.drain()
            raise FailedError("the proxy wants a password", archive.id, "proxy")
        redirect = ""
        if head.status in _REDIRECT_STATUSES and (location := head.header("location")):
            with suppress(ValueError):
                redirect = resolve_redirect(location, parse_url(head.url)).host_port.host
        media_type = (head.header("content-type") or "").lower()
        if head.header("memento-datetime") is not None:
            media_type = ""  # a capture, whatever its type
        if not its_host and (redirect or "html" in media_type):
            return
        is_proof = self.connectivity.record_response(
            archive.id, origin, head.status, media_type, redirect, self._clock.now()
        )
        if is_proof and self._refusals:
            await self._block_refusing_archives()

    async def _block_refusing_archives(self, *, is_confirmed: bool = True) -> None:
        """Block the archives that refused a connection, as far as that is proven; without proof, for a short time."""
        for refusal in [*self._refusals.values()]:
            if is_confirmed and not self.connectivity.proves_block(refusal.host, refusal.at):
                continue
            del self._refusals[refusal.archive.id]
            await self._rate_limiter.update_state(refusal.archive, partial(refusal.block, is_confirmed=is_confirmed))

    def _headers(self, errand: "_PendingRequest", url: HttpUrl, archive: Archive) -> str:
        """Return the fields that go along, each with its line end. Raises FailedError for what no field can have."""
        lines = _format_headers(tuple(errand.headers(url).items()))
        if lines is None:
            raise FailedError("a field that cannot be sent", archive.id, "malformed")
        return self._own_headers + lines

    async def _interpret(
        self, archive: Archive, head: StreamingResponse, turn: Permit, its_host: bool, request: HttpRequest
    ) -> "HttpResponse | str | None":
        """Return the answer, where it redirects to, or None if the archive said to wait."""
        # A capture is an answer whatever its status: 429 or 503 may be what was captured.
        is_capture = head.header("memento-datetime") is not None
        # Where an archive redirects to and is told that this is too much, it has been told, too; that another host is
        # out of order says nothing about the archive.
        throttled = head.status == 429 or (
            head.status == 503 and its_host and not _is_unreadable_record(archive, request, head)
        )
        if throttled and not is_capture:
            now = self._clock.now()
            wait = rate_limit.parse_retry_after(head.header("retry-after"), head.header("date"), now)
            await self._rate_limiter.update_state(
                archive, lambda ledger: (rate_limit.record_throttling(ledger, now, turn.at, wait), None)
            )
            await head.drain()
            return None
        if head.status >= 500 and not is_capture:
            await head.drain()
            raise FailedError(f"status {head.status}", archive.id, "status")
        if its_host and turn.has_backoff:
            await self._rate_limiter.update_state(
                archive, lambda ledger: (rate_limit.record_response(ledger, turn.at), None)
            )
        location = head.header("location")
        if request.max_redirects > 0 and head.status in _REDIRECT_STATUSES and location:
            await head.drain()
            return location
        # Of a redirect that was captured the head says all: archives send captured lengths, which may be wrong.
        is_told = is_capture and head.status in _REDIRECT_STATUSES and location
        if is_told:
            body, size = await head.read_promptly(request.max_bytes, archive.id)
        else:
            body, size = await head.read(request.max_bytes, archive.id, _partial_store(head, request))
        if self.connectivity.is_portal_suspected(archive.id):
            self.connectivity.record_page(
                archive.id, sha1(body.read(_DIGESTED_PAGE_BYTES), usedforsecurity=False).hexdigest()
            )
            body.seek(0)
            self.connectivity.raise_if_offline()
        return HttpResponse(head.url, head.status, head.headers, body, size)


def _partial_store(head: StreamingResponse, request: HttpRequest) -> Callable[[BinaryIO, int], None] | None:
    """Return what stores a body that is not whole; None if it is of no use."""
    partly = request.partial
    if partly is None:
        return None

    def store(body: BinaryIO, size: int) -> None:
        # Of several attempts, the one that received most.
        if partly.response is None or partly.response.size < size:
            partly.response = HttpResponse(head.url, head.status, head.headers, body, size)

    return store


def _is_unreadable_record(archive: Archive, request: HttpRequest, head: StreamingResponse) -> bool:
    """Return whether this is how pywb says that it cannot read a stored record: to wait for that would not help."""
    is_copy = archive.kind is ArchiveKind.PYWB and request.kind is RequestKind.REPLAY
    return is_copy and head.header("retry-after") is None


@dataclass(frozen=True, slots=True)
class _RefusedConnection:
    """A connection that an archive's host refused at a time. sent: when the request was admitted."""

    archive: Archive
    host: str
    at: float
    sent: float

    @property
    def until(self) -> float:
        """Until when the archive is not queried, as long as the refusal is not explained."""
        return self.at + rate_limit.MINUTE

    def block(self, state: RateLimitState, *, is_confirmed: bool) -> tuple[RateLimitState, None]:
        """Return the account with the block."""
        return rate_limit.record_refusal(state, self.at, self.sent, is_confirmed=is_confirmed), None


@dataclass(slots=True)
class _PendingRequest:
    """One question on its way.

    origin: where the question itself goes, before redirects.
    seconds: how many are left of its total deadline.
    strays: how many times it met what was left of an answer before it.
    """

    request: HttpRequest
    origin: HostPort
    wait_budget: WaitBudget
    seconds_left: float
    trace: RequestTrace | None = None
    stale_responses: int = 0

    def headers(self, url: HttpUrl) -> dict[str, str]:
        """Return the headers for one address: what is secret goes only where the question itself goes."""
        asked = dict(self.request.headers)
        if url.host_port == self.origin:
            return asked
        return {name: value for name, value in asked.items() if name.lower() not in _CREDENTIAL_HEADERS}


@lru_cache(maxsize=64)
def _format_headers(fields: tuple[tuple[str, str], ...]) -> str | None:
    """Return fields as they are sent, with one for what is accepted; None if one of them cannot be."""
    told = {"Accept": "*/*", **dict(fields)}
    if not all(map(_HEADER_VALUE.fullmatch, told.values())):
        return None
    return "".join(f"{name}: {value}\r\n" for name, value in told.items())


def _redirect_target(location: str, base: HttpUrl, archive: Archive) -> HttpUrl:
    try:
        return resolve_redirect(location, base)
    except ValueError as error:
        raise FailedError(f"a redirect to {location[:100]!r}: {error}", archive.id, "redirects") from error


def _retry_delay(error: FailedError, tries: int, errand: _PendingRequest, retries: int) -> float | None:
    """Return how many seconds to wait before another try; None if it would not help, or there is no time for it."""
    reused = errand.trace is not None and errand.trace.is_reused
    if retries == 0:
        # Servers close what was idle for long, without a word or just when something is sent.
        return 0.0 if error.kind == "reset" and reused and tries == 0 else None
    # A connection that was kept may be dead without anybody having said so. On a new one, who hangs will hang again.
    again = error.kind in {"reset", "status"} or (error.kind == "timeout" and reused and tries == 0)
    pause = _RETRY_SECONDS * 4**tries
    return pause if again and tries < retries and pause < errand.seconds_left else None
