"""Fetches one URL of the live web: a request and its response, bounded in time and size.

robots.txt and delays are the responsibility of `politeness.PoliteFetcher`. URLs inside private networks are fetched
only on hosts and ports that the user named.
"""

import asyncio
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Self

from unlost import dates
from unlost.clock import Clock
from unlost.crawl.models import MAX_RESOURCE_BYTES
from unlost.errors import FailedError, SiteError, UsageError
from unlost.http.exchange import (
    CONNECTION_ERRORS,
    HttpExchange,
    RequestTrace,
    StreamingResponse,
    format_request,
)
from unlost.http.models import new_body, user_agent
from unlost.http.policy import TIMEOUTS, Timeouts
from unlost.http.pool import ConnectionPool, ConnectionPools, NotPublicError, Resolver
from unlost.http.url import HostPort, HttpUrl, parse_url

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")  # no control characters but tab (RFC 9110, section 5.5)
_SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})  # not stored in WARC request records
_MAX_STALE_CONNECTIONS = 3  # retries after reused connections that were closed or had data of an earlier response


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """One request.

    Attributes:
        uri: The URL.
        method: GET or HEAD.
        headers: Additional headers, such as conditions; they replace default headers of the same name.
        wants_body: If False, the connection is closed after the headers. A function decides by status and headers.
        max_bytes: Limit of the body after content decoding; the rest is cut off.
    """

    uri: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    wants_body: bool | Callable[[int, tuple[tuple[str, str], ...]], bool] = True
    max_bytes: int = MAX_RESOURCE_BYTES


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """A response of any status. Redirects are not followed.

    Attributes:
        uri: The URL as sent.
        headers: (name, value) pairs in the order received.
        body: Temporary file at position 0, without content codings; deleted with its last reference.
        size: Bytes in `body`.
        truncated: Why the body is incomplete, as in WARC-Truncated: `length`, `time`, `disconnect`, or `unspecified`
            if its content coding is damaged. None if it is complete or was not requested.
        requested_at: 14 digits, UTC.
        peer: IP address of the server.
        request: The request as sent, without secrets.
        has_body: Whether the body was read: False for HEAD, or if it was not requested.
    """

    uri: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: BinaryIO
    size: int
    truncated: str | None
    requested_at: str
    peer: str | None
    request: bytes
    has_body: bool = True

    def header(self, name: str) -> str | None:
        """Return the first value of a header, ignoring case; None if it is missing."""
        return next((value for each, value in self.headers if each.lower() == name.lower()), None)


