"""Small archive files with known bytes, and strategies for random ones, valid and damaged."""

import gzip
import zlib
from pathlib import Path

from hypothesis import strategies as st

from unlost._core import WarcRecord, WarcScanner
from unlost.capture import Capture
from unlost.problems import Problems
from unlost.warc import read_warc_captures

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=utf-8\r\n\r\n<p>hello</p>"


def record(
    block: bytes = PAGE,
    *,
    number: int = 0,
    kind: str = "response",
    uri: str = "http://example.com/{}",
    extra: bytes = b"",
    length: int | None = None,
    date: str = "2014-02-10T00:00:01Z",
) -> bytes:
    """Return a plain WARC record. `length` overrides the true Content-Length."""
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri.format(number)}\r\nWARC-Date: {date}"
    size = len(block) if length is None else length
    return head.encode() + b"\r\n" + extra + b"Content-Length: %d\r\n\r\n" % size + block + b"\r\n\r\n"


def member(text: bytes) -> bytes:
    """Return a text as a gzip member."""
    return gzip.compress(text, mtime=0)


def scan(path: Path) -> tuple[list[WarcRecord], list[tuple[str, int]]]:
    """Return the records of a file, and the kinds and offsets of its problems."""
    scanner = WarcScanner(path)
    records, problems = [], []
    while (batch := scanner.next_batch()) is not None:
        records += batch[0]
        problems += [(kind, offset) for kind, offset, _ in batch[1]]
    return records, problems


def captures(path: Path, data: bytes | None = None) -> tuple[list[Capture], dict[str, int]]:
    """Return the captures of a file and the problem counts; write the file first if `data` is given."""
    if data is not None:
        path.write_bytes(data)
    problems = Problems()
    return list(read_warc_captures(path, problems)), problems.counts


def pages(captures: list[Capture]) -> list[int]:
    """Return the page numbers of captures, as `record` writes them into URLs."""
    return [int(capture.uri.rpartition("/")[2]) for capture in captures]


_lines = st.sampled_from([b"\r\n", b"\r\n", b"\n"])
_unusual_fields = st.sampled_from(
    [b"no colon", b"WARC-Type: revisit", b"X: \xff\x00", b" folded", b"WARC-Target-URI: <http://b.com/\xfc x>", b":",
     b"WARC-Payload-Digest: sha1:ABC", b"WARC-Block-Digest: sha1:DEF", b"Content-Type: A/B;c", b"Content-Length: 3",
     b"Content-Length: +3", b"WARC-Target-URI: dns:a.com", b"WARC-Target-URI: ", b"\x1f\x8b\x08"]
)  # fmt: skip
_blocks = st.one_of(
    st.sampled_from([PAGE, PAGE.replace(b"\r\n", b"\n"), b"", b"HTTP/1.1", b"HTTP/1.1 x\n\n", b"\nWARC/1.0\n\nWARC/"]),
    st.binary(max_size=40),
)
_kinds = st.sampled_from([b"response", b"Response", b"revisit", b"resource", b"request", b"warcinfo", b"metadata", b""])


@st.composite
def record_texts(draw: st.DrawFn) -> bytes:
    """Draw a record with arbitrary header fields."""
    end, block = draw(_lines), draw(_blocks)
    size = max(0, len(block) + draw(st.sampled_from([0, 0, 0, 0, 0, -1, 1, 5, 200])))
    fields = [b"WARC-Type: " + draw(_kinds), b"WARC-Target-URI: http://a.com/", b"WARC-Date: 2014"]
    fields = fields[: draw(st.integers(1, 3))] + draw(st.lists(_unusual_fields, max_size=3))
    fields += draw(st.sampled_from([[b"Content-Length: %d" % size]] * 9 + [[]]))
    tail = draw(st.sampled_from([end + end, end + end, end + end, end, b"", b"junk" + end]))
    return b"WARC/1.1" + end + end.join(draw(st.permutations(fields))) + end + end + block + tail


_garbage = st.one_of(
    st.just(b""), st.just(b""), st.binary(max_size=20), st.just(b"\0" * 30), st.just(b"\x1f\x8b\x08\0\0\0\0\0\0\3abc")
)


def _gzip_member(text: bytes, level: int) -> bytes:
    """Return a gzip member; at level 0 the text is stored uncompressed."""
    compressor = zlib.compressobj(level, zlib.DEFLATED, 31)
    return compressor.compress(text) + compressor.flush()


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Draw a file of records, plain or in gzip members with any boundaries, perhaps with garbage between them."""
    texts = draw(st.lists(record_texts(), max_size=4))
    if draw(st.booleans()):
        return b"".join(text + draw(_garbage) for text in texts)
    if draw(st.booleans()):
        whole = b"".join(texts)
        cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=3)))
        texts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    return b"".join(_gzip_member(text, draw(st.sampled_from([0, 6]))) + draw(_garbage) for text in texts)


@st.composite
def damaged_files(draw: st.DrawFn) -> bytes:
    """Draw a file that is truncated or has one changed byte."""
    data = draw(files())
    offset = draw(st.integers(0, len(data)))
    if draw(st.booleans()) or offset == len(data):
        return data[:offset]
    return data[:offset] + bytes([draw(st.integers(0, 255))]) + data[offset + 1 :]
