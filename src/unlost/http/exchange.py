"""One HTTP exchange: a request and its streamed response, with a timeout for each phase and classified errors."""

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from socket import gaierror
from typing import BinaryIO

from unlost.errors import FailedError
from unlost.http.body import new_body
from unlost.http.connection import HttpConnection, HttpProtocolError
from unlost.http.content_encoding import SUPPORTED_CODINGS, ContentDecoder, UndecodableError, parse_content_encoding
from unlost.http.pool import ConnectionPool, ConnectTimeoutError, ProxyError, ProxyServer
from unlost.http.resolver import NotPublicError
from unlost.http.url import HttpUrl

CONNECTION_ERRORS = (HttpProtocolError, TimeoutError, ConnectionError, ssl.SSLError)
"""What a connection raises while an answer is awaited."""

_MAX_DRAINED_BYTES = 1 << 18  # bytes of an answer that is of no use; beyond it, a new connection costs less
_DRAIN_SECONDS = 2.0
_MAX_MEMORY_BYTES = 1 << 20  # bytes of a body that is kept in memory
_YIELD_BYTES = 1 << 20  # bytes that are decoded before others get their turn


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long an archive may take, in seconds.

    connect: to look its name up, connect and agree on keys.
    first_byte: from then until its headers are there. Index servers think long before they list a large site.
    idle: between two pieces of the body.
    total: for everything that one question takes, with redirects and what is tried again; not the wait for limits.
    """

    connect: float = 15.0
    first_byte: float = 60.0
    idle: float = 30.0
    total: float = 180.0


class RequestTrace:
    """What becomes of a request on its way.

    reused: whether it went out on a connection that had been used before, which the other side may have closed.
    strayed: whether what came back on such a connection is not HTTP: bytes that were left of the answer before it.
    connecting: is called if there must be a new connection first, which may take a while. sent: once it is out.
    is_sent: whether the request left this machine. proxied: whether it goes through a proxy.
    """

    def __init__(self, on_connect: Callable[[], None], on_sent: Callable[[], None]) -> None:
        self.is_reused = False
        self.is_stale_response = False
        self.is_sent = False
        self.is_proxied = False
        self.on_connect = on_connect
        self.on_sent = on_sent


class StreamingResponse:
    """An answer whose body is still to come. It must be read or drained, or the connection is closed.

    peer: the IP address that it came from.
    """

    def __init__(self, connection: HttpConnection, url: HttpUrl, idle: float, until: float) -> None:
        self._connection = connection
        self._idle = idle
        self._until = until
        self._loop = asyncio.get_running_loop()
        self._pending = b""
        self.url = str(url)
        self.peer = connection.peer
        self.status = connection.status
        self.headers = tuple(connection.headers)
        self._first_values = {name.lower(): value for name, value in reversed(self.headers)}

    def header(self, name: str) -> str | None:
        """Return the first value of a field; None if there is none. name: in lower case."""
        return self._first_values.get(name)

    def _values(self, name: str) -> list[str]:
        if name not in self._first_values:
            return []
        return [value for each, value in self.headers if each.lower() == name]

    async def read(
        self, max_bytes: int, archive: str, on_partial: Callable[[BinaryIO, int], None] | None = None
    ) -> tuple[BinaryIO, int]:
        """Return the whole body, decoded and at its beginning, and its size. Raises FailedError, TimeoutError.

        broken: gets what was received, and its size, before anything is raised.
        """
        return await self._read_whole(max_bytes, archive, self._until, on_partial)

    async def _read_whole(
        self, max_bytes: int, archive: str, until: float, on_partial: Callable[[BinaryIO, int], None] | None = None
    ) -> tuple[BinaryIO, int]:
        if on_partial is None and int(self.header("content-length") or 0) > max_bytes:
            raise _too_large(max_bytes, archive)
        codings = self._content_codings()
        if not codings and (small := await self._read_small(until)) is not None and len(small) <= max_bytes:
            return BytesIO(small), len(small)
        body = new_body()
        try:
            size = await self._spool(body, codings, max_bytes, archive, until)
        except BaseException:
            received = body.tell()
            if on_partial is not None and received:
                body.seek(0)
                on_partial(body, received)
            else:
                body.close()
            raise
        body.seek(0)
        return body, size

    async def _read_small(self, until: float) -> bytes | None:
        """Return a body that is not coded and has one piece, as most have; None if it is another."""
        self._pending = await self._read_piece(until)
        if self._connection.has_more or len(self._pending) > _MAX_MEMORY_BYTES:
            return None
        return self._pending

    async def _read_piece(self, until: float) -> bytes:
        """Return some more of the body, nothing at its end. Raises TimeoutError also if all is here, but too late."""
        if self._pending:
            piece, self._pending = self._pending, b""
            return piece
        now = self._loop.time()
        if now > until:
            raise TimeoutError
        return await self._connection.read_piece(min(now + self._idle, until))

    async def _spool(self, body: BinaryIO, codings: list[str], max_bytes: int, archive: str, until: float) -> int:
        size = 0
        async for piece in self._iter_decoded(codings, max_bytes, archive, until):
            size += len(piece)
            body.write(piece)
        return size

    def iter_decoded(self, max_bytes: int, archive: str) -> AsyncIterator[bytes]:
        """Yield the body without its codings, all that there is of it before whatever goes wrong.

        max_bytes: of the body, with and without its codings. Raises FailedError, and what is in BROKEN.
        """
        return self._iter_decoded(self._content_codings(), max_bytes, archive, self._until)

    async def _iter_decoded(  # noqa: C901  one branch for each way in which a body ends
        self, codings: list[str], max_bytes: int, archive: str, until: float
    ) -> AsyncIterator[bytes]:
        raw = size = 0
        pause = _YIELD_BYTES
        try:
            decoder = ContentDecoder(codings)
            data = b"-"
            while data:
                try:
                    data = await self._read_piece(until)
                except BaseException:
                    for piece in _flush_decoder(decoder, max_bytes - size):
                        yield piece
                    raise
                room, raw = max_bytes - raw, raw + len(data)
                if raw > max_bytes:
                    data = data[:room]
                for piece in decoder.decode(data) if data or raw > max_bytes else decoder.end():
                    if len(piece) > max_bytes - size:
                        yield piece[: max_bytes - size]
                        raise _too_large(max_bytes, archive)
                    size += len(piece)
                    yield piece
                    if size > pause:
                        pause = size + _YIELD_BYTES
                        await asyncio.sleep(0)
                if raw > max_bytes:
                    raise _too_large(max_bytes, archive)
                if decoder.damage is not None:
                    raise FailedError(f"a body that is damaged: {decoder.damage}", archive, "malformed")
        except UndecodableError as error:
            raise FailedError(f"a body {error}", archive, "malformed") from error

    def _content_codings(self) -> list[str]:
        if self.status == 206:
            return []  # a part of a file is given as it is: to decode it would need what comes before
        if declared := parse_content_encoding(self._values("content-encoding")):
            return declared
        # Some archives give the stored bytes, and what they are encoded in only among the original headers.
        stored = parse_content_encoding(self._values("x-archive-orig-content-encoding"))
        return stored if SUPPORTED_CODINGS.issuperset(stored) else []

    async def read_promptly(self, max_bytes: int, archive: str) -> tuple[BinaryIO, int]:
        """Return the body as `read` does; an empty one if it does not come soon, or not whole."""
        try:
            return await self._read_whole(max_bytes, archive, self._short_deadline())
        except (FailedError, *CONNECTION_ERRORS):
            return new_body(), 0

    async def drain(self) -> None:
        """Read a body that is of no use, so that the connection can be used again, unless that takes long."""
        left, until = _MAX_DRAINED_BYTES, self._short_deadline()
        with suppress(*CONNECTION_ERRORS):
            while left > 0 and (data := await self._read_piece(until)):
                left -= len(data)

    def _short_deadline(self) -> float:
        return min(self._loop.time() + min(self._idle, _DRAIN_SECONDS), self._until)


def _flush_decoder(decoder: ContentDecoder, max_bytes: int) -> Iterator[bytes]:
    """Yield what a decoder still holds of a body that breaks off, at most `max_bytes`."""
    with suppress(UndecodableError):
        for piece in decoder.end():
            yield piece[:max_bytes]
            max_bytes -= len(piece)
            if max_bytes <= 0:
                return


def format_request(method: str, target: str, host: str, fields: str) -> bytes:
    """Return a request as it is sent. fields: the others, each with its line end."""
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n".encode("utf-8", "surrogateescape")


def _too_large(max_bytes: int, archive: str) -> FailedError:
    return FailedError(f"an answer of more than {max_bytes} bytes", archive, "too-large")


class HttpExchange:
    """A request and its answer, as an async context manager that gives the Head.

    until: a time of the event loop at which everything must be over. to_end: as in Question. method: GET or HEAD.
    Raises FailedError, also out of the block, where NotHttpError, TimeoutError and broken connections become one.
    """

    def __init__(
        self,
        pool: ConnectionPool,
        url: HttpUrl,
        headers: str,
        trace: RequestTrace,
        timeouts: Timeouts,
        until: float,
        archive: str,
        *,
        until_close: bool = False,
        method: str = "GET",
    ) -> None:
        self._until_close = until_close
        self._method = method
        self._pool, self._url, self._headers, self._trace = pool, url, headers, trace
        self._timeouts, self._until, self._archive = timeouts, until, archive
        self._connection: HttpConnection | None = None

    async def __aenter__(self) -> StreamingResponse:
        """Send the request and wait for the head of the answer."""
        loop = asyncio.get_running_loop()
        url, proxy = self._url, self._pool.proxy_for(self._url)
        self._trace.is_proxied = proxy is not None
        connection = self._pool.take_idle(url, proxy)
        if connection is None:
            self._trace.on_connect()
            connection = await self._open(proxy, min(self._timeouts.connect, self._until - loop.time()))
        self._connection = connection
        try:
            connection.send(
                self._format_request(proxy), until_close=self._until_close, is_bodiless=self._method == "HEAD"
            )
            self._trace.is_reused = connection.was_used
            self._trace.is_sent = True
            self._trace.on_sent()
            await connection.read_head(min(loop.time() + self._timeouts.first_byte, self._until))
        except BaseException as error:
            self._finish(error)
            raise
        return StreamingResponse(connection, url, self._timeouts.idle, self._until)

    async def connect(self) -> None:
        """Make a connection, with TLS where the URL has it, and close it: nothing is sent. Raises FailedError."""
        (await self._open(self._pool.proxy_for(self._url), self._timeouts.connect)).close()

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Give the connection back."""
        self._finish(error)

    def _finish(self, error: BaseException | None) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        self._pool.release(connection)
        if isinstance(error, CONNECTION_ERRORS):
            self._trace.is_stale_response = self._trace.is_reused and isinstance(error, HttpProtocolError)
            if self._trace.is_stale_response:
                self._pool.close_idle(connection)
            raise self._to_failed_error(error) from error

    async def _open(self, proxy: ProxyServer | None, seconds: float) -> HttpConnection:
        try:
            return await self._pool.open(self._url, proxy, seconds)
        except (OSError, HttpProtocolError) as error:
            raise self._to_failed_error(error) from error

    def _format_request(self, proxy: ProxyServer | None) -> bytes:
        url = self._url
        target, more = url.target, self._headers
        if proxy is not None and url.scheme == "http":
            target = str(url)
            if proxy.authorization:
                more += f"Proxy-Authorization: {proxy.authorization}\r\n"
        if self._until_close:
            more += "Connection: close\r\n"
        return format_request(self._method, target, url.host_header, more)

    def _to_failed_error(self, error: Exception) -> FailedError:
        kind, what = _classify_error(error)
        place = self._url.host_port
        return FailedError(f"{place.host}:{place.port}: {what}"[:300], self._archive, kind)


