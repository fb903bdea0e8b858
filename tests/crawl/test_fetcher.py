"""Single requests and responses, including servers with every kind of failure."""

import asyncio
import gzip
import time
from collections.abc import Awaitable, Callable

import pytest

from tests.crawl.live_site import HASTY
from tests.external.fault_server import Exchange, FaultServer, run_fault_server
from tests.http.harness import TableResolver
from tests.virtual_clock import VirtualClock
from unlost.crawl import Fetcher, FetchRequest, FetchResponse
from unlost.errors import SiteError, UsageError
from unlost.http import Timeouts

BOMB = gzip.compress(bytes(64 << 20), 9)
LIMIT = 100_000


def fetch_all(
    answering: Callable[[Exchange], Awaitable[None]], *requests: FetchRequest, deadlines: Timeouts = HASTY
) -> tuple[list[FetchResponse], FaultServer]:
    """Send requests for paths one after the other, reusing connections."""

    async def run() -> tuple[list[FetchResponse], FaultServer]:
        async with (
            run_fault_server(answering) as server,
            Fetcher([server.url], VirtualClock(), "me@example.org", deadlines) as visitor,
        ):
            from dataclasses import replace

            return [await visitor.fetch(replace(each, uri=server.url + each.uri)) for each in requests], server

    return asyncio.run(run())


def fetch_one(answering: Callable[[Exchange], Awaitable[None]], **fields: object) -> FetchResponse:
    """Send one request."""
    return fetch_all(answering, FetchRequest("/", max_bytes=LIMIT, **fields))[0][0]  # type: ignore[arg-type]


