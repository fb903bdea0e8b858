"""Fetches one URL of the live web: a request and its response, bounded in time and size.

Whether a request may be sent is decided elsewhere (robots, politeness). URLs inside private networks are fetched only
on hosts and ports that the user named.
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
from unlost.http.body import new_body
from unlost.http.exchange import (
    CONNECTION_ERRORS,
    HttpExchange,
    RequestTrace,
    StreamingResponse,
    Timeouts,
    format_request,
)
from unlost.http.models import user_agent
from unlost.http.pool import ConnectionPool, Resolver, open_pools
from unlost.http.url import HostPort, HttpUrl, may_be_public_host, parse_url

DEFAULT_TIMEOUTS = Timeouts(connect=15.0, first_byte=30.0, idle=20.0, total=300.0)
"""How long a page may take. A browser's user has gone by then; 64 MiB in five minutes is 220 KB a second."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
_MAX_STALE_CONNECTIONS = (
    3  # connections that may turn out to be closed, or to have something left on them, before one is new
)


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """One request.

    method: GET or HEAD.
    headers: in addition to those that every request has, or instead of them: conditions, for example.
    wants_body: with False the connection is closed once the headers are there; or what tells, of status and headers.
    max_bytes: how much of the body, without its codings, is read; the rest is cut off.
    """

    uri: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    wants_body: bool | Callable[[int, tuple[tuple[str, str], ...]], bool] = True
    max_bytes: int = MAX_RESOURCE_BYTES


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """An answer, whatever its status; redirects are not followed.

    uri: as it was sent. headers: as (name, value), in order.
    body: at its beginning, without codings; a temporary file that goes with the last reference. size: in bytes.
    truncated: why the body is not whole: `length`, `time`, `disconnect` or `unspecified` (its coding is damaged), as
        WARCs say it; None if it is. Of a body that was not wanted nothing is said.
    moment: when it was asked for, 14 digits. peer: the IP address that it came from.
    request: what was sent, without secrets.
    has_body: whether the body was read; False if it was not wanted, or the method was HEAD.
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
        """Return the first value of a field, in whatever case; None if there is none."""
        return next((value for each, value in self.headers if each.lower() == name.lower()), None)


class Fetcher:
    """Visits pages, one request at a time or many. Use it as an async context manager.

    given: addresses that a person named. What is inside a network, or on this machine, is visited only on their hosts
        and ports; nowhere else, whatever a page or a name server says.
    contact: an address of mail or of a page, for whoever looks after a site.
    proxies: whether to go through the proxies that the environment names.
    resolver: what looks names up; by default the system.
    """

    def __init__(
        self,
        allowed_urls: Collection[str],
        clock: Clock,
        contact: str | None = None,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
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
        self._pools: dict[bool, ConnectionPool] = {}

    async def __aenter__(self) -> Self:
        """Open the pools: one for given places, one for others."""
        self._pools = open_pools(self._resolver, use_proxies=self._use_proxies)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every connection."""
        for pool in self._pools.values():
            pool.close()
        self._pools = {}

    def allow_origin(self, uri: str) -> None:
        """Take an address as one that a person named, which may be inside a network; what is none is passed over."""
        with suppress(ValueError):
            self._allowed_origins.add(parse_url(uri).host_port)

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Return the answer, as much of it as was wanted and came. Raises SiteError if there is none."""
        try:
            address = parse_url(request.uri)
        except ValueError as error:
            raise SiteError(f"not an address to visit: {error}", "malformed") from error
        is_given = address.host_port in self._allowed_origins
        if not is_given and not may_be_public_host(address.host_port.host):
            raise SiteError(
                f"{address.host_port.host[:100]} is inside a network: a page must not lead there", "redirects"
            )
        pool = self._pools.get(is_given)
        if pool is None:
            raise RuntimeError("use `async with Visitor(…)`")
        fields = self._build_headers(request)
        left = _MAX_STALE_CONNECTIONS
        while True:
            passage = RequestTrace(_ignore_progress, _ignore_progress)
            try:
                return await self._send(pool, address, request, fields, passage)
            except FailedError as error:
                # Servers close what was idle for long, without a word or just when something is sent.
                is_stale = passage.is_stale_response or (error.kind == "reset" and passage.is_reused)
                left -= 1
                if not is_stale or left < 0:
                    raise SiteError(str(error), error.kind) from error

    async def _send(
        self,
        pool: ConnectionPool,
        address: HttpUrl,
        request: FetchRequest,
        fields: dict[str, str],
        passage: RequestTrace,
    ) -> FetchResponse:
        moment = dates.from_epoch(str(int(self._clock.now())))
        until = asyncio.get_running_loop().time() + self._timeouts.total
        place, lines = address.host_port.host, _header_lines(fields)
        exchange = HttpExchange(pool, address, lines, passage, self._timeouts, until, place, method=request.method)
        async with exchange as head:
            body, size, truncated = new_body(), 0, None
            wants = request.wants_body
            wants = wants(head.status, head.headers) if callable(wants) else wants
            has_body = wants and request.method != "HEAD"
            if has_body:
                body, size, truncated = await _read_body(head, request.max_bytes, place)
        shown = {name: value for name, value in fields.items() if name.lower() not in _SECRET_HEADERS}
        sent = format_request(request.method, address.target, address.host_header, _header_lines(shown))
        return FetchResponse(
            str(address), head.status, head.headers, body, size, truncated, moment, head.peer, sent, has_body=has_body
        )

    def _build_headers(self, request: FetchRequest) -> dict[str, str]:
        if request.method not in ("GET", "HEAD"):
            raise UsageError(f"expected GET or HEAD, found {request.method[:20]}")
        fields = dict(self._default_headers)
        own = {name.lower(): name for name in fields}
        for name, value in request.headers:
            if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
                raise UsageError(f"a header that cannot be sent: {name[:40]!r}")
            fields[own.get(name.lower(), name)] = value
        return fields


async def _read_body(head: StreamingResponse, max_bytes: int, place: str) -> tuple[BinaryIO, int, str | None]:
    """Return as much of a body as comes, at its beginning, its size, and why it is not whole if it is not."""
    body, size, truncated = new_body(), 0, None
    try:
        async for piece in head.iter_decoded(max_bytes, place):
            body.write(piece)
            size += len(piece)
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
    """Pay no heed to how far a request has come."""
