"""A proxy of a real archive with faults that a test chooses."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from tests.neighbours.faults import Faults, Talk, faulty
from unlost.clock import Clock
from unlost.registry import Archive

GARBAGE = bytes(range(256)) * (5 << 12)  # 5 MB
_BOMB = gzip.compress(bytes(1 << 20), 9)


async def _endless(talk: Talk) -> None:
    await talk.say(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
    while not talk.writer.is_closing():
        await talk.say(b"x" * 65_536)


async def _bomb(talk: Talk) -> None:
    await talk.say(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n")
    while not talk.writer.is_closing():
        await talk.say(_BOMB)


async def _slow(talk: Talk) -> None:
    await talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nsome")
    await talk.gone()


async def fail(talk: Talk, fault: str) -> None:  # noqa: C901  one case per fault
    """Produce a fault."""
    match fault:
        case "hang":
            await talk.gone()
        case "slow":
            await _slow(talk)
        case "reset":
            await talk.reset()
        case "500" | "503" | "429":
            await talk.answer(int(fault), b"not now")
        case "429 after 7":
            await talk.answer(429, b"not now", retry_after="7")
        case "html":
            await talk.answer(200, b"<!doctype html><title>Oops</title>", content_type="text/html")
        case "rubbish":
            await talk.answer(200, GARBAGE)
        case "endless":
            await _endless(talk)
        case "loop":
            await talk.answer(302, location=talk.path)
        case "inside":
            await talk.answer(302, location="http://127.0.0.1:9/")
        case "bomb":
            await _bomb(talk)
        case _:
            raise AssertionError(fault)


def moved(archive: Archive, there: int, here: int) -> Archive:
    """Return an archive on loopback with another port."""
    addresses = {
        name: address.replace(f"127.0.0.1:{there}", f"127.0.0.1:{here}")
        for name in ("timemap", "timegate", "cdx", "replay")
        if (address := getattr(archive, name)) is not None
    }
    return replace(archive, **addresses)


@dataclass(slots=True)
class Proxy:
    """The running proxy.

    Attributes:
        faults: Faults of the next requests in order; with `for_ever` the last one is repeated.
        charset: Charset that is added to the Content-Type of responses.
    """

    server: Faults
    port: int
    faults: list[str]
    for_ever: bool = False
    charset: str | None = None

    def before(self, archive: Archive) -> Archive:
        """Return the archive with the URLs of the proxy."""
        return moved(archive, self.port, self.server.port)

    async def answer(self, talk: Talk) -> None:
        """Respond to a request."""
        if self.faults:
            fault = self.faults[0]
            if not self.for_ever or len(self.faults) > 1:
                del self.faults[0]
            await fail(talk, fault)
            return
        await self._pass_on(talk)

    async def _pass_on(self, talk: Talk) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        # The archive derives its own URLs from this, so that they lead to the proxy, too.
        sent = {**talk.headers, "host": f"127.0.0.1:{self.server.port}", "connection": "close"}
        fields = "".join(f"{name}: {value}\r\n" for name, value in sent.items() if name)
        writer.write(f"GET {talk.path} HTTP/1.1\r\n{fields}\r\n".encode("latin-1"))
        answer = await reader.read()
        writer.close()
        # Configured URLs are replaced, too; ports have five digits, so that lengths are unchanged.
        answer = answer.replace(f"127.0.0.1:{self.port}/".encode(), f"127.0.0.1:{self.server.port}/".encode())
        head, _, body = answer.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
        if self.charset:
            lines = [
                line.partition(b";")[0] + b"; charset=" + self.charset.encode()
                if line.lower().startswith(b"content-type:")
                else line
                for line in lines
            ]
        await talk.say(b"\r\n".join([*lines, b"connection: close", b"", b""]) + body)
        talk.writer.close()


@asynccontextmanager
async def proxying(port: int, clock: Clock, faults: Sequence[str], *, for_ever: bool = False) -> AsyncIterator[Proxy]:
    """Run a proxy of a server on a port."""

    async def answering(talk: Talk) -> None:
        await proxy.answer(talk)

    async with faulty(answering, clock) as server:
        proxy = Proxy(server, port, list(faults), for_ever)
        yield proxy
