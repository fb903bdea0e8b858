"""A proxy of a real archive with faults that a test chooses."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from tests.external.fault_server import Exchange, FaultServer, run_fault_server
from unlost.clock import Clock
from unlost.registry import Archive

GARBAGE = bytes(range(256)) * (5 << 12)  # 5 MB
_BOMB = gzip.compress(bytes(1 << 20), 9)


async def _endless(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
    while not exchange.writer.is_closing():
        await exchange.send(b"x" * 65_536)


async def _bomb(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n")
    while not exchange.writer.is_closing():
        await exchange.send(_BOMB)


async def _slow(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nsome")
    await exchange.wait_closed()


async def produce_fault(exchange: Exchange, fault: str) -> None:  # noqa: C901  one case per fault
    """Produce a fault."""
    match fault:
        case "hang":
            await exchange.wait_closed()
        case "slow":
            await _slow(exchange)
        case "reset":
            await exchange.reset()
        case "500" | "503" | "429":
            await exchange.respond(int(fault), b"not now")
        case "429 after 7":
            await exchange.respond(429, b"not now", retry_after="7")
        case "html":
            await exchange.respond(200, b"<!doctype html><title>Oops</title>", content_type="text/html")
        case "rubbish":
            await exchange.respond(200, GARBAGE)
        case "endless":
            await _endless(exchange)
        case "loop":
            await exchange.respond(302, location=exchange.path)
        case "inside":
            await exchange.respond(302, location="http://127.0.0.1:9/")
        case "bomb":
            await _bomb(exchange)
        case _:
            raise AssertionError(fault)


def with_port(archive: Archive, old_port: int, new_port: int) -> Archive:
    """Return an archive on loopback with another port."""
    urls = {
        name: url.replace(f"127.0.0.1:{old_port}", f"127.0.0.1:{new_port}")
        for name in ("timemap", "timegate", "cdx", "replay")
        if (url := getattr(archive, name)) is not None
    }
    return replace(archive, **urls)


@dataclass(slots=True)
class FaultProxy:
    """The running proxy.

    Attributes:
        faults: Faults of the next requests in order; with `repeat_last` the last one is repeated.
        charset: Charset that is added to the Content-Type of responses.
    """

    server: FaultServer
    port: int
    faults: list[str]
    repeat_last: bool = False
    charset: str | None = None

    def rewrite_archive(self, archive: Archive) -> Archive:
        """Return the archive with the URLs of the proxy."""
        return with_port(archive, self.port, self.server.port)

    async def handle(self, exchange: Exchange) -> None:
        """Respond to a request."""
        if self.faults:
            fault = self.faults[0]
            if not self.repeat_last or len(self.faults) > 1:
                del self.faults[0]
            await produce_fault(exchange, fault)
            return
        await self._forward(exchange)

    async def _forward(self, exchange: Exchange) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        # The archive derives its own URLs from this, so that they refer to the proxy, too.
        sent = {**exchange.headers, "host": f"127.0.0.1:{self.server.port}", "connection": "close"}
        fields = "".join(f"{name}: {value}\r\n" for name, value in sent.items() if name)
        writer.write(f"GET {exchange.path} HTTP/1.1\r\n{fields}\r\n".encode("latin-1"))
        response = await reader.read()
        writer.close()
        # Configured URLs are replaced, too; ports have five digits, so that lengths are unchanged.
        response = response.replace(f"127.0.0.1:{self.port}/".encode(), f"127.0.0.1:{self.server.port}/".encode())
        head, _, body = response.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
        if self.charset:
            lines = [
                line.partition(b";")[0] + b"; charset=" + self.charset.encode()
                if line.lower().startswith(b"content-type:")
                else line
                for line in lines
            ]
        await exchange.send(b"\r\n".join([*lines, b"connection: close", b"", b""]) + body)
        exchange.writer.close()


@asynccontextmanager
async def run_fault_proxy(
    port: int, clock: Clock, faults: Sequence[str], *, repeat_last: bool = False
) -> AsyncIterator[FaultProxy]:
    """Run a proxy of a server on a port."""

    async def handle(exchange: Exchange) -> None:
        await proxy.handle(exchange)

    async with run_fault_server(handle, clock) as server:
        proxy = FaultProxy(server, port, list(faults), repeat_last)
        yield proxy
