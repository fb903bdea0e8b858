"""Content codings: decoded in any pieces, passed through if not encoded, and bounded."""

import gzip
import random
import subprocess
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.http import MAX_CODINGS, ContentDecoder, UndecodableError, decode_chunks, parse_content_encoding

Pack = Callable[[bytes], bytes]


def zstd(data: bytes) -> bytes:
    """Compress with the program `zstd`."""
    return subprocess.run(["zstd", "--stdout"], input=data, capture_output=True, check=True).stdout


def raw_deflate(data: bytes) -> bytes:
    """Compress without the zlib header, as some servers do."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def quick_brotli(data: bytes) -> bytes:
    """Compress quickly."""
    return bytes(brotli.compress(data, quality=2))


PACKERS: dict[str, list[Pack]] = {
    "gzip": [gzip.compress],
    "deflate": [zlib.compress, raw_deflate],
    "br": [quick_brotli],
}
ALL: list[tuple[str, Pack]] = [(name, pack) for name, packs in PACKERS.items() for pack in packs] + [("zstd", zstd)]
TEXT = b"".join(b"%d lines of a page\n" % line for line in range(20_000))
NOISE = random.Random(5).randbytes(20_000)  # noqa: S311  the same every time
# How files of common types begin.
FILES = {
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
    "gif": b"GIF89a\0",
    "pdf": b"%PDF-1.4\n",
    "woff": b"wOFF\0\1\0\0",
    "woff2": b"wOF2\0\1\0\0",
    "zip": b"PK\3\4\x14\0",
    "icon": b"\0\0\1\0\1\0",
    "webp": b"RIFF\0\0\1\0WEBPVP8 ",
    "mp4": b"\0\0\0\x18ftypmp42",
}


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Split into pieces."""
    return (data[place : place + size] for place in range(0, len(data), size))


def decode_body(data: bytes, *codings: str, size: int = 1_000) -> tuple[bytes, str | None]:
    """Return the decoded body and its damage."""
    decoder = ContentDecoder(codings)
    return b"".join(decode_chunks(pieces(data, size), decoder)), decoder.damage


@pytest.mark.parametrize("size", [1, 7, 1_000, 1 << 20])
@pytest.mark.parametrize(("coding", "pack"), ALL)
def test_body_is_decoded_in_any_pieces(coding: str, pack: Pack, size: int) -> None:
    """Byte for byte, and no output chunk is large."""
    decoder = ContentDecoder([coding])
    found = list(decode_chunks(pieces(pack(TEXT), size), decoder))
    assert (b"".join(found), decoder.damage) == (TEXT, None)
    assert max(map(len, found)) <= 1 << 17


bodies = st.binary(max_size=300) | st.builds(
    lambda part, n: part * n, st.binary(min_size=1, max_size=9), st.just(20_000)
)


@given(bodies, st.lists(st.sampled_from(sorted(PACKERS)), max_size=MAX_CODINGS), st.integers(1, 5000), st.data())
def test_encoded_body_round_trips(body: bytes, codings: list[str], size: int, data: st.DataObject) -> None:
    """Through several codings, in pieces of any size."""
    encoded = body
    for coding in codings:
        encoded = data.draw(st.sampled_from(PACKERS[coding]))(encoded)
    assert decode_body(encoded, *parse_content_encoding([", ".join(codings)]), size=size) == (body, None)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "dcb", "utf-8", "text/html"])
@pytest.mark.parametrize(
    "data", [TEXT, b"", b"1", b"5\r\nis how many", "Grüße".encode() * 99, "Grüße".encode("iso-8859-1") * 99]
)
@pytest.mark.parametrize("size", [1, 1_000])
def test_uncompressed_text_is_unchanged(coding: str, data: bytes, size: int) -> None:
    """Under any declared coding."""
    assert decode_body(data, coding, size=size) == (data, None)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "image/png"])
@pytest.mark.parametrize("name", FILES)
def test_uncompressed_file_is_unchanged(coding: str, name: str) -> None:
    """Such as images that a server declares as compressed."""
    data = FILES[name] + NOISE
    assert decode_body(data, coding) == (data, None)


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate"]), st.integers(1, 50))
def test_falsely_declared_body_is_unchanged_or_damaged(body: bytes, coding: str, size: int) -> None:
    """Or it is what zlib makes of it."""
    found, damage = decode_body(body, coding, size=size)
    by_zlib = []
    for window in (31, 15, -15):
        stream = zlib.decompressobj(window)
        with suppress(zlib.error):
            by_zlib.append(stream.decompress(body))
    assert damage or found in [body, *by_zlib]


