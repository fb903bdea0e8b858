"""Connections of the server with bounds: how long a request's head may be, how slowly it and the answer may go."""

import asyncio
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from unlost.service.address import MAX_TARGET_BYTES

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

_MAX_HEAD = MAX_TARGET_BYTES + (1 << 15)  # bytes of request line, headers and trailers
_MAX_HEADERS = 256  # each takes more memory than its bytes; browsers and proxies send a few dozen
_HEAD_SECONDS = 20.0  # from connecting, or from the first byte of a request, to the end of its headers
_STALLED_SECONDS = 60.0  # for which a client may take nothing of an answer; what waits for it takes memory
_TOO_LARGE = f"expected at most {_MAX_HEAD} bytes and {_MAX_HEADERS} fields of request line and headers"


_FIELD_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_INVALID_VALUE = re.compile(rb"[\x00-\x08\n-\x1f\x7f]")
_FIELD_NAMES = {b"etag": b"ETag", b"www-authenticate": b"WWW-Authenticate"}


class BoundedConnection(HttpToolsProtocol):
    """A connection on which no request is endless before the application sees it, and no answer waits for ever."""

    _stall_timer: asyncio.TimerHandle | None = None
    _unsent = 0
    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _headers = 0
    _unparsed_bytes = 0  # received since the parser last completed something
    _has_progress = False
    _refusal = ""
    _current_cycle: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._cancel_head_timer()
        self._cancel_stall_timer()
        self._disconnect()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse bytes. The parser buffers a header until it is complete, so bytes without a result are bounded, too."""
        self._has_progress = False
        super().data_received(data)
        self._unparsed_bytes = 0 if self._has_progress else self._unparsed_bytes + len(data)
        if self._unparsed_bytes > _MAX_HEAD and not self.transport.is_closing():
            self.send_400_response(_TOO_LARGE)

    def on_url(self, url: bytes) -> None:
        """Count a part of the request line."""
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header, or a trailer after the body."""
        super().on_header(name, value)
        self._headers += 1
        self._count(len(name) + len(value) + 4)

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        self._has_progress = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._has_progress = True
        super().on_message_complete()

    def _count(self, count: int) -> None:
        """Raise ValueError, which ends the parser, if a request has too many headers or bytes of them."""
        self._has_progress = True
        self._head_bytes += count
        if self._headers > _MAX_HEADERS or self._head_bytes > _MAX_HEAD:
            self._refusal = _TOO_LARGE
            raise ValueError(_TOO_LARGE)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not valid HTTP, and end the connection. Responses in progress are not sent any more."""
        super().send_400_response(self._refusal or msg)
        self._disconnect()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._current_cycle = cycle
        super()._start_asgi_task(cycle, app)

    def _disconnect(self) -> None:
        """Have the application stop writing: uvicorn does so only for the last one of several pipelined requests."""
        if self._current_cycle is not None and not self._current_cycle.response_complete:
            self._current_cycle.disconnected = True
            self._current_cycle.message_event.set()

    def on_message_begin(self) -> None:
        """Begin to wait for the end of the headers."""
        super().on_message_begin()
        self._start_head_timer()

    def on_headers_complete(self) -> None:
        """Have the request answered."""
        self._cancel_head_timer()
        self._has_progress = True
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            self.cycle.__class__ = _UsualCaseResponse  # its task has not started yet

    def pause_writing(self) -> None:
        """Have the application wait, since the client takes nothing; it must take something soon."""
        super().pause_writing()
        self._start_stall_timer()

    def resume_writing(self) -> None:
        """Have the application go on."""
        self._cancel_stall_timer()
        super().resume_writing()

    def _start_stall_timer(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._stall_timer = self.loop.call_later(_STALLED_SECONDS, self._check_stall)

    def _check_stall(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent:
            self._start_stall_timer()
        else:
            self.transport.abort()

    def _cancel_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _start_head_timer(self) -> None:
        self._cancel_head_timer()
        self._head_bytes = self._headers = self._unparsed_bytes = 0
        self._head_timer = self.loop.call_later(_HEAD_SECONDS, self.transport.close)

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class _UsualCaseResponse(RequestResponseCycle):
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
            if _INVALID_VALUE.search(value):
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
