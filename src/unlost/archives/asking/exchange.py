"""One request and its answer: deadlines for each phase, and a word for whatever goes wrong."""

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import BinaryIO

import aiohttp
from yarl import URL

from unlost.archives.asking.addresses import NotPublicError
from unlost.archives.bodies.body import new_body
from unlost.errors import FailedError
from unlost.formats.contentcoding import UNDONE, Decoder, UndecodableError, codings_of

_DRAINED = 1 << 18  # bytes of an answer that is of no use; beyond it, a new connection costs less
_DRAIN_SECONDS = 2.0
_YIELD_EACH = 1 << 20  # bytes that are decoded before others get their turn


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long an archive may take, in seconds.

    connect: to look its name up, connect and agree on keys.
    first_byte: from then until its headers are there. Index servers think long before they list a large site.
    idle: between two pieces of the body.
    total: for everything that one question takes, with redirects and what is tried again; not the wait for limits.
    """

    connect: float = 15.0
    first_byte: float = 60.0
    idle: float = 30.0
    total: float = 180.0


class Passage:
    """What became of a request on its way.

    reused: whether it went out on a connection that had been used before, which the other side may have closed.
    strayed: whether what came back on such a connection is not HTTP: bytes that were left of the answer before it.
    sent: each is called once it is out.
    """

    def __init__(self, sent: Callable[[], None]) -> None:
        self.reused = False
        self.strayed = False
        self.sent = [sent]


def tracing() -> aiohttp.TraceConfig:
    """Return what makes a session note things on the Passage of each request."""

    async def reused(_: object, context: SimpleNamespace, __: object) -> None:
        context.trace_request_ctx.reused = True

    async def sent(_: object, context: SimpleNamespace, __: object) -> None:
        for each in context.trace_request_ctx.sent:
            each()

    config = aiohttp.TraceConfig()
    config.on_connection_reuseconn.append(reused)
    config.on_request_headers_sent.append(sent)
    return config


def forget_kept(session: aiohttp.ClientSession, url: URL) -> None:
    """Close the connections to a place that are kept and not in use: the next question goes out on a new one."""
    # aiohttp has no word for it. If it calls them otherwise one day, a test tells, and questions go out on the kept
    # ones, one after the other.
    idle = getattr(session.connector, "_conns", {})
    for key in [key for key in idle if (key.host, key.port) == (url.host, url.port)]:
        for connection, _ in idle.pop(key):
            connection.close()


class Head:
    """An answer whose body is still to come. It must be read or drained."""

    def __init__(self, response: aiohttp.ClientResponse, idle: float) -> None:
        self._response = response
        self._idle = idle
        self.url = str(response.url)
        self.status = response.status
        self.headers = tuple((name, value) for name, value in response.headers.items())

    def header(self, name: str) -> str | None:
        """Return the first value of a field; None if there is none."""
        value: str | None = self._response.headers.get(name)
        return value

    async def read(self, max_bytes: int, archive: str) -> tuple[BinaryIO, int]:
        """Return the whole body, decoded and at its beginning, and its size. Raises FailedError, TimeoutError."""
        body = new_body()
        try:
            size = await self._read(body, max_bytes, archive)
        except BaseException:
            self._response.close()
            body.close()
            raise
        body.seek(0)
        return body, size

    async def _read(self, body: BinaryIO, max_bytes: int, archive: str) -> int:
        too_large = FailedError(f"an answer of more than {max_bytes} bytes", archive, "too-large")
        if (self._response.content_length or 0) > max_bytes:
            raise too_large
        raw = size = 0
        try:
            decoder = Decoder(self._codings())
            data = b"-"
            while data:
                async with asyncio.timeout(self._idle):
                    data = await self._response.content.readany()
                await asyncio.sleep(0)  # what was here already is read without a pause: deadlines need one
                raw += len(data)
                if raw > max_bytes:
                    raise too_large
                pause = size + _YIELD_EACH
                for piece in decoder.decode(data) if data else decoder.end():
                    size += len(piece)
                    if size > max_bytes:
                        raise too_large
                    body.write(piece)
                    if size > pause:
                        pause += _YIELD_EACH
                        await asyncio.sleep(0)
                if decoder.damage is not None:
                    raise FailedError(f"a body that is damaged: {decoder.damage}", archive, "malformed")
        except UndecodableError as error:
            raise FailedError(f"a body {error}", archive, "malformed") from error
        return size

    def _codings(self) -> list[str]:
        headers = self._response.headers
        if self.status == 206:
            return []  # a part of a file is given as it is: to decode it would need what comes before
        if declared := codings_of(headers.getall("Content-Encoding", [])):
            return declared
        # Some archives give the stored bytes, and what they are encoded in only among the original headers.
        stored = codings_of(headers.getall("X-Archive-Orig-Content-Encoding", []))
        return stored if UNDONE.issuperset(stored) else []

    async def read_if_it_comes(self, max_bytes: int, archive: str) -> tuple[BinaryIO, int]:
        """Return the body as `read` does; an empty one if it does not come soon, or not whole."""
        try:
            async with asyncio.timeout(min(self._idle, _DRAIN_SECONDS)):
                return await self.read(max_bytes, archive)
        except (FailedError, TimeoutError, aiohttp.ClientError, ConnectionError, ssl.SSLError):
            return new_body(), 0

    async def drain(self) -> None:
        """Read a body that is of no use, so that the connection can be used again; close it if that takes long."""
        try:
            async with asyncio.timeout(min(self._idle, _DRAIN_SECONDS)):
                left = _DRAINED
                while left > 0 and (data := await self._response.content.readany()):
                    left -= len(data)
        except (TimeoutError, aiohttp.ClientError, ConnectionError, ssl.SSLError):
            left = 0
        if left <= 0:
            self._response.close()


@asynccontextmanager
async def exchange(
    session: aiohttp.ClientSession,
    url: URL,
    headers: Mapping[str, str],
    passage: Passage,
    deadlines: Deadlines,
    archive: str,
) -> AsyncIterator[Head]:
    """Send a request and give the answer once its headers are there. Raises FailedError, also out of the block."""
    phases = aiohttp.ClientTimeout(total=None, connect=deadlines.connect, sock_connect=deadlines.connect)
    try:
        async with asyncio.timeout(deadlines.connect + deadlines.first_byte) as phase:
            loop = asyncio.get_running_loop()
            passage.sent.append(lambda: phase.reschedule(loop.time() + deadlines.first_byte))
            response = await session.get(
                url, headers=dict(headers), allow_redirects=False, timeout=phases, trace_request_ctx=passage
            )
        async with response:
            yield Head(response, deadlines.idle)
    except (aiohttp.ClientError, TimeoutError, ConnectionError, ssl.SSLError) as error:
        kind, what = _failure(error)
        passage.strayed = passage.reused and kind == "malformed"
        raise FailedError(f"{url.host}:{url.port}: {what}"[:300], archive, kind) from error


def _failure(error: Exception) -> tuple[str, str]:  # noqa: PLR0911  one for each way to fail
    """Return the kind of a failure, and what happened in words."""
    if isinstance(error, aiohttp.ClientSSLError | aiohttp.ServerFingerprintMismatch | ssl.SSLError):
        return "tls", f"no safe connection: {_reason(error)}"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return "unreachable", f"no connection to the proxy: {_reason(error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        if isinstance(error.os_error, NotPublicError):
            return "redirects", str(error.os_error)
        if _has(error.os_error, errno.ECONNREFUSED):
            return "refused", "the connection was refused"
        if _has(error.os_error, errno.ECONNRESET):
            return "reset", "the connection broke before it was made"
        return "unreachable", f"no connection: {_reason(error)}"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "unreachable", "no connection in time"
    if isinstance(error, TimeoutError):
        return "timeout", "no answer in time, or not all of it"
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ClientConnectionError | ConnectionError):
        return "reset", f"the connection broke: {_reason(error)}"
    return "malformed", f"not an answer in HTTP: {_reason(error)}"


def _has(error: OSError, number: int) -> bool:
    """Return whether a connection failed so, at one at least of the addresses that were tried."""
    return error.errno == number or f"[Errno {number}]" in str(error)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:150] or type(error).__name__