class Fetcher:
    """Sends requests to the live web. Use it as an async context manager; requests may run concurrently.

    Args:
        allowed_urls: URLs that the user named. URLs with private or local IP addresses are fetched only on the hosts
            and ports of these, whatever the source: links, redirects or DNS.
        clock: Source of the request dates.
        contact: Email address or URL for site operators, sent in User-Agent.
        timeouts: Limits of one fetch.
        use_proxies: Whether to use the proxies of the environment.
        resolver: Resolves host names; the system's resolver by default.
    """

    def __init__(
        self,
        allowed_urls: Collection[str],
        clock: Clock,
        contact: str | None = None,
        timeouts: Timeouts = TIMEOUTS["live"],
        *,
        use_proxies: bool = False,
        resolver: Resolver | None = None,
    ) -> None:
        self._clock = clock
        self._timeouts = timeouts
        self._use_proxies = use_proxies
        self._resolver = resolver
        self._default_headers = {"User-Agent": user_agent(contact), "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
        self._allowed_origins: set[HostPort] = set()
        for each in allowed_urls:
            self.allow_origin(each)
        self._pools: ConnectionPools | None = None

    async def __aenter__(self) -> Self:
        """Open the connection pools."""
        self._pools = ConnectionPools(self._resolver, use_proxies=self._use_proxies)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        if self._pools is not None:
            self._pools.close()
        self._pools = None

    def allow_origin(self, uri: str) -> None:
        """Allow the host and port of a URL, even in a private network. Ignores invalid URLs."""
        with suppress(ValueError):
            self._allowed_origins.add(parse_url(uri).host_port)

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Send a request and return the response, with as much of its body as was requested and received.

        Raises:
            SiteError: There was no response.
            UsageError: The method or a header is invalid.
        """
        try:
            url = parse_url(request.uri)
        except ValueError as error:
            raise SiteError(f"not an address to visit: {error}", "malformed") from error
        if self._pools is None:
            raise RuntimeError("use `async with Fetcher(…)`")
        try:
            pool = self._pools.for_host(url.host_port.host, is_named=url.host_port in self._allowed_origins)
        except NotPublicError as error:
            raise SiteError(f"{error}: a page must not lead there", "redirects") from error
        fields = self._build_headers(request)
        retries_left = _MAX_STALE_CONNECTIONS
        while True:
            trace = RequestTrace(_ignore_progress, _ignore_progress)
            try:
                return await self._send(pool, url, request, fields, trace)
            except FailedError as error:
                # Servers close idle connections without notice, sometimes while a request is being sent.
                is_stale = trace.is_stale_response or (error.kind == "reset" and trace.is_reused)
                retries_left -= 1
                if not is_stale or retries_left < 0:
                    raise SiteError(str(error), error.kind) from error

    async def _send(
        self,
        pool: ConnectionPool,
        url: HttpUrl,
        request: FetchRequest,
        fields: dict[str, str],
        trace: RequestTrace,
    ) -> FetchResponse:
        requested_at = dates.from_epoch(str(int(self._clock.now())))
        deadline = asyncio.get_running_loop().time() + self._timeouts.total
        host, header_lines = url.host_port.host, _header_lines(fields)
        exchange = HttpExchange(pool, url, header_lines, trace, self._timeouts, deadline, host, method=request.method)
        async with exchange as stream:
            body, size, truncated = new_body(), 0, None
            wants_body = request.wants_body
            wants_body = wants_body(stream.status, stream.headers) if callable(wants_body) else wants_body
            has_body = wants_body and request.method != "HEAD"
            if has_body:
                body, size, truncated = await _read_body(stream, request.max_bytes, host)
        public_fields = {name: value for name, value in fields.items() if name.lower() not in _SECRET_HEADERS}
        sent = format_request(request.method, url.target, url.host_header, _header_lines(public_fields))
        return FetchResponse(
            str(url),
            stream.status,
            stream.headers,
            body,
            size,
            truncated,
            requested_at,
            stream.peer,
            sent,
            has_body=has_body,
        )

    def _build_headers(self, request: FetchRequest) -> dict[str, str]:
        if request.method not in ("GET", "HEAD"):
            raise UsageError(f"expected GET or HEAD, found {request.method[:20]}")
        fields = dict(self._default_headers)
        names_by_lower = {name.lower(): name for name in fields}
        for name, value in request.headers:
            if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
                raise UsageError(f"a header that cannot be sent: {name[:40]!r}")
            fields[names_by_lower.get(name.lower(), name)] = value
        return fields


async def _read_body(stream: StreamingResponse, max_bytes: int, host: str) -> tuple[BinaryIO, int, str | None]:
    """Return the body at position 0, its size, and why it is truncated (None if it is complete)."""
    body, size, truncated = new_body(), 0, None
    try:
        async for chunk in stream.iter_decoded(max_bytes, host):
            body.write(chunk)
            size += len(chunk)
    except FailedError as error:
        truncated = "length" if error.kind == "too-large" else "unspecified"
    except TimeoutError:
        truncated = "time"
    except CONNECTION_ERRORS:
        truncated = "disconnect"
    except BaseException:
        body.close()
        raise
    body.seek(0)
    return body, size, truncated


def _header_lines(fields: dict[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in fields.items())


def _ignore_progress() -> None:
    pass