@given(
    data=st.binary(max_size=300),
    codings=st.lists(st.sampled_from(["gzip", "deflate", "br", "zstd", "dcz"]), max_size=4),
)
def test_any_bytes_give_a_body_or_one_error(data: bytes, codings: list[str]) -> None:
    """Under any codings."""
    with suppress(UndecodableError):
        decode_body(data, *codings)


@pytest.mark.parametrize(("coding", "pack"), ALL)
@pytest.mark.parametrize("cut", [1, 5, 100])
def test_truncated_body_is_decoded_up_to_the_cut(coding: str, pack: Pack, cut: int) -> None:
    """The damage is reported."""
    found, damage = decode_body(pack(TEXT)[:-cut], coding)
    assert damage
    assert coding in damage
    assert TEXT.startswith(found)
    assert len(found) > len(TEXT) // 2 or coding == "zstd"  # which has it in blocks


@given(st.binary(min_size=1, max_size=100), st.integers(1, 20))
def test_truncated_gzip_is_always_detected(body: bytes, lost: int) -> None:
    """Wherever it is truncated."""
    encoded = gzip.compress(body)
    assert decode_body(encoded[: max(2, len(encoded) - lost)], "gzip")[1] == "gzip that ends too early"


@pytest.mark.parametrize(("coding", "pack"), [*ALL[:2], ALL[3]])
@pytest.mark.parametrize("size", [1, 1_000, 1 << 20])
def test_bytes_before_damage_are_decoded(coding: str, pack: Pack, size: int) -> None:
    """Also in the same chunk: exactly with zlib, nearly with Brotli."""
    packed = pack(TEXT)
    place = len(packed) // 2
    found, damage = decode_body(packed[:place] + b"\xff" * 99 + packed[place + 99 :], coding, size=size)
    assert damage
    same = next((at for at in range(0, len(found), 100) if found[at : at + 100] != TEXT[at : at + 100]), len(found))
    assert same > len(TEXT) // 3


def test_wrong_checksum_is_damage() -> None:
    """The whole body is decoded before."""
    assert decode_body(gzip.compress(b"x")[:-8] + bytes(8), "gzip") == (
        b"x",
        "damaged gzip: Error -3 while decompressing data: incorrect data check",
    )


def test_concatenated_gzip_members_are_one_body() -> None:
    """Bytes after the last member are padding."""
    packed = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0\0"
    for size in (1, 3, 1_000):
        assert decode_body(packed, "gzip", size=size) == (b"one two", None)


@pytest.mark.parametrize("coding", ["deflate", "br", "zstd"])
def test_gzip_is_detected_by_its_magic_bytes(coding: str) -> None:
    """Under any declared coding."""
    assert decode_body(gzip.compress(TEXT), coding) == (TEXT, None)


@pytest.mark.parametrize("coding", ["dcb", "compress", "sdch", "br with a dictionary"])
def test_unknown_coding_is_rejected(coding: str) -> None:
    """Its bytes are never returned as a page."""
    with pytest.raises(UndecodableError, match=coding):
        decode_body(b"\x1f\x9d\x90" + NOISE, coding)


def test_too_many_codings_are_rejected() -> None:
    """Before decoding."""
    with pytest.raises(UndecodableError, match="5 codings"):
        ContentDecoder(["gzip"] * 5)


def test_coding_names_are_parsed_leniently() -> None:
    """Several fields, several names in one, aliases and `identity`."""
    assert parse_content_encoding(["X-GZIP", " identity,Deflate ;q=1", ""]) == ["deflate", "gzip"]
    assert parse_content_encoding(["none, utf-8"]) == parse_content_encoding([]) == []


@pytest.mark.parametrize(("coding", "pack"), ALL)
def test_bomb_is_decoded_in_chunks(coding: str, pack: Pack) -> None:
    """Thirty megabytes are never in memory at once."""
    packed = pack(bytes(30_000_000))
    tracemalloc.start()
    try:
        decoder = ContentDecoder([coding])
        assert sum(map(len, decode_chunks(pieces(packed, 1 << 16), decoder))) == 30_000_000
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
