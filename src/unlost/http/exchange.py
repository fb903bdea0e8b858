"""One HTTP exchange: a request and its streamed response, with a timeout for each phase and classified errors."""

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from io import BytesIO
from socket import gaierror
from typing import BinaryIO

from unlost.errors import FailedError
from unlost.http.connection import HttpConnection, HttpProtocolError
from unlost.http.content_encoding import SUPPORTED_CODINGS, ContentDecoder, UndecodableError, parse_content_encoding
from unlost.http.models import new_body
from unlost.http.policy import Timeouts
from unlost.http.pool import ConnectionPool, ConnectTimeoutError, NotPublicError, ProxyError, ProxyServer
from unlost.http.url import HttpUrl

CONNECTION_ERRORS = (HttpProtocolError, TimeoutError, ConnectionError, ssl.SSLError)
"""What a connection raises while a response is read."""

_MAX_DRAINED_BYTES = 1 << 18  # reading more of an unused body costs more than a new connection
_DRAIN_SECONDS = 2.0
_MAX_MEMORY_BYTES = 1 << 20  # larger bodies go to a temporary file
_YIELD_BYTES = 1 << 20  # decoded bytes after which other tasks may run


class RequestTrace:
    """Records how far a request got, for retries and quotas.

    Attributes:
        is_reused: The request was sent on a reused connection, which the server may have closed.
        is_stale_response: The data received on a reused connection is not HTTP: the rest of an earlier response.
        is_sent: The request was sent.
        is_proxied: The request goes through a proxy.
        on_connect: Called before a new connection is opened, which may take a while.
        on_sent: Called after the request is sent.
    """

    def __init__(self, on_connect: Callable[[], None], on_sent: Callable[[], None]) -> None:
        self.is_reused = False
        self.is_stale_response = False
        self.is_sent = False
        self.is_proxied = False
        self.on_connect = on_connect
        self.on_sent = on_sent


class StreamingResponse:
    """A response whose body has not been read. Read or drain it, or the connection is closed.

    Attributes:
        peer: The remote IP address.
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
        """Return the first value of a header field, or None. `name` must be in lower case."""
        return self._first_values.get(name)

    def _values(self, name: str) -> list[str]:
        if name not in self._first_values:
            return []
        return [value for each, value in self.headers if each.lower() == name]

    async def read(
        self, max_bytes: int, archive: str, on_partial: Callable[[BinaryIO, int], None] | None = None
    ) -> tuple[BinaryIO, int]:
        """Read the whole body.

        Args:
            max_bytes: Largest accepted body, before and after decoding.
            archive: The archive's id, for errors.
            on_partial: Receives an incomplete body and its size before the error is raised.

        Returns:
            The decoded body, positioned at its beginning, and its size.

        Raises:
            FailedError: The body is too large or damaged.
            TimeoutError: The body did not arrive in time.
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
        """Return a body without a content coding that is a single piece, as most are; None for any other."""
        self._pending = await self._read_piece(until)
        if self._connection.has_more or len(self._pending) > _MAX_MEMORY_BYTES:
            return None
        return self._pending

    async def _read_piece(self, until: float) -> bytes:
        """Return the next piece of the body, empty at its end. Raises TimeoutError after `until`, even with data."""
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
        """Yield the decoded body. All data that arrived before an error is yielded before the error is raised.

        Args:
            max_bytes: Largest accepted body, before and after decoding.
            archive: The archive's id, for errors.

        Raises:
            FailedError: The body is too large or damaged. Errors in `CONNECTION_ERRORS` are raised as they are.
        """
        return self._iter_decoded(self._content_codings(), max_bytes, archive, self._until)

    async def _iter_decoded(  # noqa: C901  one branch for each way in which a body ends
        self, codings: list[str], max_bytes: int, archive: str, until: float
    ) -> AsyncIterator[bytes]:
        raw = size = 0
        pause = _YIELD_BYTES
        try:
            decoder = ContentDecoder(codings)
            data = b"-"  # not empty, so that the loop starts; an empty piece ends the body
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
            return []  # a range of the encoded file (RFC 9110, section 14.2): decoding needs what precedes it
        if declared := parse_content_encoding(self._values("content-encoding")):
            return declared
        # Some archives send the stored bytes, and declare the coding only in the original headers.
        stored = parse_content_encoding(self._values("x-archive-orig-content-encoding"))
        return stored if SUPPORTED_CODINGS.issuperset(stored) else []

    async def read_promptly(self, max_bytes: int, archive: str) -> tuple[BinaryIO, int]:
        """Return the body as `read` does, or an empty one if it is incomplete or does not arrive within two seconds."""
        try:
            return await self._read_whole(max_bytes, archive, self._short_deadline())
        except (FailedError, *CONNECTION_ERRORS):
            return new_body(), 0

    async def drain(self) -> None:
        """Discard a body so that the connection can be reused, unless that takes too long."""
        remaining, until = _MAX_DRAINED_BYTES, self._short_deadline()
        with suppress(*CONNECTION_ERRORS):
            while remaining > 0 and (data := await self._read_piece(until)):
                remaining -= len(data)

    def _short_deadline(self) -> float:
        return min(self._loop.time() + min(self._idle, _DRAIN_SECONDS), self._until)


