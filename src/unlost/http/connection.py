"""One HTTP/1.1 connection: sends one request at a time and reads the response in pieces."""

import asyncio
import re
import ssl
from collections import deque
from contextlib import suppress
from typing import cast

import httptools

MAX_HEAD_BYTES = 1 << 18
"""Largest size of head and trailers, in bytes. Archives repeat original headers, and Link fields contain long URLs."""

_DAY_SECONDS = 86_400.0
_CLOSED_EARLY = "closed before the end"
_FRAMING_HEADERS = ("content-length", "transfer-encoding")  # RFC 9112, section 6
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_CONTENT_LENGTH = re.compile(rb"(?im)^content-length[ \t]*:[ \t]*(\d{0,19})[^\n]*\n")  # 19 digits: 64 bits
_STATUS = re.compile(rb"HTTP/1\.[01] (\d)\d\d")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*(:[^\n]*)")  # name: token (RFC 9110, section 5.6.2)
_MAX_BUFFERED_BYTES = 1 << 19  # received bytes of a body not yet read, above which reading pauses


class HttpProtocolError(Exception):
    """The response is not valid HTTP. Handled inside this package."""


class HttpConnection(asyncio.Protocol):
    """A connection, from when it is opened until either side closes it.

    Attributes:
        key: The key under which the pool stores the connection.
        requests_sent: Number of requests sent on it.
        status: Status of the response, after `read_head`.
        headers: Header fields of the response as (name, value) pairs, in order, after `read_head`.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.key: object = None
        self.requests_sent = 0
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._reset_parser()
        self._waiter: asyncio.Future[None] | None = None
        self._pieces: deque[bytes] = deque()
        self._buffered_bytes = 0
        self._is_paused = False
        self._non_body_bytes = 0
        self._is_bodiless = False
        self._unparsed_head: bytes | None = None  # the head received so far, if Content-Length is to be ignored
        self._declared_length: int | None = None  # the ignored Content-Length: a shorter body is truncated
        self._received = 0
        self._parsed_head = b""  # the head passed to the parser so far
        self._is_head_malformed = False
        self._has_head = self._has_ended = False
        self._ends_with_connection = False
        self._is_keep_alive = True
        self._failure: Exception | None = None

    @property
    def is_open(self) -> bool:
        """Whether another request may be sent: the last response was read to the end, and nothing followed it."""
        is_idle = self._is_keep_alive and not self.has_more
        return is_idle and self._transport is not None and not self._transport.is_closing()

    @property
    def has_more(self) -> bool:
        """Whether more of the response is buffered or expected."""
        return bool(self._pieces) or not self._has_ended

    @property
    def was_used(self) -> bool:
        """Whether the current request is not the first: the server may have closed the connection meanwhile."""
        return self.requests_sent > 1

    @property
    def peer(self) -> str | None:
        """The remote IP address, or the proxy's; None if the connection is closed."""
        peer = None if self._transport is None else self._transport.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) else None

    def send(self, request: bytes, *, until_close: bool = False, is_bodiless: bool = False) -> None:
        """Send a request. A failure to send is raised by `read_head`.

        Args:
            request: The request as sent.
            until_close: Read the body until the server closes the connection, also beyond Content-Length.
            is_bodiless: The response has no body, whatever its Content-Length, as for HEAD.
        """
        if self._is_bodiless:
            self._reset_parser()  # it still expects the body of the previous response
        self._is_bodiless = is_bodiless
        self.requests_sent += 1
        self._unparsed_head = b"" if until_close else None
        self._declared_length, self._received = None, 0
        self._parsed_head, self._is_head_malformed = b"", False
        self.headers = []
        self._non_body_bytes = 0
        self._has_head = self._has_ended = False
        if self._transport is None or self._transport.is_closing():
            self._failure = ConnectionResetError(_CLOSED_EARLY)
        else:
            self._transport.write(request)

    def _reset_parser(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        # As lenient as browsers: old servers end lines with a bare LF and pad chunk sizes with spaces.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    async def tunnel(self, request: bytes, ssl_context: ssl.SSLContext, host: str) -> None:
        """Open a tunnel through a proxy to a host, and start TLS in it.

        Args:
            request: The CONNECT request as sent.
            ssl_context: The TLS context.
            host: The host name to verify.

        Raises:
            HttpProtocolError: The proxy refuses, or its response is not HTTP.
            OSError: The connection failed; ssl.SSLError if TLS did.
        """
        self.send(request)
        await self.read_head(self._loop.time() + _DAY_SECONDS)  # the pool applies the connect timeout
        if self.status != 200 or self._transport is None:
            raise HttpProtocolError(f"status {self.status}")
        if self._transport.is_closing():
            raise ConnectionResetError(_CLOSED_EARLY)
        if self._pieces:  # unauthenticated data: it must not be taken for part of the host's response
            raise HttpProtocolError("something was said before the connection was safe")
        transport = await self._loop.start_tls(self._transport, self, ssl_context, server_hostname=host)
        if transport is None:
            raise ConnectionResetError(_CLOSED_EARLY)
        self.connection_made(transport)
        self._reset_parser()  # it still expects the body of the proxy's response
        self._is_keep_alive = True  # the proxy's `Connection: close` does not apply to the tunnel
        self.requests_sent = 0

    async def read_head(self, until: float) -> None:
        """Wait for the response headers. Raises TimeoutError, HttpProtocolError, OSError."""
        while not self._has_head:
            if self._failure is not None:
                raise self._failure
            await self._wait(until)

    async def read_piece(self, until: float) -> bytes:
        """Return the next piece of the body, empty at its end. Raises TimeoutError, HttpProtocolError, OSError."""
        while True:
            if self._pieces:
                return self._pop_piece()
            if self._has_ended:
                return b""
            if self._failure is not None:
                raise self._failure
            await self._wait(until)

    def _pop_piece(self) -> bytes:
        piece = self._pieces.popleft()
        self._buffered_bytes -= len(piece)
        if self._is_paused and not self._pieces and self._transport is not None:
            self._is_paused = False
            with suppress(RuntimeError):  # it was closing, so reading was never paused
                self._transport.resume_reading()
        return piece

    async def _wait(self, until: float) -> None:
        """Wait for the next event. Raises TimeoutError at `until`, a time of the event loop."""
        waiter = self._waiter = self._loop.create_future()
        timer = self._loop.call_at(until, _expire, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        """Close the connection at once, without sending buffered data."""
        self._is_keep_alive = False
        if self._transport is not None:
            self._transport.abort()

    # Callbacks of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport. Called a second time after TLS has started in a tunnel."""
        self._transport = cast("asyncio.Transport", transport)
        self._has_ended = True

    def data_received(self, data: bytes) -> None:
        """Parse received data."""
        if self._has_ended:
            self.close()  # unsolicited data could be taken for the next response
            return
        count = len(self._pieces)
        try:
            self._parse(data if self._unparsed_head is None else self._without_length(data))
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(HttpProtocolError(str(error)))
        if len(self._pieces) == count:
            # Part of the head or of trailers. The parser buffers a field without a limit of its own.
            self._non_body_bytes += len(data)
            if self._non_body_bytes > MAX_HEAD_BYTES:
                self._fail(HttpProtocolError(f"fields of more than {MAX_HEAD_BYTES} bytes"))

    def _parse(self, data: bytes) -> None:
        """Pass data to the parser. Fields with malformed names are dropped, as browsers do."""
        if self._has_head:
            self._parser.feed_data(data)
            return
        self._parsed_head += data
        if not self._is_head_malformed:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserError:
                self._parsed_head = self._parsed_head.lstrip(b"\r\n")
                if self._has_head or self._has_ended or not _STATUS.match(self._parsed_head):
                    raise
                self._is_head_malformed = True
            else:
                if self._has_head:
                    self._parsed_head = b""
                return
        end = _end_of_head(self._parsed_head)
        if end is not None:
            text, self._parsed_head = self._parsed_head, b""
            self._reset_parser()
            self.headers = []
            self._parser.feed_data(_without_malformed_fields(text[:end]) + text[end:])

    def _without_length(self, data: bytes) -> bytes:
        """Return the data received so far without Content-Length, once the head is complete."""
        text = (self._unparsed_head or b"") + data
        end = _END_OF_HEAD.search(text)
        if end is None and len(text) <= MAX_HEAD_BYTES:
            self._unparsed_head = text
            return b""
        self._unparsed_head = None
        head_end = end.end() if end else len(text)
        length = _CONTENT_LENGTH.search(text, 0, head_end)
        self._declared_length = int(length[1]) if length and length[1] else None
        return _CONTENT_LENGTH.sub(b"", text[:head_end]) + text[head_end:]

    def _fail(self, failure: Exception) -> None:
        self._is_keep_alive = False
        # Data after a complete response only makes the connection unusable; it does not damage that response.
        if not self._has_ended and self._failure is None:
            self._failure = failure
            self._wake()
        self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the response if it is delimited by the end of the connection; otherwise it is truncated."""
        self._is_keep_alive = False
        if not self._has_ended and self._failure is None:
            is_whole = self._declared_length is None or self._received >= self._declared_length
            if self._has_head and self._ends_with_connection and exc is None and is_whole:
                self._has_ended = True
            else:
                reason = str(exc or _CLOSED_EARLY)
                self._failure = exc if isinstance(exc, ConnectionError | ssl.SSLError) else ConnectionResetError(reason)
        self._wake()

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        """Detect an unsolicited response."""
        if self._has_ended:
            self._is_keep_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header field."""
        if not self._has_ended and not self._has_head:  # else it is a trailer
            # The parser does not strip whitespace.
            texts = name.strip().decode("utf-8", "surrogateescape"), value.strip().decode("utf-8", "surrogateescape")
            self.headers.append(texts)

    def on_headers_complete(self) -> None:
        """Wake `read_head`, unless the response is informational (1xx)."""
        if self._has_ended:
            return
        self.status = self._parser.get_status_code()
        if 100 <= self.status < 200:
            return
        framing = {lower: value for name, value in self.headers if (lower := name.lower()) in _FRAMING_HEADERS}
        coding = framing.get("transfer-encoding", "").rpartition(",")[2].strip().lower()
        self._ends_with_connection = coding != "chunked" and "content-length" not in framing
        self._has_head = True
        if self._is_bodiless:
            self._has_ended = True
            self._is_keep_alive = self._is_keep_alive and self._parser.should_keep_alive()
        self._wake()

    def on_body(self, body: bytes) -> None:
        """Buffer a piece of the body, and pause reading if too much is buffered."""
        if self._has_ended:
            return
        self._pieces.append(body)
        self._received += len(body)
        self._buffered_bytes += len(body)
        if self._buffered_bytes > _MAX_BUFFERED_BYTES and not self._is_paused and self._transport is not None:
            self._is_paused = True
            with suppress(RuntimeError):  # it is closing
                self._transport.pause_reading()
        self._wake()

    def on_message_complete(self) -> None:
        """End the response."""
        if not self._has_head:
            self.headers = []  # an informational response: the final one follows
            return
        if not self._has_ended:
            self._has_ended = True
            self._is_keep_alive = self._is_keep_alive and self._parser.should_keep_alive()
            self._wake()


def _end_of_head(text: bytes) -> int | None:
    """Return where the head of the final response ends, after informational ones; None if it is incomplete."""
    position = 0
    while end := _END_OF_HEAD.search(text, position):
        status = _STATUS.match(text, position)
        if status is None or status[1] != b"1":
            return end.end()
        position = end.end()
    return None


def _without_malformed_fields(head: bytes) -> bytes:
    """Return a head without lines that are not fields, and without whitespace before colons."""
    lines: list[bytes] = []
    is_skipped = False  # also drops the continuation lines of a dropped field
    for line in head.split(b"\n"):
        field = _FIELD.match(line)
        if field is not None:
            lines.append(field[1] + field[2])
            is_skipped = False
        elif line in (b"", b"\r") or _STATUS.match(line) or (line[:1] in (b" ", b"\t") and not is_skipped):
            lines.append(line)
        else:
            is_skipped = True
    return b"\n".join(lines)


def _expire(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
