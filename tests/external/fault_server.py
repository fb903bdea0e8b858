"""An HTTP server on raw sockets with any faults, which records its requests."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from unlost.clock import Clock

_MAX_HEAD = 1 << 16


@dataclass(slots=True)
class Exchange:
    """A request and its connection.

    Attributes:
        path: Path with query.
        headers: Headers by lower-case name.
        number: Number of the request, from 0.
        method: Request method.
    """

    path: str
    headers: dict[str, str]
    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    method: str = "GET"

    async def send(self, *pieces: bytes) -> None:
        """Send raw bytes."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def respond(self, status: int = 200, body: bytes = b"", **headers: str) -> None:
        """Send a complete response; `_` in header names becomes `-`."""
        fields = {
            "content-length": str(len(body)),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        await self.send(f"HTTP/1.1 {status} Whatever\r\n{head}\r\n".encode())
        if self.method == "HEAD":
            return
        # Sent in pieces, so that it does not affect tests that measure memory.
        for begin in range(0, len(body), 65_536):
            await self.send(body[begin : begin + 65_536])

    async def reset(self) -> None:
        """Close the connection with a TCP reset."""
        import socket
        import struct

        raw: socket.socket = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def wait_closed(self) -> None:
        """Send nothing until the client closes the connection."""
        while await self.reader.read(1 << 16):
            pass


Handler = Callable[[Exchange], Awaitable[None]]


@dataclass(slots=True)
class FaultServer:
    """The running server.

    Attributes:
        handler: The request handler, which a test may replace at any time.
        requests: Time of the clock and path of each request.
        connections: Number of connections; `max_open` is the maximum of simultaneous ones.
    """

    handler: Handler
    clock: Clock | None = None
    port: int = 0
    scheme: str = "http"
    requests: list[tuple[float, str]] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    max_open: int = 0

    @property
    def url(self) -> str:
        """URL of the server without a path."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        """Requested paths in order."""
        return [path for _, path in self.requests]

    @property
    def times(self) -> list[float]:
        """Times of the requests by the clock."""
        return [time for time, _ in self.requests]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Respond to the requests of a connection."""
        self.connections += 1
        self.open += 1
        self.max_open = max(self.max_open, self.open)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                while head := await reader.readuntil(b"\r\n\r\n"):
                    lines = head.decode("latin-1").split("\r\n")
                    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
                    method, path = lines[0].split(" ")[:2]
                    self.requests.append((self.clock.now() if self.clock else 0.0, path))
                    exchange = Exchange(path, headers, len(self.requests) - 1, reader, writer, method)
                    await self.handler(exchange)
                    if writer.is_closing() or headers.get("connection") == "close":
                        break
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def run_fault_server(
    handler: Handler, clock: Clock | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[FaultServer]:
    """Run a server on loopback."""
    fault_server = FaultServer(handler, clock, scheme="https" if tls else "http")
    tasks: set[asyncio.Task[Any]] = set()

    async def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            tasks.add(task)
        try:
            await fault_server.serve(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(on_connect, "127.0.0.1", 0, limit=_MAX_HEAD, ssl=tls)
    fault_server.port = server.sockets[0].getsockname()[1]
    try:
        yield fault_server
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
