"""The HTTP client for archives: connection pools, rate limits, retries, redirects and blocks."""

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
from unlost.http.exchange import HttpExchange, RequestTrace, StreamingResponse
from unlost.http.limit_store import LimitStore
from unlost.http.models import HttpRequest, HttpResponse, user_agent
from unlost.http.policy import MAX_WAITS, RETRIES, TIMEOUTS, RetryPolicy, Timeouts
from unlost.http.pool import ConnectionPools, NotPublicError, Resolver
from unlost.http.rate_limit import RateLimitState
from unlost.http.rate_limiter import Permit, RateLimiter, WaitBudget, not_now_error
from unlost.http.url import HostPort, HttpUrl, parse_url, registered_hosts, resolve_redirect
from unlost.registry.models import Archive, ArchiveKind, RequestKind

_DIGESTED_PAGE_BYTES = 1 << 16  # beginning of a page whose digest identifies the page of a captive portal
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
# Codings that every archive supports. Captured bodies may have other ones, which are decoded as well.
_ACCEPT_ENCODING = "gzip, deflate"
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")  # no control characters but tab (RFC 9110, section 5.5)
_CONGESTION_KINDS = {"timeout", "reset", "refused", "unreachable", "status"}  # failures that fewer requests may avoid
# Not sent to the target of a redirect on another host (RFC 9110, section 15.4).
_CREDENTIAL_HEADERS = {"authorization", "cookie", "proxy-authorization"}
_log = logging.getLogger(__name__)


