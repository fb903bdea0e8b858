"""One HTTP/1.1 connection: sends a request at a time and reads its response in pieces."""

import asyncio
import re
import ssl
from collections import deque
from contextlib import suppress
from typing import cast

import httptools

MAX_HEAD_BYTES = 1 << 18
"""Of all that is not body: archives repeat original headers, and Link fields hold long addresses."""

_DAY_SECONDS = 86_400.0
_CLOSED_EARLY = "closed before the end"
_FRAMING_HEADERS = ("content-length", "transfer-encoding")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_CONTENT_LENGTH = re.compile(rb"(?im)^content-length[ \t]*:[ \t]*(\d{0,19})[^\n]*\n")
_STATUS = re.compile(rb"HTTP/1\.[01] (\d)\d\d")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*(:[^\n]*)")
_MAX_BUFFERED_BYTES = 1 << 19  # bytes of a body that wait to be fetched; then the other side has to


class HttpProtocolError(Exception):
    """What came back is no answer in HTTP. Never seen outside this package."""


class HttpConnection(asyncio.Protocol):
    """A connection, from when it is made until either side closes it.

    key: what the pool finds it by.
    asked: how many questions were sent on it.
    status, headers: of the answer, once `head` has returned; headers as (name, value), in order.
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
        self._unparsed_head: bytes | None = None  # the head as far as it came, if its length is not to be believed
        self._declared_length: int | None = None  # the length that is not believed: fewer bytes are not all of the body
        self._received = 0
        self._parsed_head = b""  # what the parser got of the head
        self._is_head_malformed = False
        self._has_head = self._has_ended = False
        self._ends_with_connection = False
        self._is_keep_alive = True
        self._failure: Exception | None = None

    @property
    def is_open(self) -> bool:
        """Whether another question may be sent on it: the last answer was whole and read, and nothing came behind."""
        is_idle = self._is_keep_alive and not self.has_more
        return is_idle and self._transport is not None and not self._transport.is_closing()

    @property
    def has_more(self) -> bool:
        """Whether there is more of the answer, here or to come."""
        return bool(self._pieces) or not self._has_ended

    @property
    def was_used(self) -> bool:
        """Whether the question on its way is not the first one: the other side may have closed it meanwhile."""
        return self.requests_sent > 1

    @property
    def peer(self) -> str | None:
        """The IP address of the other side, or of the proxy; None if there is none any more."""
        found = None if self._transport is None else self._transport.get_extra_info("peername")
        return str(found[0]) if isinstance(found, tuple) else None

    def send(self, request: bytes, *, until_close: bool = False, is_bodiless: bool = False) -> None:
        """Send a question. It is on its way when this returns; whether it could be sent, `head` tells.

        to_end: whether the body is all that comes until the other side closes the connection, also if that is more
            than its length says.
        is_bodiless: whether the answer is a head alone, whatever length it tells, as to HEAD.
        """
        if self._is_bodiless:
            self._reset_parser()  # the one before still waits for a body
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
        # As browsers read answers: old servers end lines with a bare newline, and worse.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    async def tunnel(self, request: bytes, ssl_context: ssl.SSLContext, host: str) -> None:
        """Ask a proxy for a way to a host, and speak safely with that host from then on.

        Raises NotHttpError if the proxy does not want to, OSError, ssl.SSLError.
        """
        self.send(request)
        await self.read_head(self._loop.time() + _DAY_SECONDS)  # whoever opens connections knows how long that may take
        if self.status != 200 or self._transport is None:
            raise HttpProtocolError(f"status {self.status}")
        if self._transport.is_closing():
            raise ConnectionResetError(_CLOSED_EARLY)
        if self._pieces:  # nobody vouches for it: it must not be taken for a part of what the host says
            raise HttpProtocolError("something was said before the connection was safe")
        transport = await self._loop.start_tls(self._transport, self, ssl_context, server_hostname=host)
        if transport is None:
            raise ConnectionResetError(_CLOSED_EARLY)
        self.connection_made(transport)
        self._reset_parser()  # the one before still waits for the body of the proxy's answer
        self._is_keep_alive = True  # which may have said that it ends its own connection
        self.requests_sent = 0

    async def read_head(self, until: float) -> None:
        """Wait for the head of the answer. Raises TimeoutError, NotHttpError, OSError."""
        while not self._has_head:
            if self._failure is not None:
                raise self._failure
            await self._wait(until)

    async def read_piece(self, until: float) -> bytes:
        """Return some more of the body, nothing at its end. Raises TimeoutError, NotHttpError, OSError."""
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
            with suppress(RuntimeError):  # it was closing, and so never paused
                self._transport.resume_reading()
        return piece

    async def _wait(self, until: float) -> None:
        """Wait until anything happens. Raises TimeoutError at a time of the loop."""
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
        """Close it, at once: whatever is on its way is of no use."""
        self._is_keep_alive = False
        if self._transport is not None:
            self._transport.abort()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport; a second time when a proxy's connection has been made safe."""
        self._transport = cast("asyncio.Transport", transport)
        self._has_ended = True

    def data_received(self, data: bytes) -> None:
        """Read what came."""
        if self._has_ended:
            self.close()  # nobody asked: what follows could be taken for the next answer
            return
        count = len(self._pieces)
        try:
            self._parse(data if self._unparsed_head is None else self._without_length(data))
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(HttpProtocolError(str(error)))
        if len(self._pieces) == count:
            # Of the head, or of fields behind the body: the parser gathers each of them, however long.
            self._non_body_bytes += len(data)
            if self._non_body_bytes > MAX_HEAD_BYTES:
                self._fail(HttpProtocolError(f"fields of more than {MAX_HEAD_BYTES} bytes"))

    def _parse(self, data: bytes) -> None:
        """Give data to the parser. Fields with malformed names are skipped, as browsers do."""
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
        """Return what came up to here without the field that tells a length, once the head is whole."""
        text = (self._unparsed_head or b"") + data
        end = _END_OF_HEAD.search(text)
        if end is None and len(text) <= MAX_HEAD_BYTES:
            self._unparsed_head = text
            return b""
        self._unparsed_head = None
        place = end.end() if end else len(text)
        told = _CONTENT_LENGTH.search(text, 0, place)
        self._declared_length = int(told[1]) if told and told[1] else None
        return _CONTENT_LENGTH.sub(b"", text[:place]) + text[place:]

    def _fail(self, failure: Exception) -> None:
        self._is_keep_alive = False
        # What comes behind a whole answer spoils the next one, not this one.
        if not self._has_ended and self._failure is None:
            self._failure = failure
            self._wake()
        self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the answer with the connection if that is how it ends; else it is broken."""
        self._is_keep_alive = False
        if not self._has_ended and self._failure is None:
            is_whole = self._declared_length is None or self._received >= self._declared_length
            if self._has_head and self._ends_with_connection and exc is None and is_whole:
                self._has_ended = True
            else:
                reason = str(exc or _CLOSED_EARLY)
                self._failure = exc if isinstance(exc, ConnectionError | ssl.SSLError) else ConnectionResetError(reason)
        self._wake()

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Notice an answer that nobody asked for."""
        if self._has_ended:
            self._is_keep_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field."""
        if not self._has_ended and not self._has_head:  # else it is a trailer
            # The parser leaves space at their ends.
            texts = name.strip().decode("utf-8", "surrogateescape"), value.strip().decode("utf-8", "surrogateescape")
            self.headers.append(texts)

    def on_headers_complete(self) -> None:
        """Let go whoever waits for the head, unless it is that of a word in between."""
        if self._has_ended:
            return
        self.status = self._parser.get_status_code()
        if 100 <= self.status < 200:
            return
        lengths = {lower: value for name, value in self.headers if (lower := name.lower()) in _FRAMING_HEADERS}
        coding = lengths.get("transfer-encoding", "").rpartition(",")[2].strip().lower()
        self._ends_with_connection = coding != "chunked" and "content-length" not in lengths
        self._has_head = True
        if self._is_bodiless:
            self._has_ended = True
            self._is_keep_alive = self._is_keep_alive and self._parser.should_keep_alive()
        self._wake()

    def on_body(self, body: bytes) -> None:
        """Take a piece, and let the other side wait if nobody fetches them."""
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
        """End the answer."""
        if not self._has_head:
            self.headers = []  # a word in between: the answer is still to come
            return
        if not self._has_ended:
            self._has_ended = True
            self._is_keep_alive = self._is_keep_alive and self._parser.should_keep_alive()
            self._wake()


def _end_of_head(text: bytes) -> int | None:
    """Return where the head of a response ends, after those of informational ones; None if it is not all there."""
    place = 0
    while end := _END_OF_HEAD.search(text, place):
        status = _STATUS.match(text, place)
        if status is None or status[1] != b"1":
            return end.end()
        place = end.end()
    return None


def _without_malformed_fields(head: bytes) -> bytes:
    """Return a head without the lines that are not a field, and without space before colons."""
    lines: list[bytes] = []
    is_skipped = False  # with the lines that continue it
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
