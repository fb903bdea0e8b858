"""The core decodes bodies as the Python code does, for any headers and any damage."""

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
ZSTD = {text: zstd(text) for text in (b"", b"a page", TEXT)}  # each call starts a process
LIMIT = 1 << 30


def scan_bodies(data: bytes) -> tuple[list[WarcRecord], list[str]]:
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


def read_decoded(headers: list[tuple[str, str]], body: bytes, limit: int = LIMIT) -> tuple[bytes, bool, bool]:
    """Return the decoded body, whether it was cut at the limit, and whether it is damaged."""
    with NamedTemporaryFile() as file:
        file.write(member(record(response(headers, body))))
        file.flush()
        stored = WarcBody.open(file.name, 0)
        assert stored is not None
        return stored.read_decoded(limit)


def assert_decoders_agree(headers: list[tuple[str, str]], body: bytes) -> None:
    """Compare the bodies decoded by the core and by Python."""
    records, problems = scan_bodies(record(response(headers, body)))
    assert records[0].body is not None
    digest, size, is_broken = records[0].body
    content, is_cut, is_read_broken = read_decoded(headers, body)
    try:
        model, model_is_broken = decode_payload(io.BytesIO(body), headers, LIMIT)
        with model:
            expected = model.read()
    except UndecodableError:
        if is_broken:
            return  # damaged, and in an unsupported coding; either may be reported
        assert (problems, content, is_cut) == (["bad-coding"], body, False)
        expected, model_is_broken = body, False
    if model_is_broken and problems == ["bad-coding"]:
        return
    if model_is_broken != is_broken and any("br" in value for _, value in headers):
        # Brotli has no checksum: the decoders may detect damage at different bytes.
        is_alone = headers == [("Content-Encoding", "br")]
        assert not is_alone or content.startswith(expected) or expected.startswith(content)
        return
    assert (is_broken, is_read_broken, is_cut) == (model_is_broken, model_is_broken, False)
    assert ("cut-coding" in problems) == is_broken
    assert (digest, size) == (hashlib.sha1(content, usedforsecurity=False).digest(), len(content))
    if not is_broken:
        # For damaged bodies, both return the bytes before the damage but may differ in the last ones.
        assert content == expected


def encode_chunks(body: bytes, size: int) -> bytes:
    """Return a body in chunks."""
    chunks = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x;x=y\r\n%b\r\n" % (len(part), part) for part in chunks) + b"0\r\n\r\n"


_coded = st.sampled_from(["gzip", "x-gzip", "deflate", "raw", "br", "zstd", "chunked", "compress", "identity", "odd"])


def encode(coding: str, body: bytes, size: int) -> bytes:
    """Return a body in a coding, unchanged if the coding is unsupported; `size` selects a variant."""
    encoders: dict[str, Callable[[bytes], bytes]] = {
        "gzip": lambda body: gzip.compress(body, 1, mtime=0),
        "x-gzip": lambda body: gzip.compress(body, mtime=0) + gzip.compress(body, mtime=0),
        "deflate": lambda body: zlib.compress(body, 0 if size == 3 else 6),
        "raw": raw_deflate,
        "br": lambda body: bytes(brotli.compress(body, quality=1)),
        "zstd": lambda body: ZSTD.get(body, body),
        "chunked": lambda body: encode_chunks(body, size),
    }
    return encoders.get(coding, bytes)(body)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[list[tuple[str, str]], bytes]:
    """Draw a body in some codings, and headers that may not match it."""
    body = draw(st.one_of(st.binary(max_size=60), st.sampled_from([TEXT, b"", b"<p>a page", b"\x78\x9c\x01\x02"])))
    named: list[str] = []
    for coding in draw(st.lists(_coded, max_size=3)):
        body = encode(coding, body, draw(st.sampled_from([3, 1000, 70_000, 1 << 20])))
        named.append("deflate" if coding == "raw" else coding)
    body += draw(st.sampled_from([b"", b"", b"", b"\0\0\0", b"\x1f\x8b", b"\x1f", b"junk"]))
    place = draw(st.integers(0, len(body)))
    match draw(st.sampled_from(["whole", "whole", "cut", "changed"])):
        case "cut":
            body = body[:place]
        case "changed" if place < len(body):
            body = body[:place] + bytes([draw(st.integers(0, 255))]) + body[place + 1 :]
    if draw(st.booleans()):
        named = draw(st.lists(_coded, max_size=5))  # headers that do not match
    cut = named.index("chunked") if "chunked" in named else len(named)
    headers = [("Content-Encoding", ", ".join(named[:cut])), ("transfer-encoding", ",".join(named[cut:]))]
    return [header for header in headers if header[1]], body


@given(bodies())
def test_decoded_body_agrees_with_python(drawn: tuple[list[tuple[str, str]], bytes]) -> None:
    """For any codings, headers and damage, both return the same bytes and damage status."""
    assert_decoders_agree(*drawn)


def test_brotli_with_nonzero_padding_bits_is_not_decoded() -> None:
    """The standard requires zero bits after the end."""
    compressed = brotli.compress(b"a page", quality=1)
    padded = compressed[:-1] + bytes([compressed[-1] | 0x80])
    headers = [("Content-Encoding", "br")]
    assert (read_decoded(headers, compressed)[0], read_decoded(headers, padded)[0]) == (b"a page", padded)
    assert_decoders_agree(headers, padded)


