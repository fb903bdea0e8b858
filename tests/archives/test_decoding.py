"""Codings are undone whatever the pieces in which they come, and nothing is made up of what is none."""

import gzip
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.archives.decoding import Decoder, UndecodableError, codings_of


def raw_deflate(data: bytes) -> bytes:
    """Compress without a header, as some servers do."""
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(data) + stream.flush()


ENCODERS: dict[str, list[Callable[[bytes], bytes]]] = {
    "gzip": [gzip.compress],
    "deflate": [zlib.compress, raw_deflate],
}


def decoded(codings: list[str], pieces: list[bytes]) -> bytes:
    """Return what pieces decode to."""
    decoder = Decoder(codings)
    return b"".join(part for piece in pieces for part in decoder.decode(piece)) + b"".join(decoder.end())


def cut(data: bytes, size: int) -> list[bytes]:
    """Cut data into pieces."""
    return [data[begin : begin + size] for begin in range(0, len(data), size)]


bodies = st.binary(max_size=300) | st.builds(
    lambda part, n: part * n, st.binary(min_size=1, max_size=9), st.just(20_000)
)


@given(bodies, st.lists(st.sampled_from(["gzip", "deflate"]), max_size=3), st.integers(1, 5000), st.data())
def test_what_was_encoded_comes_back(body: bytes, codings: list[str], size: int, data: st.DataObject) -> None:
    """Through up to three codings, in pieces of any size."""
    encoded = body
    for coding in codings:
        encoded = data.draw(st.sampled_from(ENCODERS[coding]))(encoded)
    assert decoded(codings[::-1], cut(encoded, size)) == body


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate"]), st.integers(1, 50))
def test_what_was_not_encoded_passes_or_is_refused(body: bytes, coding: str, size: int) -> None:
    """What only says that it is encoded comes out as it is, or is what zlib makes of it, or is called damaged."""
    try:
        result = decoded([coding], cut(body, size))
    except UndecodableError:
        return
    by_zlib = []
    for window in (31, 15, -15):
        stream = zlib.decompressobj(window)
        try:
            by_zlib.append(stream.decompress(body))
        except zlib.error:
            continue
    assert result in [body, *by_zlib]


@given(st.binary(min_size=1, max_size=100), st.integers(1, 20))
def test_a_stream_that_was_cut_is_refused(body: bytes, lost: int) -> None:
    """Nothing that ends too early is taken for whole."""
    encoded = gzip.compress(body)
    with pytest.raises(UndecodableError):
        decoded(["gzip"], [encoded[: max(2, len(encoded) - lost)]])


def test_the_names_of_codings_are_read_as_servers_write_them() -> None:
    """Several fields, several names in one, old names and names for nothing."""
    assert codings_of(["X-GZIP", " identity,Deflate ", ""]) == ["deflate", "gzip"]
    assert codings_of(["none"]) == codings_of([]) == []
