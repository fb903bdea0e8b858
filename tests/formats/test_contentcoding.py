"""Content codings: undone whatever the pieces, never guessed, never a bomb."""

import gzip
import subprocess
import tracemalloc
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.errors import ArchiveFileError
from unlost.formats.contentcoding import undone


def zstd(data: bytes) -> bytes:
    """Pack by the program `zstd`."""
    return subprocess.run(["zstd", "--stdout"], input=data, capture_output=True, check=True).stdout


def raw_deflate(data: bytes) -> bytes:
    """Pack without the header that the standard demands."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def quick_brotli(data: bytes) -> bytes:
    """Pack without taking long over it."""
    return bytes(brotli.compress(data, quality=2))


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress, "br": quick_brotli}
TEXT = b"".join(b"%d lines of a page\n" % line for line in range(20_000))


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Cut into pieces."""
    return (data[place : place + size] for place in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 7, 1_000, 1 << 20])
@pytest.mark.parametrize(("coding", "pack"), [*PACKERS.items(), ("deflate", raw_deflate), ("zstd", zstd)])
def test_a_body_comes_back_whatever_its_pieces(coding: str, pack: Callable[[bytes], bytes], size: int) -> None:
    """Byte for byte, and no piece is large."""
    found = list(undone(pieces(pack(TEXT), size), coding))
    assert b"".join(found) == TEXT
    assert max(map(len, found)) <= 1 << 17


@given(body=st.binary(max_size=2_000), codings=st.lists(st.sampled_from(sorted(PACKERS)), max_size=4))
def test_codings_are_undone_from_the_last_to_the_first(body: bytes, codings: list[str]) -> None:
    """As they are listed in the header."""
    packed = body
    for coding in codings:
        packed = PACKERS[coding](packed)
    assert b"".join(undone(iter([packed]), ", ".join(codings))) == body


@given(data=st.binary(max_size=300), coding=st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br"]))
def test_rubbish_is_refused_and_nothing_else_happens(data: bytes, coding: str) -> None:
    """Whatever is not in the coding raises one kind of error."""
    with suppress(ArchiveFileError):
        b"".join(undone(iter([data]), coding))


@pytest.mark.parametrize(("coding", "pack"), [*PACKERS.items(), ("zstd", zstd)])
@pytest.mark.parametrize("cut", [1, 5, 100])
def test_a_body_that_was_cut_is_not_whole(coding: str, pack: Callable[[bytes], bytes], cut: int) -> None:
    """What was left of it is given, then the error."""
    packed = pack(TEXT)[:-cut]
    found = deque[bytes]()
    with pytest.raises(ArchiveFileError, match=f"expected a body in {coding}"):
        found.extend(undone(pieces(packed, 1_000), coding))
    assert TEXT.startswith(b"".join(found))
    assert found


def test_members_behind_each_other_are_one_body() -> None:
    """As some servers send gzip; what is behind them and no member is padding."""
    packed = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0\0"
    assert b"".join(undone(pieces(packed, 3), "x-gzip")) == b"one two"


def test_an_unknown_coding_is_named() -> None:
    """Before anything is given."""
    with pytest.raises(ArchiveFileError, match="'dcb'"):
        undone(iter([b"x"]), "gzip, dcb")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_an_empty_body_is_in_every_coding(coding: str) -> None:
    """As redirects and answers without content have it."""
    assert b"".join(undone(iter([b""]), coding)) == b""


@pytest.mark.parametrize(("coding", "pack"), [*PACKERS.items(), ("zstd", zstd)])
def test_a_bomb_is_unpacked_piece_by_piece(coding: str, pack: Callable[[bytes], bytes]) -> None:
    """Thirty megabytes of nothing never are in memory at once."""
    packed = pack(bytes(30_000_000))
    tracemalloc.start()
    try:
        assert sum(map(len, undone(pieces(packed, 1 << 16), coding))) == 30_000_000
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