def test_response_is_complete() -> None:
    """Status, ordered headers, decoded body, and the sent request with User-Agent."""

    async def answering(exchange: Exchange) -> None:
        await exchange.respond(200, gzip.compress(b"hello"), content_encoding="gzip", x_a="b")

    response = fetch_one(answering)
    assert (response.status, response.body.read(), response.size, response.truncated) == (200, b"hello", 5, None)
    assert (response.header("X-A"), response.peer, response.requested_at) == ("b", "127.0.0.1", "20231114221320")
    assert response.request.startswith(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"(+me@example.org)\r\n" in response.request


def test_conditional_request_returns_304() -> None:
    """Request headers are added or replace defaults; secrets are sent but not recorded."""
    seen: list[dict[str, str]] = []

    async def answering(exchange: Exchange) -> None:
        seen.append(exchange.headers)
        await exchange.send(b'HTTP/1.1 304 Not Modified\r\netag: "a"\r\n\r\n')

    headers = (("If-None-Match", '"a"'), ("accept-encoding", "identity"), ("Authorization", "Basic secret"))
    responses, server = fetch_all(answering, FetchRequest("/", headers=headers), FetchRequest("/", headers=headers))
    assert [(each.status, each.size, each.truncated) for each in responses] == [(304, 0, None)] * 2
    assert (seen[0]["if-none-match"], seen[0]["accept-encoding"], seen[0]["authorization"]) == (
        '"a"',
        "identity",
        "Basic secret",
    )
    assert b"secret" not in responses[0].request
    assert server.connections == 1


def test_head_returns_headers_only() -> None:
    """Content-Length is not awaited, and the connection is reused."""

    async def answering(exchange: Exchange) -> None:
        body = b"" if exchange.number in (0, 1, 3) else b"body!"
        await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n" + body)

    requests = [
        FetchRequest("/", "HEAD"),
        FetchRequest("/", "HEAD"),
        FetchRequest("/"),
        FetchRequest("/", "HEAD"),
        FetchRequest("/"),
    ]
    responses, server = fetch_all(answering, *requests)
    assert [each.size for each in responses] == [0, 0, 5, 0, 5]
    assert responses[0].header("content-length") == "5"
    assert server.connections == 1


def test_body_can_be_declined_after_the_headers() -> None:
    """The connection is closed while the server is still sending."""
    ended: list[bool] = []

    async def answering(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\netag: x\r\n\r\n")
        try:
            while True:
                await exchange.send(bytes(65_536))
        except ConnectionError:
            ended.append(True)
            raise

    async def run() -> FetchResponse:
        async with run_fault_server(answering) as server, Fetcher([server.url], VirtualClock()) as visitor:
            response = await visitor.fetch(FetchRequest(server.url, wants_body=False))
            async with asyncio.timeout(20):
                while not ended:
                    await asyncio.sleep(0)
            return response

    response = asyncio.run(run())
    assert (response.status, response.header("etag"), response.size, response.truncated) == (200, "x", 0, None)


async def _endless(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        await exchange.send(b"1000\r\n" + b"x" * 4096 + b"\r\n")


async def _bomb(exchange: Exchange) -> None:
    await exchange.respond(200, BOMB, content_encoding="gzip")


async def _slow(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nbegin")
    while not exchange.writer.is_closing():
        await exchange.send(b".")
        await asyncio.sleep(0.1)  # the server is slow on purpose


async def _stuck(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nbegin")
    await exchange.wait_closed()


async def _short(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nbegin")
    exchange.writer.close()


async def _damaged(exchange: Exchange) -> None:
    await exchange.respond(200, gzip.compress(b"begin" * 1000)[:30] + bytes(30), content_encoding="gzip")


@pytest.mark.parametrize(
    ("answering", "reason"),
    [
        (_endless, "length"),
        (_bomb, "length"),
        (_slow, "time"),
        (_stuck, "time"),
        (_short, "disconnect"),
        (_damaged, "unspecified"),
    ],
)
def test_incomplete_bodies_are_marked_truncated(answering: Callable[[Exchange], Awaitable[None]], reason: str) -> None:
    """The received part is returned up to the limit, with the reason."""
    start = time.monotonic()
    response = fetch_one(answering)
    assert response.truncated == reason
    assert response.size <= LIMIT
    assert len(response.body.read()) == response.size
    assert (response.size == LIMIT) is (reason == "length")
    assert time.monotonic() - start < 15


async def _flood(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await exchange.send(b"x-a: " + b"y" * 8_000 + b"\r\n")


async def _garbage(exchange: Exchange) -> None:
    await exchange.send(bytes(range(256)))


async def _hang(exchange: Exchange) -> None:
    await exchange.wait_closed()


async def _reset(exchange: Exchange) -> None:
    await exchange.reset()


@pytest.mark.parametrize(
    ("answering", "kind"), [(_flood, "malformed"), (_garbage, "malformed"), (_hang, "timeout"), (_reset, "reset")]
)
def test_failed_request_raises_with_its_kind(answering: Callable[[Exchange], Awaitable[None]], kind: str) -> None:
    """Huge headers, invalid responses, silence and connection resets."""
    with pytest.raises(SiteError) as raised:
        fetch_one(answering)
    assert raised.value.kind == kind


def test_stale_connection_is_replaced() -> None:
    """A request on a connection closed by the server is repeated at once."""

    async def answering(exchange: Exchange) -> None:
        if exchange.number == 1:
            await exchange.reset()
        else:
            await exchange.respond(200, b"ok")

    responses, server = fetch_all(answering, FetchRequest("/"), FetchRequest("/"))
    assert [each.status for each in responses] == [200, 200]
    assert server.connections == 2


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:1/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "http://0x7f.1/",
        "http://inside.example/",
        "ftp://a.example/",
        "not a URL",
    ],
)
def test_private_urls_are_fetched_only_if_allowed(uri: str) -> None:
    """Neither an IP address nor a DNS name gives access, even if DNS changes later."""

    async def run() -> None:
        resolver = TableResolver("127.0.0.1")
        async with Fetcher(["http://named.example/"], VirtualClock(), timeouts=HASTY, resolver=resolver) as visitor:
            with pytest.raises(SiteError) as raised:
                await visitor.fetch(FetchRequest(uri))
            assert raised.value.kind in ("redirects", "malformed")

    asyncio.run(run())


@pytest.mark.parametrize(
    "fields", [{"method": "POST"}, {"headers": (("A b", "c"),)}, {"headers": (("A", "b\r\nC: d"),)}]
)
def test_invalid_request_is_rejected(fields: dict[str, object]) -> None:
    """Other methods, and header injection."""

    async def answering(exchange: Exchange) -> None:
        await exchange.respond()

    with pytest.raises(UsageError):
        fetch_one(answering, **fields)
