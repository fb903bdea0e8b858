"""Listens and responds until a signal stops it: responses in progress end first. SIGHUP reloads the configuration."""

import asyncio
import errno
import gc
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn

from unlost.errors import UsageError
from unlost.service.connection import BoundedConnection
from unlost.service.reload import ReloadableApplication

_BACKLOG = 2_048
_MAX_CONNECTIONS = 10_000  # more are told to come later: what each has in memory is bounded, so all is
_MAX_OPEN_FILES = 1 << 15  # that may be open: connections of clients, to archives, and their copies on disk
GRACE_SECONDS = 5.0
"""Seconds beyond the deadline that responses in progress have to end."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; `::` accepts IPv4, too.

    Raises UsageError if the port is taken or the host is not this machine.
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
    """Return the address at which a socket is reached.

    >>> with listen("127.0.0.1", 0) as listening:
    ...     address_of(listening)
    'http://127.0.0.1:...'
    """
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    application: ReloadableApplication, listening: socket.socket, on_ready: Callable[[], None], deadline: float
) -> int | None:
    """Respond to requests until SIGINT or SIGTERM, and reload on SIGHUP; return the signal that stopped it.

    ready: called once requests are answered. deadline: seconds that one answer may take.
    """
    config = uvicorn.Config(
        application,
        http=BoundedConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # what strangers send that is no request is their matter, and would fill the log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=int(deadline + GRACE_SECONDS),
    )
    _raise_file_limit()

    def ending() -> None:
        application.context.events.close()
        if application.context.job_service is not None:
            application.context.job_service.watcher.close()

    server = _Server(config, on_ready, ending)
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
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # one that comes while the process ends does not kill it
        for task in tasks:
            task.cancel()


def _raise_file_limit() -> None:
    """Let as many files be open as the system allows: by default, a thousand idle clients would keep out all others."""
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_OPEN_FILES if most == resource.RLIM_INFINITY else min(_MAX_OPEN_FILES, most)
    if allowed != resource.RLIM_INFINITY and allowed < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _freeze_garbage_collector() -> None:
    """Have the garbage collector pass over what was loaded to begin with, for it stays until the end.

    Otherwise it looks at all of it, some hundred thousand objects, every few seconds of a busy service, and everybody
    who waits for an answer then waits for a tenth of a second more.
    """
    gc.collect()
    gc.freeze()


class _Server(uvicorn.Server):
    """uvicorn's server, which leaves it to the command how the process ends, and lets watchers go first."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None], on_shutdown: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_shutdown = on_shutdown

    @property
    def signal(self) -> int | None:
        """The first signal that it was told to stop by."""
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
