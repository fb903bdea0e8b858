"""Faults of connections and responses: outcomes, retries and delays."""

import asyncio
import time

import pytest

from tests.external.fault_server import Exchange, Handler
from tests.http.handlers import OK, faulty_first, reset, send_and_hang
from tests.http.harness import HASTY, kind_of, run_server
from unlost.http import RETRIES, Timeouts


@pytest.mark.parametrize(
    "said",
    [
        [],
        [b"HTTP/1.1 200 O"],
        [b"HTTP/1.1 200 OK\r\nx: 1\r\n"],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"],
    ],
    ids=["before the head", "within its first line", "within the head", "within the body", "between chunks"],
)
def test_hang_ends_at_its_timeout_and_is_not_retried(said: list[bytes]) -> None:
    """The next request uses a new connection."""

    async def run() -> None:
        async with run_server(faulty_first(send_and_hang(*said)), timeouts=HASTY) as it:
            start = time.monotonic()
            assert await kind_of(it) == "timeout"
            assert time.monotonic() - start < 5
            assert it.server.paths == ["/"]
            assert (await it.send("/next")).body.read() == b"ok"
            assert (it.server.paths, it.server.connections, it.clock.slept) == (["/", "/next"], 2, [])

    asyncio.run(run())


def test_dead_idle_connection_is_retried_once() -> None:
    """The peer may have vanished silently: a hang on a reused connection is retried on a new one."""

    async def answering(exchange: Exchange) -> None:
        await (exchange.wait_closed() if exchange.number == 1 else exchange.send(OK))

    async def run() -> None:
        async with run_server(answering, timeouts=HASTY) as it:
            await it.send("/first")
            assert (await it.send("/second")).status == 200
            assert it.server.paths == ["/first", "/second", "/second"]
            assert it.server.connections == 2

    asyncio.run(run())


STRAY = b"the rest of a page that was longer than it said</html>\r\n"


@pytest.mark.parametrize("heals", [True, False])
def test_stale_bytes_on_a_connection_are_retried(heals: bool) -> None:
    """Invalid HTTP on a reused connection is retried once on a new one."""
    arrived: list[Exchange] = []
    dirty: set[asyncio.StreamWriter] = set()

    async def answering(exchange: Exchange) -> None:
        if exchange.path == "/first":
            arrived.append(exchange)
            while len(arrived) < 3:
                await asyncio.sleep(0)
            dirty.add(exchange.writer)
        strays = exchange.path == "/second" and (exchange.writer in dirty or not heals)
        await exchange.send(*([STRAY] if strays else []), OK)

    async def run() -> None:
        async with run_server(answering) as it:
            await asyncio.gather(*(it.send("/first") for _ in range(3)))
            if heals:
                assert (await it.send("/second")).status == 200
            else:
                assert await kind_of(it, "/second") == "malformed"
            assert it.server.paths == ["/first"] * 3 + ["/second"] * 2
            assert (it.server.connections, it.clock.slept) == (4, [])

    asyncio.run(run())


def test_invalid_http_on_a_new_connection_is_not_retried() -> None:
    """It is the archive's response."""

    async def run() -> None:
        async with run_server(faulty_first(send_and_hang(STRAY))) as it:
            assert await kind_of(it) == "malformed"
            assert it.server.paths == ["/"]

    asyncio.run(run())


REDIRECT = (
    b"HTTP/1.1 301 Moved\r\nmemento-datetime: Mon, 10 Feb 2014 00:00:01 GMT\r\nlocation: /elsewhere\r\n"
    b"content-length: 99\r\n%s\r\nabc"
)


@pytest.mark.parametrize("coding", [b"", b"content-encoding: gzip\r\n"])
@pytest.mark.parametrize("hangs", [True, False])
def test_head_of_a_captured_redirect_is_enough(hangs: bool, coding: bytes) -> None:
    """A body that hangs, or is shorter than the captured length, is ignored."""

    async def answering(exchange: Exchange) -> None:
        if exchange.number:
            await exchange.send(OK)
            return
        await exchange.send(REDIRECT % coding)
        await (exchange.wait_closed() if hangs else exchange.reset())

    async def run() -> None:
        async with run_server(answering, timeouts=HASTY) as it:
            reply = await it.send("/page", max_redirects=0)
            assert (reply.status, reply.header("location"), reply.size) == (301, "/elsewhere", 0)
            assert reply.body.read() == b""
            assert (await it.send("/next")).status == 200
            assert it.server.paths == ["/page", "/next"]

    asyncio.run(run())


