"""A proxy before a real archive that answers some requests in a wrong way, which a test chooses."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from tests.neighbours.faults import Faults, Talk, faulty
from unlost.clock import Clock
from unlost.registry import Archive

RUBBISH = bytes(range(256)) * (5 << 12)  # 5 MB
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


async def fail(talk: Talk, fault: str) -> None:  # noqa: C901  a way for each fault
    """Do what is wrong."""
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
            await talk.answer(200, RUBBISH)
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
    """Return an archive of loopback on another port."""
    addresses = {
        name: address.replace(f"127.0.0.1:{there}", f"127.0.0.1:{here}")
        for name in ("timemap", "timegate", "cdx", "replay")
        if (address := getattr(archive, name)) is not None
    }
    return replace(archive, **addresses)


@dataclass(slots=True)
class Proxy:
    """The running proxy.

    faults: what goes wrong with the requests to come, one after the other; with `for_ever` the last one stays.
    charset: is put behind the type of what is passed on.
    """

    server: Faults
    port: int
    faults: list[str]
    for_ever: bool = False
    charset: str | None = None

    def before(self, archive: Archive) -> Archive:
        """Return an archive as it is reached through the proxy."""
        return moved(archive, self.port, self.server.port)

    async def answer(self, talk: Talk) -> None:
        """Answer one request."""
        if self.faults:
            fault = self.faults[0]
            if not self.for_ever or len(self.faults) > 1:
                del self.faults[0]
            await fail(talk, fault)
            return
        await self._pass_on(talk)

    async def _pass_on(self, talk: Talk) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        # The archive's own addresses are made of this: they lead through the proxy, too.
        asked = {**talk.headers, "host": f"127.0.0.1:{self.server.port}", "connection": "close"}
        fields = "".join(f"{name}: {value}\r\n" for name, value in asked.items() if name)
        writer.write(f"GET {talk.path} HTTP/1.1\r\n{fields}\r\n".encode("latin-1"))
        answer = await reader.read()
        writer.close()
        # So do those that it was told when it began; ports have five digits, so that lengths stay as they are.
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
    """Run a proxy before whatever listens on a port."""

    async def answering(talk: Talk) -> None:
        await proxy.answer(talk)

    async with faulty(answering, clock) as server:
        proxy = Proxy(server, port, list(faults), for_ever)
        yield proxy
