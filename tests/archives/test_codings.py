"""Codings are undone where they are, passed on where they are not, and never grow beyond a limit."""

import gzip
import io
import zlib
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.archives import codings

LIMIT = 1 << 20
PAGE = b"<p>hello</p>\n" * 20


def chunked(data: bytes, size: int = 50) -> bytes:
    """Return data in chunks."""
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x;ext=1\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def undone(data: bytes, *names: str, limit: int = LIMIT) -> tuple[bytes, bool]:
    """Return a body without codings, and whether it broke off."""
    body, is_broken = codings.undo(io.BytesIO(data), names, limit)
    with body:
        return body.read(), is_broken


def bare(data: bytes) -> bytes:
    """Return data as deflate without a header."""
    machine = zlib.compressobj(wbits=-15)
    return machine.compress(data) + machine.flush()


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (chunked(PAGE), ["chunked"]),
        (gzip.compress(PAGE), ["gzip"]),
        (gzip.compress(PAGE), ["x-gzip"]),
        (gzip.compress(PAGE[:99]) + gzip.compress(PAGE[99:]), ["gzip"]),
        (gzip.compress(PAGE) + b"\0\0\0", ["gzip"]),
        (zlib.compress(PAGE), ["deflate"]),
        (bare(PAGE), ["deflate"]),
        (chunked(gzip.compress(PAGE)), ["chunked", "gzip"]),
        (zlib.compress(gzip.compress(PAGE)), ["deflate", "gzip"]),
        (chunked(PAGE).replace(b"\r\n", b"\n"), ["chunked"]),
    ],
)
def test_codings_are_undone(data: bytes, names: list[str]) -> None:
    """Whatever a server did to a page, alone or in layers, the page comes out."""
    assert undone(data, *names) == (PAGE, False)


@pytest.mark.parametrize("name", ["chunked", "gzip", "deflate", "br", "zstd", "utf-8", "none"])
@pytest.mark.parametrize("data", [PAGE, b"", b"5\r\nis how many", b"2\r\nab\r\nand text"])
def test_what_is_not_coded_is_passed_on(name: str, data: bytes) -> None:
    """A page under the header of a coding that it is not in comes out as it is."""
    assert undone(data, name) == (data, False)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (gzip.compress(bytes(99_999))[:-9], "gzip"),
        (zlib.compress(PAGE)[:-9], "deflate"),
        (chunked(PAGE)[:-40], "chunked"),
    ],
)
def test_what_breaks_off_is_given_so_far(data: bytes, name: str) -> None:
    """Of a coding that ends in the middle all that can be had is given, and said to be broken."""
    body, is_broken = undone(data, name)
    assert is_broken
    assert body
    assert body == (bytes(99_999) if name == "gzip" else PAGE)[: len(body)]


def test_a_bomb_goes_off_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred megabytes in a hundred kilobytes, no more than the limit is ever written, a little at a time."""
    written: list[int] = []
    bomb = gzip.compress(bytes(100 << 20), 1)

    class Counted(io.BytesIO):
        def write(self, piece: Any, /) -> int:  # noqa: ANN401  whatever can be written
            written.append(len(piece))
            return super().write(piece)

    monkeypatch.setattr("unlost.archives.codings.new_body", Counted)
    with pytest.raises(codings.TooLargeError):
        undone(bomb, "gzip")
    assert sum(written) <= LIMIT
    assert max(written) <= 1 << 16


def test_a_coding_that_cannot_be_undone_is_an_error() -> None:
    """Bytes of brotli are never handed out as a page."""
    with pytest.raises(codings.UnknownCodingError):
        undone(bytes([0x8B, 0x02, 0x80, 0x00]) * 9, "br")


def test_the_order_of_codings_is_that_of_undoing() -> None:
    """Transfer codings come off first, and of each kind the last one that was put on."""
    headers = [("Content-Encoding", "deflate, GZIP"), ("Transfer-Encoding", "gzip"), ("transfer-encoding", "chunked")]
    assert codings.codings(headers) == ["chunked", "gzip", "gzip", "deflate"]
    assert codings.codings([("Content-Encoding", "identity, ")]) == []


@given(st.binary(max_size=400), st.lists(st.sampled_from(["chunked", "gzip", "deflate", "br"]), max_size=7))
def test_nothing_breaks_it(data: bytes, names: list[str]) -> None:
    """Any bytes under any codings give a body or one of the two errors."""
    with suppress(codings.TooLargeError, codings.UnknownCodingError):
        undone(data, *names)