def _classify_error(error: Exception) -> tuple[str, str]:  # noqa: PLR0911  one for each way to fail
    """Return the kind of a failure, and what happened in words."""
    if isinstance(error, ssl.SSLError):
        return "tls", f"no safe connection: {_error_text(error)}"
    if isinstance(error, ProxyError):
        return "proxy", _error_text(error)
    if isinstance(error, gaierror):
        return "dns", f"name resolution failed: {_error_text(error)}"
    if isinstance(error, NotPublicError):
        return "redirects", str(error)
    if isinstance(error, ConnectTimeoutError):
        return "unreachable", "no connection in time"
    if isinstance(error, TimeoutError):
        return "timeout", "no answer in time, or not all of it"
    if isinstance(error, HttpProtocolError):
        return "malformed", f"not an answer in HTTP: {_error_text(error)}"
    if _has_errno(error, errno.ECONNREFUSED):
        return "refused", "the connection was refused"
    if isinstance(error, ConnectionError):
        return "reset", f"the connection broke: {_error_text(error)}"
    return "unreachable", f"no connection: {_error_text(error)}"


def _has_errno(error: Exception, number: int) -> bool:
    """Return whether a connection failed so, at one at least of the addresses that were tried."""
    return getattr(error, "errno", None) == number or f"[Errno {number}]" in str(error)


def _error_text(error: Exception) -> str:
    return " ".join(str(error).split())[:150] or type(error).__name__