class ArchiveHttpClient:
    """Sends requests to archives. One connection pool serves all archives. Use it as an async context manager.

    Args:
        store: Stores the rate-limit state. All clients that query the same archives should share it.
        clock: Clock for rate limits and the delay before retries. Timeouts use real time.
        contact: Email address or URL for the operators of archives. Without it, requests are half as frequent.
        timeouts: Timeouts of one request.
        max_wait: Seconds that a request may wait for rate limits and for `Retry-After`. A longer wait raises
            NotNowError at once.
        connections_per_host: Limit of requests in flight to one host.
        use_proxies: Use the proxies of the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`).
        retries: Which failed requests are retried. Without retries, only a request sent on a connection that turned
            out to be closed is retried, once and without delay.
        warn: Receives a warning, once, if there is no contact. By default, it is logged.
        resolver: Resolves host names; by default, the system's resolver.
        connectivity: Records which archives can be reached; by default, a new one that never raises OfflineError.
        concurrency: Bounds of an adaptive limit of requests in flight to one host, instead of
            `connections_per_host`.
        max_slot_wait: Seconds that a request may wait for other requests to the same host. None counts that wait
            against `max_wait`.

    Attributes:
        request_counts: Number of requests sent to each archive, by kind, with retries and redirects. A request for
            which no connection was made is not counted.
    """

    def __init__(
        self,
        store: LimitStore,
        clock: Clock,
        contact: str | None = None,
        timeouts: Timeouts = TIMEOUTS["archives"],
        max_wait: float = MAX_WAITS["archives"],
        connections_per_host: int = 6,
        use_proxies: bool = False,
        retries: RetryPolicy = RETRIES["archives"],
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
        self._timeouts = timeouts
        self._max_wait = max_wait
        self._max_slot_wait = max_slot_wait
        self._concurrency = concurrency or ConcurrencyOptions.fixed(connections_per_host)
        self._limiters: dict[HostPort, ConcurrencyLimiter] = {}  # of registered hosts
        # Redirects may go to any number of hosts: their limiters exist only while they are in use.
        self._other_limiters: WeakValueDictionary[HostPort, ConcurrencyLimiter] = WeakValueDictionary()
        self._use_proxies = use_proxies
        self._retries = retries
        self._warn = warn
        self._has_warned = contact is not None
        self._resolver = resolver
        self._pools: ConnectionPools | None = None
        self._refusals: dict[str, _RefusedConnection] = {}  # by archive: refused connections not yet explained
        self.connectivity = connectivity or Connectivity()
        self.request_counts: Counter[tuple[str, RequestKind]] = Counter()

    async def __aenter__(self) -> Self:
        """Open the connection pools."""
        self._pools = ConnectionPools(self._resolver, use_proxies=self._use_proxies)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections. A refused connection that is still unexplained becomes a short block."""
        if self._pools is not None:
            self._pools.close()
        self._pools = None
        if not self.connectivity.is_local_refusal():
            await self._block_refusing_archives(is_confirmed=False)

    async def send(self, archive: Archive, request: HttpRequest) -> HttpResponse:
        """Send a request and return the response, as `HttpClient.send` does.

        Raises:
            NotNowError: The archive must not be queried now, or the wait would take too long.
            FailedError: The request failed; see `FAILURE_KINDS`.
            OfflineError: No archive can be reached; see `Connectivity.raise_if_offline`.
        """
        try:
            url = parse_url(request.url)
        except ValueError as error:
            raise FailedError(f"not an address to ask: {error}", archive.id, "malformed") from error
        pending = _PendingRequest(
            request, url.host_port, WaitBudget(self._max_wait, self._max_slot_wait), self._timeouts.total
        )
        seen: set[HttpUrl] = set()
        while True:
            response = await self._send_with_retries(archive, url, pending)
            if isinstance(response, HttpResponse):
                return response
            seen.add(url)
            url = _redirect_target(response, url, archive)
            if url in seen:
                raise FailedError(f"redirects in a circle, to {str(url)[:100]}", archive.id, "redirects")
            if len(seen) > request.max_redirects:
                raise FailedError(f"more than {request.max_redirects} redirects", archive.id, "redirects")

    async def _send_with_retries(
        self, archive: Archive, url: HttpUrl, pending: "_PendingRequest"
    ) -> "HttpResponse | str":
        """Return the response, or the Location of a redirect; retry where that helps."""
        tries = 0
        while True:
            try:
                response = await self._send_once(archive, url, pending)
            except FailedError as error:
                if (
                    pending.trace is not None
                    and pending.trace.is_stale_response
                    and pending.stale_responses < self._concurrency.initial
                ):
                    # The rest of an earlier response preceded this one: pywb sends captured Content-Length values,
                    # which may be too small. Each idle connection may have such a rest, so retry without delay.
                    pending.stale_responses += 1
                    continue
                pause = _retry_delay(error, tries, pending, self._retries)
                if pause is None:
                    raise
                tries += 1
                pending.seconds_left -= pause
                await self._clock.sleep(pause)
            else:
                if response is not None:
                    return response  # None: throttled, and the next permit waits as long as the archive asked

    async def _send_once(
        self, archive: Archive, url: HttpUrl, pending: "_PendingRequest"
    ) -> "HttpResponse | str | None":
        host_port = url.host_port
        registered = registered_hosts(archive)
        is_registered = host_port in registered
        # Most archives use more ports than the registered ones, because they redirect from http to https.
        is_own_host = host_port.host in {each.host for each in registered}
        if self._pools is None:
            raise RuntimeError("use `async with ArchiveHttpClient(…)`")
        try:
            pool = self._pools.for_host(host_port.host, is_named=is_registered)
        except NotPublicError as error:
            self.connectivity.raise_if_offline()
            raise FailedError(str(error), archive.id, "redirects") from error
        limiter = self._limiter(host_port, is_registered=is_registered)
        permit = await self._acquire_permit(archive, pending, limiter, host_port)

        def on_sent() -> None:
            self.request_counts[archive.id, pending.request.kind] += 1
            permit.mark_sent()

        trace = pending.trace = RequestTrace(permit.mark_connecting, on_sent)
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        try:
            headers = self._headers(pending, url, archive)
            until = started_at + pending.seconds_left
            until_close = pending.request.until_close
            async with HttpExchange(
                pool, url, headers, trace, self._timeouts, until, archive.id, until_close=until_close
            ) as stream:
                responded_at = loop.time()
                self._warn_about_contact()
                origin = ResponseOrigin(host_port.host, stream.peer, url.scheme == "https")
                await self._record_response(archive, stream, origin, pending, is_own_host=is_own_host)
                response = await self._interpret(archive, stream, permit, is_own_host, pending.request)
                if response is None:
                    limiter.record_throttling(started_at, loop.time())
                else:
                    limiter.record_response(started_at, responded_at)
                return response
        except asyncio.CancelledError:
            limiter.record_abandoned(started_at, loop.time())
            raise
        except FailedError as error:
            if error.kind in _CONGESTION_KINDS:
                limiter.record_failure(started_at, loop.time(), of_page=error.kind == "status")
            if is_own_host:
                await self._record_failure(archive, host_port, error, pending, permit)
            self.connectivity.raise_if_offline()
            raise
        finally:
            permit.release()
            pending.seconds_left -= loop.time() - started_at

    def _limiter(self, host_port: HostPort, *, is_registered: bool) -> ConcurrencyLimiter:
        limiters: MutableMapping[HostPort, ConcurrencyLimiter] = (
            self._limiters if is_registered else self._other_limiters
        )
        limiter = limiters.get(host_port)
        if limiter is None:
            limiter = limiters[host_port] = ConcurrencyLimiter(self._concurrency)
        return limiter

    def _warn_about_contact(self) -> None:
        """Warn once that no contact is set, after the first response: without a connection there are other problems."""
        if not self._has_warned:
            self._has_warned = True
            self._warn("no contact is set, so archives are asked half as often: set --contact or UNLOST_CONTACT")

    async def _acquire_permit(
        self, archive: Archive, pending: "_PendingRequest", limiter: ConcurrencyLimiter, host_port: HostPort
    ) -> Permit:
        """Return the permit to send a request. Raises NotNowError, also while a refused connection is unexplained."""
        refusal = self._refusals.get(archive.id)
        try:
            if refusal is not None and refusal.host == host_port.host and self._clock.now() < refusal.until:
                raise not_now_error(archive.id, refusal.until, "blocked")
            return await self._rate_limiter.acquire(archive, pending.request.kind, limiter, pending.wait_budget)
        except NotNowError:
            self.connectivity.record_skip(archive.id)
            self.connectivity.raise_if_offline()
            raise

    async def _record_failure(
        self, archive: Archive, host_port: HostPort, error: FailedError, pending: "_PendingRequest", permit: Permit
    ) -> None:
        """Record a failed request. A refused connection is a block if the network works otherwise."""
        trace = pending.trace
        if trace is not None and not trace.is_sent and archive.quotas:
            kind = pending.request.kind
            await self._rate_limiter.update_state(
                archive, lambda state: (rate_limit.refund_quota(state, archive, kind, permit.at), None)
            )
        self.connectivity.record_failure(archive.id, host_port.host, error.kind)
        # An archive without limits is the user's own server, which refuses connections only while it is not running.
        if error.kind == "refused" and (archive.limits or archive.quotas):
            self._refusals[archive.id] = _RefusedConnection(archive, host_port.host, self._clock.now(), permit.at)
            if self.connectivity.proves_block(host_port.host, self._clock.now()):
                await self._block_refusing_archives()

    async def _record_response(
        self,
        archive: Archive,
        stream: StreamingResponse,
        origin: ResponseOrigin,
        pending: "_PendingRequest",
        *,
        is_own_host: bool,
    ) -> None:
        """Record a response. If it proves that the network works, unexplained refused connections become blocks.

        Pages of hosts that an archive redirects to prove nothing: they may be those of a captive portal.
        """
        if stream.status == 407 and pending.trace is not None and pending.trace.is_proxied:
            await stream.drain()
            raise FailedError("the proxy wants a password", archive.id, "proxy")
        redirect = ""
        if stream.status in _REDIRECT_STATUSES and (location := stream.header("location")):
            with suppress(ValueError):
                redirect = resolve_redirect(location, parse_url(stream.url)).host_port.host
        media_type = (stream.header("content-type") or "").lower()
        if stream.header("memento-datetime") is not None:
            media_type = ""  # a capture, whatever its type
        if not is_own_host and (redirect or "html" in media_type):
            return
        is_proof = self.connectivity.record_response(
            archive.id, origin, stream.status, media_type, redirect, self._clock.now()
        )
        if is_proof and self._refusals:
            await self._block_refusing_archives()

    async def _block_refusing_archives(self, *, is_confirmed: bool = True) -> None:
        """Block the archives whose refused connection is proven to be a block; without proof, for a short time."""
        for refusal in [*self._refusals.values()]:
            if is_confirmed and not self.connectivity.proves_block(refusal.host, refusal.at):
                continue
            del self._refusals[refusal.archive.id]
            await self._rate_limiter.update_state(refusal.archive, partial(refusal.block, is_confirmed=is_confirmed))

    def _headers(self, pending: "_PendingRequest", url: HttpUrl, archive: Archive) -> str:
        """Return the header fields, each with its line end. Raises FailedError if a value is not allowed in HTTP."""
        lines = _format_headers(tuple(pending.headers(url).items()))
        if lines is None:
            raise FailedError("a field that cannot be sent", archive.id, "malformed")
        return self._own_headers + lines

    async def _interpret(
        self, archive: Archive, stream: StreamingResponse, permit: Permit, is_own_host: bool, request: HttpRequest
    ) -> "HttpResponse | str | None":
        """Return the response, the Location of a redirect, or None if the archive throttles requests."""
        # With Memento-Datetime the response is a capture, whatever its status (RFC 7089, section 2.1.1): 429 or 503 may
        # have been captured.
        is_capture = stream.header("memento-datetime") is not None
        # 429 counts against the archive also when a host that it redirects to sends it; 503 of such a host says
        # nothing about the archive.
        is_throttled = stream.status == 429 or (
            stream.status == 503 and is_own_host and not _is_unreadable_record(archive, request, stream)
        )
        if is_throttled and not is_capture:
            now = self._clock.now()
            wait = rate_limit.parse_retry_after(stream.header("retry-after"), stream.header("date"), now)
            await self._rate_limiter.update_state(
                archive, lambda state: (rate_limit.record_throttling(state, now, permit.at, wait), None)
            )
            await stream.drain()
            return None
        if stream.status >= 500 and not is_capture:
            await stream.drain()
            raise FailedError(f"status {stream.status}", archive.id, "status")
        if is_own_host and permit.has_backoff:
            await self._rate_limiter.update_state(
                archive, lambda state: (rate_limit.record_response(state, permit.at), None)
            )
        location = stream.header("location")
        if request.max_redirects > 0 and stream.status in _REDIRECT_STATUSES and location:
            await stream.drain()
            return location
        # The body of a captured redirect is not waited for: its Content-Length was captured, too, and may be wrong.
        is_captured_redirect = is_capture and stream.status in _REDIRECT_STATUSES and location
        if is_captured_redirect:
            body, size = await stream.read_promptly(request.max_bytes, archive.id)
        else:
            body, size = await stream.read(request.max_bytes, archive.id, _partial_store(stream, request))
        if self.connectivity.is_portal_suspected(archive.id):
            self.connectivity.record_page(
                archive.id, sha1(body.read(_DIGESTED_PAGE_BYTES), usedforsecurity=False).hexdigest()
            )
            body.seek(0)
            self.connectivity.raise_if_offline()
        return HttpResponse(stream.url, stream.status, stream.headers, body, size)


def _partial_store(stream: StreamingResponse, request: HttpRequest) -> Callable[[BinaryIO, int], None] | None:
    """Return a callback that stores an incomplete response; None if the request does not ask for one."""
    partial_response = request.partial
    if partial_response is None:
        return None

    def store(body: BinaryIO, size: int) -> None:
        # Of several attempts, the one that received most is stored.
        if partial_response.response is None or partial_response.response.size < size:
            partial_response.response = HttpResponse(stream.url, stream.status, stream.headers, body, size)

    return store


def _is_unreadable_record(archive: Archive, request: HttpRequest, stream: StreamingResponse) -> bool:
    """Return whether a 503 is pywb's response for a stored record that it cannot read, where waiting is useless."""
    is_replay = archive.kind is ArchiveKind.PYWB and request.kind is RequestKind.REPLAY
    return is_replay and stream.header("retry-after") is None


@dataclass(frozen=True, slots=True)
class _RefusedConnection:
    """A connection that an archive's host refused.

    Attributes:
        at: When it was refused.
        sent: When the rate limiter admitted the request.
    """

    archive: Archive
    host: str
    at: float
    sent: float

    @property
    def until(self) -> float:
        """Time until which the archive is not queried while the refusal is unexplained."""
        return self.at + rate_limit.MINUTE

    def block(self, state: RateLimitState, *, is_confirmed: bool) -> tuple[RateLimitState, None]:
        """Return the rate-limit state with the block."""
        return rate_limit.record_refusal(state, self.at, self.sent, is_confirmed=is_confirmed), None


@dataclass(slots=True)
class _PendingRequest:
    """A request while it is retried and redirected.

    Attributes:
        origin: Host and port of the requested URL, before redirects.
        seconds_left: Rest of the total timeout.
        stale_responses: How many connections had data of an earlier response.
    """

    request: HttpRequest
    origin: HostPort
    wait_budget: WaitBudget
    seconds_left: float
    trace: RequestTrace | None = None
    stale_responses: int = 0

    def headers(self, url: HttpUrl) -> dict[str, str]:
        """Return the request's own headers for a URL. Credentials are sent only to the host that was requested."""
        headers = dict(self.request.headers)
        if url.host_port == self.origin:
            return headers
        return {name: value for name, value in headers.items() if name.lower() not in _CREDENTIAL_HEADERS}


@lru_cache(maxsize=64)
def _format_headers(fields: tuple[tuple[str, str], ...]) -> str | None:
    """Return header fields as sent, with a default Accept; None if a value is not allowed in HTTP."""
    headers = {"Accept": "*/*", **dict(fields)}
    if not all(map(_HEADER_VALUE.fullmatch, headers.values())):
        return None
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


def _redirect_target(location: str, base: HttpUrl, archive: Archive) -> HttpUrl:
    try:
        return resolve_redirect(location, base)
    except ValueError as error:
        raise FailedError(f"a redirect to {location[:100]!r}: {error}", archive.id, "redirects") from error


def _retry_delay(error: FailedError, tries: int, pending: _PendingRequest, policy: RetryPolicy) -> float | None:
    """Return the seconds to wait before a retry; None if it would not help, or there is no time left for it."""
    is_first_on_reused = pending.trace is not None and pending.trace.is_reused and tries == 0
    if not policy.retries:
        # Servers close idle connections, possibly just as a request is sent (RFC 9112, section 9.3.1).
        return 0.0 if error.kind == "reset" and is_first_on_reused else None
    # A timeout on a reused connection may mean that the connection is dead; on a new one it would happen again.
    is_transient = policy.allows(error.kind, tries) or (error.kind == "timeout" and is_first_on_reused)
    delay = policy.delay_before(tries)
    return delay if is_transient and delay < pending.seconds_left else None
