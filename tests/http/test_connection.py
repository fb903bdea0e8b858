"""Responses in all forms of HTTP/1.1, on both event loops."""

import asyncio

import pytest

from tests.external.fault_server import Exchange
from tests.http.event_loops import Run, run
from tests.http.handlers import OK, script
from tests.http.harness import HASTY, kind_of, run_server, status_and_body
from unlost.errors import FailedError
from unlost.http import RETRIES, SystemResolver, parse_url, pool

__all__ = ["run"]


class Flood:
    """Sends a response without end.

    Attributes:
        sent: Number of bytes after the head.
    """

    def __init__(self, beginning: bytes) -> None:
        self.sent = 0
        self._beginning = beginning

    async def __call__(self, exchange: Exchange) -> None:
        """Respond."""
        await exchange.send(self._beginning)
        while not exchange.writer.is_closing():
            await exchange.send(b"x" * 65_536)
            self.sent += 65_536


FORMS = {
    # name: (answer, status, body, whether the connection is used again)
    "length": (OK, 200, b"ok", True),
    "chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1;x=y\r\n!\r\n0\r\n\r\n", 200, b"ok!", True,
    ),
    "a trailer": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-later: 1\r\n\r\n", 200, b"ok", True,
    ),
    "no reason": (b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok", 200, b"ok", True),
    "bare newlines": (b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok", 200, b"ok", True),
    "nothing": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 99\r\n\r\n", 304, b"", True),
    "a word in between": (b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + OK, 200, b"ok", True),
    "words in between": (b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + OK, 200, b"ok", True),
    "close": (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok", 200, b"ok", False),
    "old": (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", 200, b"ok", False),
    "old and kept": (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok", 200, b"ok", True),
    "a space before the colon": (b"HTTP/1.1 200 OK\r\ncontent-length : 2\r\n\r\nok", 200, b"ok", True),
    "a malformed field name": (
        b"HTTP/1.1 200 OK\r\nX-Content Type Options: a\r\n b\r\nno colon\r\nX-Any : 1\r\ncontent-length: 2\r\n\r\nok",
        200, b"ok", True,
    ),
    "a malformed field name after a word in between": (
        b"HTTP/1.1 103 Early Hints\r\na b: c\r\n\r\nHTTP/1.1 200 OK\r\nd e: f\r\ncontent-length: 2\r\n\r\nok",
        200, b"ok", True,
    ),
    "more than it said": (OK + b"and more", 200, b"ok", False),
    "an answer to nothing": (OK + OK, 200, b"ok", False),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "status", "body", "kept"), FORMS.values(), ids=FORMS)
def test_response_is_read_in_any_framing(run: Run, answer: bytes, status: int, body: bytes, kept: bool) -> None:
    """The next response on the connection is not affected."""

    async def ask() -> None:
        async with run_server(script(answer, OK)) as it:
            assert await status_and_body(it) == (status, body)
            assert await status_and_body(it) == (200, b"ok")
            assert it.server.connections == (1 if kept else 2)
            assert it.clock.slept == []

    run(ask)


@pytest.mark.parametrize("form", ["words in between", "a malformed field name after a word in between"])
def test_response_is_read_in_any_pieces(run: Run, form: str) -> None:
    """Also byte by byte."""
    response = FORMS[form][0]

    async def answering(exchange: Exchange) -> None:
        for place in range(len(response)):
            await exchange.send(response[place : place + 1])
            await asyncio.sleep(0)

    async def ask() -> None:
        async with run_server(answering) as it:
            assert [await status_and_body(it) for _ in range(3)] == [(200, b"ok")] * 3
            assert it.server.connections == 1

    run(ask)


def test_body_without_length_ends_with_the_connection(run: Run) -> None:
    """It is complete, unless the connection was reset."""

    async def ask() -> None:
        async with run_server(script(b"HTTP/1.1 200 OK\r\n\r\nall of it", close=True)) as it:
            assert await status_and_body(it) == (200, b"all of it")

        async with run_server(
            script(b"HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\n\r\nall of it", close=True)
        ) as it:
            assert await status_and_body(it) == (200, b"all of it")

        async with run_server(script(b"HTTP/1.1 200 OK\r\ncontent-length : 99\r\n\r\nsome of it", close=True)) as it:
            assert await kind_of(it) == "reset"

        async def breaks(exchange: Exchange) -> None:
            await exchange.send(b"HTTP/1.1 200 OK\r\n\r\nsome of it")
            await exchange.reset()

        async with run_server(breaks) as it:
            assert await kind_of(it) == "reset"

    run(ask)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok",
    ],
)
def test_invalid_response_is_reported(run: Run, answer: bytes) -> None:
    """At once, without a retry."""

    async def ask() -> None:
        async with run_server(script(answer), timeouts=HASTY) as it:
            assert await kind_of(it) in {"malformed", "timeout"}
            assert len(it.server.requests) == 1

    run(ask)


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_too_short_content_length_can_be_ignored(run: Run, end: str) -> None:
    """If requested, the body is read to the end of the connection, in any pieces."""
    head = end.join(
        ["HTTP/1.1 200 OK", "Content-Type: text/plain", "Content-Length : 3", "X-A: content-length: 9", "", ""]
    )

    async def answering(exchange: Exchange) -> None:
        text = head.encode() + b"whole"
        for piece in (text[:20], text[20:50], text[50:]):
            await exchange.send(piece)
        exchange.writer.close()

    async def ask() -> None:
        async with run_server(answering) as it:
            for to_end, expected in ((False, b"who"), (True, b"whole"), (False, b"who")):
                reply = await it.send(until_close=to_end)
                with reply.body:
                    assert (reply.body.read(), reply.header("x-a")) == (expected, "content-length: 9")

    run(ask)


def test_truncated_body_raises(run: Run) -> None:
    """Also if a longer body would be read to its end."""

    async def ask() -> None:
        async with run_server(script(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwhole", close=True)) as it:
            with pytest.raises(FailedError) as raised:
                await it.send(until_close=True)
            assert raised.value.kind == "reset"

    run(ask)


def test_slow_reader_pauses_the_server(run: Run) -> None:
    """Only some chunks of a body are buffered."""
    endless = Flood(b"HTTP/1.1 200 OK\r\n\r\n")

    async def ask() -> None:
        async with run_server(endless) as it:
            connections = pool.ConnectionPool(SystemResolver(), proxy_resolver=None)
            connection = await connections.open(parse_url(it.archive.timemap or ""), None, 5)
            connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            loop = asyncio.get_running_loop()
            await connection.read_head(loop.time() + 5)
            before = -1
            while before != endless.sent:  # until nothing more is taken
                before = endless.sent
                for _ in range(200):
                    await asyncio.sleep(0)
            # What the two sockets hold besides, and what one piece may have more.
            assert endless.sent < 32 << 20
            assert len(await connection.read_piece(loop.time() + 5)) > 0
            connections.release(connection)
            assert not connection.is_open

    run(ask)


def test_field_value_cannot_contain_another_field(run: Run) -> None:
    """Values that come from an archive may be hostile."""

    async def ask() -> None:
        async with run_server(script(OK)) as it:
            for hostile in ("a\r\nX: y", "a\nb", "a\0"):
                assert await kind_of(it, headers={"If-None-Match": hostile}) == "malformed"
            assert it.server.requests == []
            assert (await it.send(headers={"accept": "text/x", "If-None-Match": '"ü"'})).status == 200

    run(ask)


@pytest.mark.parametrize(("status", "size", "kind"), [(200, 2_000, "too-large"), (500, 400_000, "status")])
def test_unread_body_is_not_part_of_the_next_response(run: Run, status: int, size: int, kind: str) -> None:
    """All of it may have been received already."""
    large = b"HTTP/1.1 %d Whatever\r\ncontent-length: %d\r\n\r\n" % (status, size) + b"-" * size

    async def ask() -> None:
        async with run_server(script(large, OK), retries=RETRIES["aggregate"]) as it:
            assert await kind_of(it, max_bytes=1000) == kind
            assert await status_and_body(it) == (200, b"ok")
            connections = pool.ConnectionPool(SystemResolver(), proxy_resolver=None)
            connection = await connections.open(parse_url(it.archive.timemap or ""), None, 5)
            connection.send(b"")
            connection.data_received(large)
            assert not connection.is_open
            connections.release(connection)
            assert connections.take_idle(parse_url(it.archive.timemap or ""), None) is None

    run(ask)


def test_endless_trailer_is_rejected(run: Run) -> None:
    """It would be collected in memory."""
    endless = Flood(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: ")

    async def ask() -> None:
        async with run_server(endless) as it:
            assert await kind_of(it) == "malformed"
            assert endless.sent < 32 << 20

    run(ask)


def test_space_around_a_value_is_stripped(run: Run) -> None:
    """Values that are compared must not differ by it."""

    async def ask() -> None:
        async with run_server(script(b"HTTP/1.1 200 OK\r\nx: \t a b \t\r\ncontent-length: 2\r\n\r\nok")) as it:
            assert (await it.send()).headers[0] == ("x", "a b")

    run(ask)


def test_connection_released_after_close_is_closed(run: Run) -> None:
    """A request that ends after its client leaves no connection open."""

    async def ask() -> None:
        async with run_server(script(OK)) as it:
            connections = pool.ConnectionPool(SystemResolver(), proxy_resolver=None)
            connection = await connections.open(parse_url(it.archive.timemap or ""), None, 5)
            connections.close()
            connections.release(connection)
            assert not connection.is_open

    run(ask)


def test_connection_lost_before_use_raises_at_once(run: Run) -> None:
    """The client does not wait for a response to an unsent request."""

    async def ask() -> None:
        async with run_server(script(OK)) as it:
            connections = pool.ConnectionPool(SystemResolver(), proxy_resolver=None)
            connection = await connections.open(parse_url(it.archive.timemap or ""), None, 5)
            connection.close()
            for _ in range(5):
                await asyncio.sleep(0)
            connection.send(b"GET / HTTP/1.1\r\n\r\n")
            with pytest.raises(ConnectionResetError):
                await connection.read_head(asyncio.get_running_loop().time() + 5)

    run(ask)
