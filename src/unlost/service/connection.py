"""Connections of the server with bounds: how long a request's head may be, how slowly it and the answer may go."""

import asyncio
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from unlost.service.address import MAX_TARGET_BYTES

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

_MAX_HEAD = MAX_TARGET_BYTES + (1 << 15)  # bytes of request line and headers, roughly: whole pieces are counted
_HEAD_SECONDS = 20.0  # from connecting, or from the first byte of a request, to the end of its headers
_STALLED_SECONDS = 60.0  # for which a client may take nothing of an answer; what waits for it takes memory


_FIELD_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_VALUES = re.compile(rb"[\x00-\x08\n-\x1f\x7f]")
_FIELD_NAMES = {b"etag": b"ETag", b"www-authenticate": b"WWW-Authenticate"}


class BoundedConnection(HttpToolsProtocol):
    """A connection on which no request is endless before the application sees it, and no answer waits for ever."""

    _stall: asyncio.TimerHandle | None = None
    _unsent = 0
    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _is_in_head = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._end()
        self._go_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; if they do not come to the end of the headers, they must not be too many."""
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD and not self.transport.is_closing():
                self.send_400_response(f"expected at most {_MAX_HEAD} bytes of request line and headers")

    def on_message_begin(self) -> None:
        """Begin to wait for the end of the headers."""
        super().on_message_begin()
        self._begin()

    def on_headers_complete(self) -> None:
        """Have the request answered."""
        self._end()
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            self.cycle.__class__ = _Response  # its task has not started yet

    def pause_writing(self) -> None:
        """Have the application wait, since the client takes nothing; it must take something soon."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Have the application go on."""
        self._go_on()
        super().resume_writing()

    def _watch(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._stall = self.loop.call_later(_STALLED_SECONDS, self._check)

    def _check(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent:
            self._watch()
        else:
            self.transport.abort()

    def _go_on(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _begin(self) -> None:
        self._end()
        self._head_bytes, self._is_in_head = 0, True
        self._timer = self.loop.call_later(_HEAD_SECONDS, self.transport.close)

    def _end(self) -> None:
        self._is_in_head = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Response(RequestResponseCycle):
    """A response with field names in their usual case.

    uvicorn writes them in lower case. Clients that compare names with their usual case, such as LANL's
    memento-validator, do not find them then.
    """

    async def send(self, message: "ASGISendEvent") -> None:
        if self.response_started or message["type"] != "http.response.start":
            await super().send(message)
            return
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if not self.disconnected:
            self.response_started = True
            self.waiting_for_100_continue = False
            self.transport.write(self._head(message["status"], [*self.default_headers, *message.get("headers", ())]))

    def _head(self, status: int, headers: "list[tuple[bytes, bytes]]") -> bytes:
        lines = [STATUS_LINE[status]]
        says_close = False
        for name, value in headers:
            if _NOT_IN_VALUES.search(value):
                raise RuntimeError("Invalid HTTP header value.")
            usual = _usual_case(name)
            if usual == b"Content-Length" and self.chunked_encoding is None:
                self.expected_content_length = int(value)
                self.chunked_encoding = False
            elif usual == b"Transfer-Encoding" and value.lower() == b"chunked":
                self.expected_content_length = 0
                self.chunked_encoding = True
            elif usual == b"Connection" and b"close" in value.lower():
                self.keep_alive = False
                says_close = True
            lines += (usual, b": ", value, b"\r\n")
        if not self.keep_alive and not says_close:
            lines.append(b"Connection: close\r\n")
        if self.chunked_encoding is None and self.scope["method"] != "HEAD" and status not in (204, 304):
            self.chunked_encoding = True
            lines.append(b"Transfer-Encoding: chunked\r\n")
        lines.append(b"\r\n")
        return b"".join(lines)


@lru_cache(maxsize=256)
def _usual_case(name: bytes) -> bytes:
    """Return a field name in its usual case. Raises RuntimeError if it is invalid."""
    if not _FIELD_NAME.fullmatch(name):
        raise RuntimeError("Invalid HTTP header name.")
    return _FIELD_NAMES.get(name.lower()) or name.title()
