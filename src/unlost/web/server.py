"""The HTTP server: uvicorn with limits per connection, graceful shutdown, and reload on SIGHUP."""

import asyncio
import errno
import gc
import re
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import uvicorn
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from unlost.aggregate.request import MAX_TARGET_BYTES, Scope
from unlost.errors import UnlostError, UsageError
from unlost.web.app import Application
from unlost.web.factory import ServiceContext
from unlost.web.responses import Receive, Send

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent


OpenContext = Callable[[ServiceContext | None], AbstractAsyncContextManager[ServiceContext]]
"""Opens the context of a service from the current configuration. Receives the context in use, if any."""
_MAX_HEAD = MAX_TARGET_BYTES + (1 << 15)  # bytes of request line, headers and trailers
_MAX_HEADERS = 256  # each takes more memory than its bytes; browsers and proxies send a few dozen
_HEAD_SECONDS = 20.0  # from the connection, or from the first byte of a request, to the end of its headers
_STALLED_SECONDS = 60.0  # after which a client that receives nothing is disconnected; its response occupies memory
_TOO_LARGE = f"expected at most {_MAX_HEAD} bytes and {_MAX_HEADERS} fields of request line and headers"
_FIELD_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token of RFC 9110, section 5.6.2
_INVALID_VALUE = re.compile(rb"[\x00-\x08\n-\x1f\x7f]")  # control characters (RFC 9110, section 5.5)
_SPECIAL_CASES = {b"etag": b"ETag", b"www-authenticate": b"WWW-Authenticate"}
_BACKLOG = 2_048  # connections that wait to be accepted
_MAX_CONNECTIONS = 10_000  # more are answered with 503; memory per connection is limited, so the total is, too
_MAX_OPEN_FILES = 1 << 15  # open files: connections of clients and to archives, and fetched captures on disk
GRACE_SECONDS = 5.0
"""Seconds in addition to the deadline for pending responses on shutdown."""


class _Generation:
    """A context of the service, and the number of requests that use it."""

    def __init__(self, context: ServiceContext, stack: AsyncExitStack) -> None:
        self.context = context
        self.application = Application(context)
        self.requests = 0
        self.is_unused = asyncio.Event()
        self._stack = stack

    async def close(self) -> None:
        await self._stack.aclose()


class ReloadableApplication:
    """An ASGI application that can be reloaded without interruption. An async context manager.

    Requests in progress finish with the context that they began with.

    Args:
        open_context: Opens a context.
        grace: Seconds after which a replaced context is closed even if a request, such as an event stream, uses it.
        on_message: Called with messages for the operator, a line each.
    """

    def __init__(self, open_context: OpenContext, grace: float, on_message: Callable[[str], None]) -> None:
        self._open_context = open_context
        self._grace = grace
        self._on_message = on_message
        self._reloading = asyncio.Lock()
        self._retiring: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Open the first context. Raises what opening it raises."""
        self._current = await self._open(None)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all contexts."""
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        await self._current.close()

    @property
    def context(self) -> ServiceContext:
        """The context in use."""
        return self._current.context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        generation = self._current
        generation.requests += 1
        try:
            await generation.application(scope, receive, send)
        finally:
            generation.requests -= 1
            if not generation.requests:
                generation.is_unused.set()

    async def reload(self) -> None:
        """Open a new context and use it from now on.

        If that fails, the old one remains in use and a message is reported.
        """
        async with self._reloading:
            try:
                generation = await self._open(self.context)
            except (UnlostError, OSError) as error:
                self._on_message(f"not reloaded, the configuration in use stays: {error}")
                return
            previous, self._current = self._current, generation
            task = asyncio.create_task(self._retire(previous))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)
            self._on_message("reloaded the archives and their maps")

    async def _open(self, previous: ServiceContext | None) -> _Generation:
        async with AsyncExitStack() as stack:
            context = await stack.enter_async_context(self._open_context(previous))
            return _Generation(context, stack.pop_all())

    async def _retire(self, generation: _Generation) -> None:
        try:
            generation.is_unused.clear()
            if generation.requests:
                async with asyncio.timeout(self._grace):
                    await generation.is_unused.wait()
        except TimeoutError:
            pass
        finally:
            await generation.close()