def _flush_decoder(decoder: ContentDecoder, max_bytes: int) -> Iterator[bytes]:
    """Yield what the decoder has buffered of a truncated body, at most `max_bytes`."""
    with suppress(UndecodableError):
        for piece in decoder.end():
            yield piece[:max_bytes]
            max_bytes -= len(piece)
            if max_bytes <= 0:
                return


def format_request(method: str, target: str, host: str, fields: str) -> bytes:
    """Return the head of a request.

    Args:
        method: The method.
        target: The request target.
        host: Value of the Host header.
        fields: All other header fields, each with its line end.
    """
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n".encode("utf-8", "surrogateescape")


def _too_large(max_bytes: int, archive: str) -> FailedError:
    return FailedError(f"an answer of more than {max_bytes} bytes", archive, "too-large")


class HttpExchange:
    """One request and its response, as an async context manager that returns a `StreamingResponse`.

    Connection errors in its block are raised as FailedError, too.

    Args:
        pool: Where the connection comes from.
        url: The URL to request.
        headers: Header fields as sent, each with its line end.
        trace: Records how far the request got.
        timeouts: The timeouts of each phase.
        until: Time of the event loop after which the exchange fails.
        archive: The archive's id, for errors.
        until_close: As in `HttpRequest`.
        method: GET or HEAD.
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
        """Send the request and return the response once its headers are received. Raises FailedError."""
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
        """Open a connection, with TLS for https, and close it without sending anything. Raises FailedError."""
        (await self._open(self._pool.proxy_for(self._url), self._timeouts.connect)).close()

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Release the connection."""
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
        target, fields = url.target, self._headers
        if proxy is not None and url.scheme == "http":
            target = str(url)  # absolute form (RFC 9112, section 3.2.2)
            if proxy.authorization:
                fields += f"Proxy-Authorization: {proxy.authorization}\r\n"
        if self._until_close:
            fields += "Connection: close\r\n"
        return format_request(self._method, target, url.host_header, fields)

    def _to_failed_error(self, error: Exception) -> FailedError:
        kind, message = _classify_error(error)
        host_port = self._url.host_port
        return FailedError(f"{host_port.host}:{host_port.port}: {message}"[:300], self._archive, kind)


def _classify_error(error: Exception) -> tuple[str, str]:  # noqa: PLR0911  one for each kind of failure
    """Return the kind of failure and a message."""
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
    """Return whether a connection failed with an error number, for at least one of the addresses tried."""
    return getattr(error, "errno", None) == number or f"[Errno {number}]" in str(error)


def _error_text(error: Exception) -> str:
    return " ".join(str(error).split())[:150] or type(error).__name__