def test_complete_captured_redirect_has_its_body() -> None:
    """A redirect of the archive itself that hangs is a failure."""

    async def answering(exchange: Exchange) -> None:
        if exchange.path == "/own":
            await exchange.send(REDIRECT.replace(b"memento-datetime", b"x-other") % b"")
            await exchange.wait_closed()
        await exchange.send(REDIRECT.replace(b"99", b"3") % b"")

    async def run() -> None:
        async with run_server(answering, timeouts=HASTY) as it:
            assert (await it.send("/page", max_redirects=0)).body.read() == b"abc"
            assert await kind_of(it, "/own", max_redirects=0) == "timeout"

    asyncio.run(run())


def test_closed_idle_connection_costs_a_counted_request() -> None:
    """The retry waits, and is counted by the limits."""

    async def answering(exchange: Exchange) -> None:
        if exchange.number == 1:
            exchange.writer.close()
        else:
            await exchange.send(OK)

    async def run() -> None:
        async with run_server(answering) as it:
            await it.send("/first")
            await it.send("/second")
            assert it.server.paths == ["/first", "/second", "/second"]
            assert it.clock.slept == [1.0]

    asyncio.run(run())


def test_without_retries_only_a_closed_connection_is_retried() -> None:
    """At once; resets of new connections and server errors are reported."""

    async def answering(exchange: Exchange) -> None:
        if exchange.path == "/500":
            await exchange.respond(500)
        elif exchange.number == 1 or exchange.path == "/reset":
            await exchange.reset()
        else:
            await exchange.send(OK)

    async def run() -> None:
        async with run_server(answering, retries=RETRIES["aggregate"]) as it:
            await it.send("/first")
            assert (await it.send("/second")).status == 200
            assert await kind_of(it, "/500") == "status"
            assert await kind_of(it, "/reset") == "reset"
            assert it.server.paths == ["/first", "/second", "/second", "/500", "/reset", "/reset"]
            assert await kind_of(it, "/reset") == "reset"
            assert it.server.paths[6:] == ["/reset"]
            assert it.clock.slept == [0.0, 0.0]

    asyncio.run(run())


async def _drip(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n")
    for _ in range(10):
        await exchange.send(b"x")
        await asyncio.sleep(0.05)


def test_slow_body_is_read_within_the_total_timeout() -> None:
    """As long as bytes arrive."""

    async def run() -> None:
        async with run_server(_drip) as it:
            assert (await it.send()).body.read() == b"x" * 10
        async with run_server(_drip, timeouts=Timeouts(5, 3, 3, 0.3)) as it:
            assert await kind_of(it) == "timeout"
            assert it.server.paths == ["/"]

    asyncio.run(run())


async def _reset_within(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")
    await exchange.reset()


async def _short(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")
    exchange.writer.close()


async def _short_chunks(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
    exchange.writer.close()


async def _closed(exchange: Exchange) -> None:
    exchange.writer.close()


async def _status_500(exchange: Exchange) -> None:
    await exchange.respond(500, b"sorry")


BROKEN = {
    "reset": (reset, "reset"),
    "reset within the body": (_reset_within, "reset"),
    "closed": (_closed, "reset"),
    "a body shorter than its length": (_short, "reset"),
    "chunks without an end": (_short_chunks, "reset"),
    "500": (_status_500, "status"),
}


@pytest.mark.parametrize(("fault", "kind"), BROKEN.values(), ids=BROKEN)
def test_transient_failure_is_retried_with_growing_delays(fault: Handler, kind: str) -> None:
    """Twice, after one and four seconds; then the response or the failure is returned."""

    async def run() -> None:
        async with run_server(faulty_first(fault, 2)) as it:
            assert (await it.send()).body.read() == b"ok"
            assert (len(it.server.requests), it.clock.slept) == (3, [1.0, 4.0])
        async with run_server(fault) as it:
            assert await kind_of(it) == kind
            assert (len(it.server.requests), it.clock.slept) == (3, [1.0, 4.0])
        async with run_server(fault, timeouts=Timeouts(5, 3, 3, 3)) as it:
            assert await kind_of(it) == kind
            assert (len(it.server.requests), it.clock.slept) == (2, [1.0])

    asyncio.run(run())


@pytest.mark.parametrize("status", [429, 500, 503, 404])
def test_capture_is_returned_whatever_its_status(status: int) -> None:
    """With Memento-Datetime, 429 and 503 are captured statuses."""

    async def answering(exchange: Exchange) -> None:
        await exchange.respond(status, b"then", memento_datetime="Tue, 14 Nov 2023 22:13:40 GMT", retry_after="1000")

    async def run() -> None:
        async with run_server(answering) as it:
            for _ in range(3):
                reply = await it.send()
                assert (reply.status, reply.body.read()) == (status, b"then")
            assert (len(it.server.requests), it.clock.slept) == (3, [])

    asyncio.run(run())
