"""The core undoes codings of bodies as the Python code does, whatever headers say and however the bytes lie."""

import gzip
import hashlib
import io
import zlib
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.test_content_encoding import raw_deflate, zstd
from tests.warc.warcs import member, record
from unlost._core import WarcBody, WarcRecord, WarcScanner
from unlost.archives import decode_payload
from unlost.http import UndecodableError

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = b"".join(b"%d lines of a page\n" % line for line in range(9_000))
ZSTD = {text: zstd(text) for text in (b"", b"a page", TEXT)}  # a process each: not for every example
LIMIT = 1 << 30


def scanned(data: bytes) -> tuple[list[WarcRecord], list[str]]:
    """Return the records of a file with their bodies, and the kinds of its problems."""
    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        scanner = WarcScanner(file.name, False, None, bodies=True)
        records, problems = [], []
        while (batch := scanner.next_batch()) is not None:
            records += batch[0]
            problems += [kind for kind, _, _ in batch[1]]
    return records, problems


def response(headers: list[tuple[str, str]], body: bytes) -> bytes:
    """Return the block of a response."""
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return b"HTTP/1.1 200 OK\r\n" + fields.encode("latin-1") + b"\r\n" + body


def undone(headers: list[tuple[str, str]], body: bytes, most: int = LIMIT) -> tuple[bytes, bool, bool]:
    """Return what the core reads of a body, whether there is more, and whether it breaks off."""
    with NamedTemporaryFile() as file:
        file.write(member(record(response(headers, body))))
        file.flush()
        stored = WarcBody.open(file.name, 0)
        assert stored is not None
        return stored.read_decoded(most)


def agree(headers: list[tuple[str, str]], body: bytes) -> None:
    """Compare what both make of a body."""
    records, problems = scanned(record(response(headers, body)))
    assert records[0].body is not None
    digest, size, is_broken = records[0].body
    content, is_cut, is_broken_too = undone(headers, body)
    try:
        model, model_is_broken = decode_payload(io.BytesIO(body), headers, LIMIT)
        with model:
            expected = model.read()
    except UndecodableError:
        if is_broken:
            return  # damaged, and in a coding that nobody undoes: both are true, and which is seen first depends
        assert (problems, content, is_cut) == (["bad-coding"], body, False)
        expected, model_is_broken = body, False
    if model_is_broken and problems == ["bad-coding"]:
        return
    if model_is_broken != is_broken and any("br" in value for _, value in headers):
        # Brotli has no checksum: damage is seen only where it makes no sense, by one reader before the other.
        is_alone = headers == [("Content-Encoding", "br")]
        assert not is_alone or content.startswith(expected) or expected.startswith(content)
        return
    assert (is_broken, is_broken_too, is_cut) == (model_is_broken, model_is_broken, False)
    assert ("cut-coding" in problems) == is_broken
    assert (digest, size) == (hashlib.sha1(content, usedforsecurity=False).digest(), len(content))
    if not is_broken:
        # Of what is damaged, both give what comes before the damage, and differ in the last bytes.
        assert content == expected


def chunked(body: bytes, size: int) -> bytes:
    """Return a body in chunks."""
    parts = [body[place : place + size] for place in range(0, len(body), size)]
    return b"".join(b"%x;x=y\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


_coded = st.sampled_from(["gzip", "x-gzip", "deflate", "raw", "br", "zstd", "chunked", "compress", "identity", "odd"])


def packed_in(coding: str, body: bytes, size: int) -> bytes:
    """Return a body in a coding, or as it is if this is none that is undone; `size` chooses among ways to do so."""
    packers: dict[str, Callable[[bytes], bytes]] = {
        "gzip": lambda body: gzip.compress(body, 1, mtime=0),
        "x-gzip": lambda body: gzip.compress(body, mtime=0) + gzip.compress(body, mtime=0),
        "deflate": lambda body: zlib.compress(body, 0 if size == 3 else 6),
        "raw": raw_deflate,
        "br": lambda body: bytes(brotli.compress(body, quality=1)),
        "zstd": lambda body: ZSTD.get(body, body),
        "chunked": lambda body: chunked(body, size),
    }
    return packers.get(coding, bytes)(body)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[list[tuple[str, str]], bytes]:
    """Draw a body in some codings, and headers that may lie about them."""
    body = draw(st.one_of(st.binary(max_size=60), st.sampled_from([TEXT, b"", b"<p>a page", b"\x78\x9c\x01\x02"])))
    named: list[str] = []
    for coding in draw(st.lists(_coded, max_size=3)):
        body = packed_in(coding, body, draw(st.sampled_from([3, 1000, 70_000, 1 << 20])))
        named.append("deflate" if coding == "raw" else coding)
    body += draw(st.sampled_from([b"", b"", b"", b"\0\0\0", b"\x1f\x8b", b"\x1f", b"junk"]))
    place = draw(st.integers(0, len(body)))
    match draw(st.sampled_from(["whole", "whole", "cut", "changed"])):
        case "cut":
            body = body[:place]
        case "changed" if place < len(body):
            body = body[:place] + bytes([draw(st.integers(0, 255))]) + body[place + 1 :]
    if draw(st.booleans()):
        named = draw(st.lists(_coded, max_size=5))  # a lie
    cut = named.index("chunked") if "chunked" in named else len(named)
    headers = [("Content-Encoding", ", ".join(named[:cut])), ("transfer-encoding", ",".join(named[cut:]))]
    return [header for header in headers if header[1]], body


@given(bodies())
def test_bodies_are_undone_as_in_python(found: tuple[list[tuple[str, str]], bytes]) -> None:
    """Whatever the codings, lies and damage: the same bytes, and the same word on whether they break off."""
    agree(*found)


def test_bits_behind_the_end_of_brotli_are_no_brotli() -> None:
    """A last byte with more in it than the end: the standard wants zeros there, and so do both."""
    packed = brotli.compress(b"a page", quality=1)
    padded = packed[:-1] + bytes([packed[-1] | 0x80])
    headers = [("Content-Encoding", "br")]
    assert (undone(headers, packed)[0], undone(headers, padded)[0]) == (b"a page", padded)
    agree(headers, padded)


@given(
    st.binary(min_size=1, max_size=300), st.sampled_from(["br", "deflate", "gzip", "zstd", "br;x=\xff", "deflate (2)"])
)
def test_noise_is_taken_as_in_python(body: bytes, coding: str) -> None:
    """Bytes that mean nothing pass, or break, in both alike."""
    agree([("Content-Encoding", coding)], body)


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
        ("br", brotli.compress(TEXT)),
        ("zstd", ZSTD[TEXT]),
        ("identity", TEXT),
    ],
)
def test_one_digest_for_one_page(coding: str, packed: bytes) -> None:
    """In any coding, in chunks or not, compressed once more by the archive or not: the same body."""
    expected = (hashlib.sha1(TEXT, usedforsecurity=False).digest(), len(TEXT), False)
    for body, transfer in ((packed, "identity"), (chunked(packed, 5_000), "chunked"), (packed, "chunked")):
        block = response([("Content-Encoding", coding), ("Transfer-Encoding", transfer)], body)
        for data in (record(block), member(record(block))):
            records, problems = scanned(data)
            assert ([each.body for each in records], problems) == ([expected], [])


