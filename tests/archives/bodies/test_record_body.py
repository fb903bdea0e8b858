"""Bodies of records are decoded within a limit."""

import gzip
import io
import zlib
from contextlib import suppress
from typing import Any

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.archives import decode_payload
from unlost.http import BodyTooLargeError, UndecodableError

LIMIT = 1 << 20
PAGE = b"<p>hello</p>\n" * 20


def encode_chunks(data: bytes, size: int = 50) -> bytes:
    """Return data in chunks."""
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x;ext=1\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def decode(data: bytes, transfer: str = "", content: str = "", limit: int = LIMIT) -> tuple[bytes, bool]:
    """Return a decoded body, and whether it is damaged."""
    headers = [("transfer-encoding", transfer), ("Content-Encoding", content)]
    body, is_broken = decode_payload(io.BytesIO(data), headers, limit)
    with body:
        return body.read(), is_broken


@pytest.mark.parametrize(
    ("data", "transfer", "content"),
    [
        (encode_chunks(PAGE), "chunked", ""),
        (encode_chunks(PAGE).replace(b"\r\n", b"\n"), "Chunked", ""),
        (gzip.compress(PAGE), "", "x-gzip"),
        (brotli.compress(PAGE), "", "br"),
        (encode_chunks(gzip.compress(PAGE)), "chunked", "gzip"),
        (encode_chunks(gzip.compress(zlib.compress(PAGE))), "gzip, chunked", "deflate"),
        (zlib.compress(gzip.compress(PAGE)), "", "gzip, deflate"),
        (gzip.compress(encode_chunks(PAGE)), "chunked, gzip", ""),
    ],
)
def test_codings_are_decoded(data: bytes, transfer: str, content: str) -> None:
    """Single and nested codings are decoded."""
    assert decode(data, transfer, content) == (PAGE, False)


@pytest.mark.parametrize(("transfer", "content"), [("chunked", ""), ("chunked", "gzip"), ("", "br"), ("", "none")])
@pytest.mark.parametrize("data", [PAGE, b"", b"5\r\nis how many", b"2\r\nab\r\nand text"])
def test_uncoded_body_is_unchanged(transfer: str, content: str, data: bytes) -> None:
    """A body that is not in the declared coding is returned unchanged."""
    assert decode(data, transfer, content) == (data, False)


@pytest.mark.parametrize(
    ("data", "transfer", "content"),
    [
        (gzip.compress(PAGE)[:-9], "", "gzip"),
        (encode_chunks(PAGE)[:-40], "chunked", ""),
        (encode_chunks(gzip.compress(PAGE)[:-9]), "chunked", "gzip"),
    ],
)
def test_truncated_body_is_returned_as_far_as_it_goes(data: bytes, transfer: str, content: str) -> None:
    """The available part is returned and marked as damaged."""
    body, is_broken = decode(data, transfer, content)
    assert is_broken
    assert body
    assert PAGE.startswith(body)


def test_bomb_is_decoded_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most the limit is written, in small steps."""
    written: list[int] = []
    bomb = gzip.compress(bytes(100 << 20), 1)

    class Counted(io.BytesIO):
        def write(self, piece: Any, /) -> int:  # noqa: ANN401  whatever can be written
            written.append(len(piece))
            return super().write(piece)

    monkeypatch.setattr("unlost.http.models.new_body", Counted)
    with pytest.raises(BodyTooLargeError):
        decode(bomb, "", "gzip")
    assert sum(written) <= LIMIT + len(bomb)
    assert max(written) <= 1 << 16


def test_unknown_coding_raises() -> None:
    """Encoded bytes are never returned as a page, and the number of codings is limited."""
    with pytest.raises(UndecodableError):
        decode(b"\x1f\x9d\x90" * 9, "", "compress")
    with pytest.raises(UndecodableError):
        decode(PAGE, "chunked" + ", chunked" * 999)


@given(
    st.binary(max_size=400),
    st.lists(st.sampled_from(["chunked", "gzip", "deflate"]), max_size=3),
    st.lists(st.sampled_from(["gzip", "deflate", "br", "zstd", "dcb"]), max_size=3),
)
def test_arbitrary_bodies_do_not_crash(data: bytes, transfer: list[str], content: list[str]) -> None:
    """Any bytes with any codings yield a body or one of two errors."""
    with suppress(BodyTooLargeError, UndecodableError):
        decode(data, ", ".join(transfer), ", ".join(content))
