"""Arbitrary bytes on a connection: a response or an error, independent of how they are split."""

import asyncio
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from unlost.http import CONNECTION_ERRORS, HttpConnection

WORDS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 404 x\n", b"HTTP/1.1 304\r\n", b"HTTP/1.1 100 Continue\r\n\r\n",
        b"Content-Length: 5\r\n", b"content-length: -1\r\n", b"Content-Length: 99999999999999999999\r\n",
        b"Transfer-Encoding: chunked\r\n", b"transfer-encoding: gzip, chunked\r\n",
        b"Connection: upgrade\r\nUpgrade: x\r\n",
        b"X: \xff\xfe\r\n", b"X Y: 1\r\n", b"X : 2\r\n", b" folded\r\n", b"\r\n", b"\n",
        b"5\r\nhello\r\n", b"0\r\n\r\n",
        b"ffffffffffffffff\r\n", b"hello", b"\0",
    ]
)  # fmt: skip


class Wire(asyncio.Transport):
    """A transport without a peer."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def write(self, data: Any) -> None:  # noqa: ANN401  whatever transports take
        """Discard."""

    def is_closing(self) -> bool:
        """Return whether it was closed."""
        return self.closed

    def close(self) -> None:
        """Record it."""
        self.closed = True

    def abort(self) -> None:
        """Record it."""
        self.closed = True

    def pause_reading(self) -> None:
        """Do nothing."""

    def resume_reading(self) -> None:
        """Do nothing."""


def read_pieces(pieces: list[bytes], *, to_end: bool, is_bodiless: bool) -> tuple[object, ...]:
    """Return status, fields and body of a response in pieces, or its error."""

    async def hear() -> tuple[object, ...]:
        loop = asyncio.get_running_loop()
        connection, wire = HttpConnection(loop), Wire()
        connection.connection_made(wire)
        connection.send(b"GET / HTTP/1.1\r\n\r\n", until_close=to_end, is_bodiless=is_bodiless)
        for piece in pieces:
            if not wire.closed:
                connection.data_received(piece)
        connection.connection_lost(None)
        until = loop.time() + 5
        try:
            await connection.read_head(until)
            status, fields = connection.status, list(connection.headers)
        except CONNECTION_ERRORS:
            return ("broken",)
        body = b""
        try:
            while piece := await connection.read_piece(until):
                body += piece
        except CONNECTION_ERRORS:
            return status, fields, "broken"
        return status, fields, body

    return asyncio.run(hear())


@given(
    st.lists(WORDS | st.binary(max_size=8), max_size=12).map(b"".join), st.lists(st.integers(1, 40), max_size=8),
    st.booleans(), st.booleans(),
)  # fmt: skip
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", [1, 1, 1], False, False)
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello", [20, 19], True, False)
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", [20, 19], True, False)
@example(b"HTTP/1.1 200 OK\r\nX Y: 1\r\nContent-Length: 5\r\n\r\nhello", [20, 19], False, False)
def test_any_bytes_in_any_pieces_are_handled(text: bytes, sizes: list[int], to_end: bool, is_bodiless: bool) -> None:
    """Only documented errors are raised; a complete response does not depend on the pieces."""
    whole = read_pieces([text], to_end=to_end, is_bodiless=is_bodiless)
    pieces, rest = [], text
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    found = read_pieces([each for each in (*pieces, rest) if each], to_end=to_end, is_bodiless=is_bodiless)
    if "broken" not in whole and "broken" not in found:
        assert found == whole
    assert ("broken" in whole) == ("broken" in found)