class BoundedConnection(HttpToolsProtocol):
    """A connection with limits on the size and duration of request headers, and on the time a response may stall.

    With httptools, uvicorn limits neither the size of request headers nor the time until they are complete.
    """

    _stall_timer: asyncio.TimerHandle | None = None
    _unsent = 0
    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _headers = 0
    _unparsed_bytes = 0  # received since the parser last completed an element
    _has_progress = False
    _refusal = ""
    _current_cycle: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Start the timer for the request headers."""
        super().connection_made(transport)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        self._cancel_head_timer()
        self._cancel_stall_timer()
        self._disconnect()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data. The parser buffers a header until it is complete, so bytes without a result are limited, too."""
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
        """Process a part of the body."""
        self._has_progress = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Complete a request."""
        self._has_progress = True
        super().on_message_complete()

    def _count(self, count: int) -> None:
        """Count bytes of headers.

        Raises:
            ValueError: There are too many headers or bytes. The exception stops the parser.
        """
        self._has_progress = True
        self._head_bytes += count
        if self._headers > _MAX_HEADERS or self._head_bytes > _MAX_HEAD:
            self._refusal = _TOO_LARGE
            raise ValueError(_TOO_LARGE)

    def send_400_response(self, msg: str) -> None:
        """Reject a request that is not valid HTTP and close the connection. Pending responses are dropped."""
        super().send_400_response(self._refusal or msg)
        self._disconnect()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._current_cycle = cycle
        super()._start_asgi_task(cycle, app)

    def _disconnect(self) -> None:
        """Notify the application of the disconnect. uvicorn notifies only the last of several pipelined requests."""
        if self._current_cycle is not None and not self._current_cycle.response_complete:
            self._current_cycle.disconnected = True
            self._current_cycle.message_event.set()

    def on_message_begin(self) -> None:
        """Start the timer for the request headers."""
        super().on_message_begin()
        self._start_head_timer()

    def on_headers_complete(self) -> None:
        """Start processing the request."""
        self._cancel_head_timer()
        self._has_progress = True
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            self.cycle.__class__ = _UsualCaseResponse  # its task has not started yet

    def pause_writing(self) -> None:
        """Pause the application, since the client's buffer is full, and start the stall timer."""
        super().pause_writing()
        self._start_stall_timer()

    def resume_writing(self) -> None:
        """Resume the application."""
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
    """A response whose header names have their usual case.

    uvicorn writes them in lower case. Clients that compare names case-sensitively, such as LANL's memento-validator,
    would not find them.
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
    """Return a header name in its usual case.

    Raises:
        RuntimeError: The name is invalid.
    """
    if not _FIELD_NAME.fullmatch(name):
        raise RuntimeError("Invalid HTTP header name.")
    return _SPECIAL_CASES.get(name.lower()) or name.title()


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket. `::` accepts IPv4, too.

    Raises:
        UsageError: The port is in use, or the host is not an address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    is_dual = host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=is_dual)
    except OSError as error:
        place = f"port {port} of {host}"
        if error.errno == errno.EADDRINUSE:
            raise UsageError(f"{place} is taken: end what listens there, or choose another with --port") from None
        if error.errno == errno.EACCES:
            raise UsageError(f"{place}: not allowed: choose one above 1023 with --port") from None
        raise UsageError(f"{place}: cannot listen: {error.strerror or error}") from None


def socket_url(listening: socket.socket) -> str:
    """Return the URL of a listening socket.

    >>> with listen("127.0.0.1", 0) as listening:
    ...     socket_url(listening)
    'http://127.0.0.1:...'
    """
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    application: ReloadableApplication, listening: socket.socket, on_ready: Callable[[], None], deadline: float
) -> int | None:
    """Serve requests until SIGINT or SIGTERM, and reload on SIGHUP.

    Args:
        application: The application.
        listening: A listening socket.
        on_ready: Called when the server accepts requests.
        deadline: Seconds that a response may take.

    Returns:
        The signal that stopped the server.
    """
    config = uvicorn.Config(
        application,
        http=BoundedConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # invalid requests are the clients' fault and would fill the log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=int(deadline + GRACE_SECONDS),
    )
    _raise_file_limit()

    def on_shutdown() -> None:
        application.context.events.close()
        if application.context.job_service is not None:
            application.context.job_service.watcher.close()

    server = _Server(config, on_ready, on_shutdown)
    with _reloading(application):
        await server.serve([listening])
    return server.signal


@contextmanager
def _reloading(application: ReloadableApplication) -> Iterator[None]:
    """Reload an application whenever SIGHUP arrives."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def reload() -> None:
        task = loop.create_task(application.reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    loop.add_signal_handler(signal.SIGHUP, reload)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a late signal must not kill the ending process
        for task in tasks:
            task.cancel()


def _raise_file_limit() -> None:
    """Raise the limit of open files as far as allowed. With the usual 1,024, idle clients would block all others."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(_MAX_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


def _freeze_garbage_collector() -> None:
    """Exclude the objects that exist at startup from garbage collection, since they live as long as the process.

    Otherwise each full collection would examine several hundred thousand objects and delay responses by about 0.1 s.
    """
    gc.collect()
    gc.freeze()


class _Server(uvicorn.Server):
    """uvicorn's server, except that it does not re-raise signals, and disconnects watchers before the shutdown."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None], on_shutdown: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_shutdown = on_shutdown

    @property
    def signal(self) -> int | None:
        """The first signal that stopped the server."""
        return self._captured_signals[0] if self._captured_signals else None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, action in before.items():
                signal.signal(number, action)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        _freeze_garbage_collector()
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_shutdown()
        await super().shutdown(sockets)
