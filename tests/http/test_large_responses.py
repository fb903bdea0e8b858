"""Large, useless and invalid responses: bounded time and memory."""

import asyncio
import gzip
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.external.fault_server import Exchange, Handler
from tests.http.handlers import faulty_first, send_and_hang
from tests.http.harness import kind_of, run_server
from unlost.http import Timeouts

MIB = 1 << 20


@contextmanager
def memory_below(limit: int) -> Iterator[None]:
    """Fail if Python allocates more than `limit` bytes within the block."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def test_random_bytes_are_returned_unchanged() -> None:
    """5 MB with an unknown charset: clients judge them."""
    rubbish = bytes(range(256)) * (5 * MIB // 256)

    async def answering(exchange: Exchange) -> None:
        await exchange.respond(200, rubbish, content_type="text/html; charset=klingon")

    async def run() -> None:
        async with run_server(answering) as it:
            with memory_below(4 * MIB):
                reply = await it.send()
            assert (reply.size, reply.header("Content-Type")) == (5 * MIB, "text/html; charset=klingon")
            assert reply.body.read() == rubbish

    asyncio.run(run())


@pytest.mark.parametrize(
    "said",
    [
        [b"rubbish\n" * 64_000] * 10,
        [b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 100_000] * 50,
        [b"HTTP/1.1 200 OK\r\n"] + [b"x: y\r\n" * 1000] * 1000,
        [b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n"],
    ],
    ids=["no HTTP", "a field without an end", "fields without an end", "no length"],
)
def test_invalid_http_is_malformed(said: list[bytes]) -> None:
    """It is reported at once, whatever its size, and not retried."""

    async def run() -> None:
        async with run_server(send_and_hang(*said)) as it:
            with memory_below(8 * MIB):
                assert await kind_of(it) == "malformed"
            assert len(it.server.requests) == 1

    asyncio.run(run())


async def _endless(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await exchange.send(b"x" * 65_536)


async def _endless_chunks(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        await exchange.send(b"10000\r\n" + b"x" * 65_536 + b"\r\n")


async def _endless_nothing(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n")
    while True:
        await exchange.send(gzip.compress(b"") * 3000)


async def _announced(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nabc")
    await exchange.wait_closed()


def _bomb(coding: str, layers: int = 1) -> Handler:
    zeros = gzip.compress(bytes(16 * MIB), 9) * 320  # 5 GiB in 5 MB
    data = zeros if layers == 1 else gzip.compress(zeros, 9)

    async def answering(exchange: Exchange) -> None:
        await exchange.respond(200, data, content_encoding=coding)

    return answering


LARGE: dict[str, Callable[[], Handler]] = {
    "endless": lambda: _endless,
    "endless chunks": lambda: _endless_chunks,
    "endless nothing": lambda: _endless_nothing,
    "announced": lambda: _announced,
    "gzip bomb": lambda: _bomb("gzip"),
    "gzip bomb in gzip": lambda: _bomb("gzip, gzip", 2),
}


@pytest.mark.parametrize("made", LARGE.values(), ids=LARGE)
def test_too_large_body_is_aborted_at_the_limit(made: Callable[[], Handler]) -> None:
    """Endless bodies and bombs of 5 GB take no memory, and are not retried."""
    answering = made()

    async def run() -> None:
        async with run_server(faulty_first(answering)) as it:
            with memory_below(4 * MIB):
                assert await kind_of(it, max_bytes=4 * MIB) == "too-large"
            assert (await it.send()).status == 200
            assert len(it.server.requests) == 2

    asyncio.run(run())


def test_bomb_of_a_million_empty_streams_ends_at_the_timeout() -> None:
    """Twenty bytes that decode to nothing take bounded time."""
    data = gzip.compress(b"") * 2_000_000

    async def answering(exchange: Exchange) -> None:
        await exchange.respond(200, data, content_encoding="gzip")

    async def run() -> None:
        async with run_server(answering, timeouts=Timeouts(2, 1, 1, 0.5)) as it:
            start = time.monotonic()
            assert await kind_of(it) == "timeout"
            assert time.monotonic() - start < 5

    asyncio.run(run())


@pytest.mark.parametrize("status", [302, 429, 500])
def test_unused_body_is_drained(status: int) -> None:
    """Also if it arrives after the headers: the connection is reused."""

    async def fault(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 %d No\r\nlocation: /next\r\ncontent-length: 9\r\n\r\n" % status)
        await asyncio.sleep(0.05)
        await exchange.send(b"somewhere")

    async def run() -> None:
        async with run_server(faulty_first(fault)) as it:
            assert (await it.send()).status == 200
            assert (len(it.server.requests), it.server.connections) == (2, 1)

    asyncio.run(run())


def test_large_unused_body_closes_the_connection() -> None:
    """An error page may be endless."""

    async def fault(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 500 Sorry\r\n\r\n")
        while True:
            await exchange.send(b"x" * 65_536)

    async def run() -> None:
        async with run_server(faulty_first(fault, 2)) as it:
            with memory_below(8 * MIB):
                assert (await it.send()).status == 200
            assert it.server.connections == 3

    asyncio.run(run())