def test_fields_of_heads_are_told_on_request_only() -> None:
    """Last-Modified and the type with its parameters come with bodies, and not without."""
    block = response(
        [("Content-Type", "Text/HTML; charset=x"), ("Last-Modified", "Mon, 10 Feb 2014 00:00:01 GMT")], b""
    )
    (found,), _ = scanned(record(block))
    assert (found.payload_type, found.last_modified) == ("Text/HTML; charset=x", "Mon, 10 Feb 2014 00:00:01 GMT")
    with NamedTemporaryFile() as file:
        file.write(record(block))
        file.flush()
        batch = WarcScanner(file.name).next_batch()
    assert batch is not None
    assert (batch[0][0].body, batch[0][0].payload_type, batch[0][0].last_modified) == (None, None, None)


def test_a_short_record_has_no_body() -> None:
    """The digest of half a page would be that of another one."""
    (found,), problems = scanned(record(length=999))
    assert (found.body, found.is_short, problems) == (None, True, ["short-block"])


def test_a_bomb_is_taken_as_it_is_stored() -> None:
    """What becomes longer than deflate can make it is not undone, and said so."""
    bomb = brotli.compress(bytes(64 << 20), quality=1)
    block = response([("Content-Encoding", "br")], bomb)
    (found,), problems = scanned(member(record(block)))
    assert found.body == (hashlib.sha1(bomb, usedforsecurity=False).digest(), len(bomb), False)
    assert problems == ["coding-too-long"]
    content, is_cut, _ = undone([("Content-Encoding", "br")], bomb, 1_000)
    assert (content, is_cut) == (bytes(1_000), True)


def test_a_bomb_that_comes_to_nothing_is_a_bomb() -> None:
    """What grows in one coding and vanishes in the next is not undone either: only how long that takes would tell."""
    frame = b"\x50\x2a\x4d\x18" + (64 << 20).to_bytes(4, "little") + bytes(64 << 20)  # to be skipped
    bomb = gzip.compress(gzip.compress(frame, 6, mtime=0), mtime=0)
    headers = [("Content-Encoding", "zstd, gzip, gzip")]
    (found,), problems = scanned(record(response(headers, bomb)))
    assert found.body == (hashlib.sha1(bomb, usedforsecurity=False).digest(), len(bomb), False)
    assert problems == ["coding-too-long"]
    assert undone(headers, bomb, 1_000)[:2] == (b"", True)


def test_a_batch_of_long_bodies_is_short(tmp_path: Path) -> None:
    """Whoever wants to stop a thread can do so between batches, so that none of them takes long."""
    page = member(record(response([], bytes(16 << 20))))
    (tmp_path / "a.warc.gz").write_bytes(page * 9)
    scanner = WarcScanner(tmp_path / "a.warc.gz", False, None, bodies=True)
    counts = []
    while (batch := scanner.next_batch()) is not None:
        counts.append(len(batch[0]))
    assert (sum(counts), max(counts)) == (9, 4)


def test_only_as_much_is_read_as_wanted() -> None:
    """The first bytes, and whether there are more: none if that was all."""
    headers = [("Transfer-Encoding", "chunked")]
    assert undone(headers, chunked(b"a page", 2), 3) == (b"a p", True, False)
    assert undone(headers, chunked(b"a page", 2), 6) == (b"a page", False, False)
    assert undone([("Content-Encoding", "compress")], b"\x1f\x9d\0\0", 2) == (b"\x1f\x9d", True, False)


def test_types_that_are_not_wanted_are_counted(tmp_path: Path) -> None:
    """By type, or as others: a file cannot make the count grow with its words."""
    data = record(kind="request") * 2 + record(kind="made-up") + record(kind="x") + record()
    (tmp_path / "a.warc").write_bytes(data)
    scanner = WarcScanner(tmp_path / "a.warc", False, ["response"], bodies=True)
    while scanner.next_batch() is not None:
        pass
    assert scanner.skipped_by_type() == {"request": 2, "other": 2}