@given(
    st.binary(min_size=1, max_size=300), st.sampled_from(["br", "deflate", "gzip", "zstd", "br;x=\xff", "deflate (2)"])
)
def test_invalid_coded_body_agrees_with_python(body: bytes, coding: str) -> None:
    """Random bytes in any declared coding yield equal results."""
    assert_decoders_agree([("Content-Encoding", coding)], body)


@pytest.mark.parametrize(
    ("coding", "compressed"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
        ("br", brotli.compress(TEXT)),
        ("zstd", ZSTD[TEXT]),
        ("identity", TEXT),
    ],
)
def test_body_digest_is_independent_of_coding(coding: str, compressed: bytes) -> None:
    """Content codings, chunks and compression of the WARC do not change the body's digest."""
    expected = (hashlib.sha1(TEXT, usedforsecurity=False).digest(), len(TEXT), False)
    for body, transfer in (
        (compressed, "identity"),
        (encode_chunks(compressed, 5_000), "chunked"),
        (compressed, "chunked"),
    ):
        block = response([("Content-Encoding", coding), ("Transfer-Encoding", transfer)], body)
        for data in (record(block), member(record(block))):
            records, problems = scan_bodies(data)
            assert ([each.body for each in records], problems) == ([expected], [])


def test_http_fields_are_returned_only_with_bodies() -> None:
    """Last-Modified and the full media type are returned only with `bodies=True`."""
    block = response(
        [("Content-Type", "Text/HTML; charset=x"), ("Last-Modified", "Mon, 10 Feb 2014 00:00:01 GMT")], b""
    )
    (found_record,), _ = scan_bodies(record(block))
    assert (found_record.payload_type, found_record.last_modified) == (
        "Text/HTML; charset=x",
        "Mon, 10 Feb 2014 00:00:01 GMT",
    )
    with NamedTemporaryFile() as file:
        file.write(record(block))
        file.flush()
        batch = WarcScanner(file.name).next_batch()
    assert batch is not None
    assert (batch[0][0].body, batch[0][0].payload_type, batch[0][0].last_modified) == (None, None, None)


def test_truncated_record_has_no_body_digest() -> None:
    """The digest of a truncated page would be wrong."""
    (found_record,), problems = scan_bodies(record(length=999))
    assert (found_record.body, found_record.is_short, problems) == (None, True, ["short-block"])


def test_decompression_bomb_is_returned_undecoded() -> None:
    """A body that exceeds deflate's maximum ratio stays encoded and is counted."""
    bomb = brotli.compress(bytes(64 << 20), quality=1)
    block = response([("Content-Encoding", "br")], bomb)
    (found_record,), problems = scan_bodies(member(record(block)))
    assert found_record.body == (hashlib.sha1(bomb, usedforsecurity=False).digest(), len(bomb), False)
    assert problems == ["coding-too-long"]
    content, is_cut, _ = read_decoded([("Content-Encoding", "br")], bomb, 1_000)
    assert (content, is_cut) == (bytes(1_000), True)


def test_bomb_in_intermediate_coding_is_returned_undecoded() -> None:
    """A body that grows in one coding and shrinks in the next is counted, too."""
    frame = b"\x50\x2a\x4d\x18" + (64 << 20).to_bytes(4, "little") + bytes(64 << 20)  # a skippable frame
    bomb = gzip.compress(gzip.compress(frame, 6, mtime=0), mtime=0)
    headers = [("Content-Encoding", "zstd, gzip, gzip")]
    (found_record,), problems = scan_bodies(record(response(headers, bomb)))
    assert found_record.body == (hashlib.sha1(bomb, usedforsecurity=False).digest(), len(bomb), False)
    assert problems == ["coding-too-long"]
    assert read_decoded(headers, bomb, 1_000)[:2] == (b"", True)


def test_scan_batch_is_bounded_by_body_size(tmp_path: Path) -> None:
    """Scans can be interrupted between batches, so a batch must not take long."""
    page = member(record(response([], bytes(16 << 20))))
    (tmp_path / "a.warc.gz").write_bytes(page * 9)
    scanner = WarcScanner(tmp_path / "a.warc.gz", False, None, bodies=True)
    counts = []
    while (batch := scanner.next_batch()) is not None:
        counts.append(len(batch[0]))
    assert (sum(counts), max(counts)) == (9, 4)


def test_body_read_with_limit_reports_remaining_bytes() -> None:
    """At most `limit` bytes are returned, with whether more follow."""
    headers = [("Transfer-Encoding", "chunked")]
    assert read_decoded(headers, encode_chunks(b"a page", 2), 3) == (b"a p", True, False)
    assert read_decoded(headers, encode_chunks(b"a page", 2), 6) == (b"a page", False, False)
    assert read_decoded([("Content-Encoding", "compress")], b"\x1f\x9d\0\0", 2) == (b"\x1f\x9d", True, False)


def test_skipped_record_types_are_counted(tmp_path: Path) -> None:
    """Unknown types are counted together, so that the table cannot grow without bound."""
    data = record(kind="request") * 2 + record(kind="made-up") + record(kind="x") + record()
    (tmp_path / "a.warc").write_bytes(data)
    scanner = WarcScanner(tmp_path / "a.warc", False, ["response"], bodies=True)
    while scanner.next_batch() is not None:
        pass
    assert scanner.skipped_by_type() == {"request": 2, "other": 2}
