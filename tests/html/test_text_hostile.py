"""Text of hostile bodies is extracted in bounded time."""

import time
import zlib

import pytest

from tests.html.hostile_pages import HOSTILE_PAGES, MB
from unlost import _core
from unlost.html import extract_text, text_resemblance

BASE = "http://h.example/d/p.html"

MORE_HOSTILE_PAGES: dict[str, tuple[bytes, str]] = {
    "hidden elements": (b"<video>" * (MB // 7), "text/html"),
    "hidden elements of two names": (b"<video><canvas>" * (MB // 15) + b"</video>" * (MB // 8), "text/html"),
    "hidden elements that end": (b"x<video>" * (MB // 16) + b"</video>" * (MB // 16), "text/html"),
    "ends of elements that did not begin": (b"<canvas>" * (MB // 8) + b"</video>" * (MB // 8), "text/html"),
    "templates": (b"<template>" * (MB // 10) + b"x" + b"</template>" * (MB // 10), "text/html"),
    "comments that almost end": (b"<!--" + b"--" * (MB // 2) + b"->" * (MB // 2), "text/html"),
    "brackets in a comment": (b"<!--" + b">" * MB, "text/html"),
    "comments without text": (b"<!--x-->" * (MB // 8), "text/html"),
    "references": (b"&" * MB, "text/html"),
    "references without end": (b"&#x" + b"1" * MB, "text/html"),
    "names of references": (b"&CounterClockwiseContourIntegra" * (MB // 31), "text/html"),
    "quotes": (b"<a b='" * (MB // 6), "text/html"),
    "tags of one letter": (b"a<b" * (MB // 3), "text/html"),
    "scripts": (b"<script><!--<script>" * (MB // 20), "text/html"),
    "drawings and styles": (b"<svg><style>" * (MB // 12), "text/html"),
    "sections": (b"<svg><![CDATA[" * (MB // 14), "text/html"),
    "white space": (b" \n" * MB, "text/html"),
    "scripts in XHTML": (b"<html><script>" * (MB // 14), "application/xhtml+xml"),
    "pages in feeds": (b"<feed>" + b"<content type='xhtml'>" * (MB // 22), "text/xml"),
    "texts of feeds": (b"<rss>" + b"<description>&lt;p</description>" * (MB // 32), "text/xml"),
    "zeros in text": (b"\xfe\xff" + bytes(MB), "text/plain"),
}


@pytest.mark.parametrize("name", [*HOSTILE_PAGES, *MORE_HOSTILE_PAGES])
def test_text_of_hostile_page_is_extracted_in_linear_time(name: str) -> None:
    """One or two megabytes take seconds at most; quadratic parsing would take hours."""
    body, mime = (HOSTILE_PAGES | MORE_HOSTILE_PAGES)[name]
    before = time.process_time()
    read = extract_text(body, mime, BASE)
    assert time.process_time() - before < 5
    assert read is None or not read.cut


@pytest.mark.parametrize(
    "prefix",
    [
        b"<p>" * 2_000_000,
        b"<" * MB + b">",
        b"<video>" * 100_000,
        b"</b>" * 100_000,
        b"<div><canvas></div>" * 10_000,
        b"<b " + b"a " * 3_000_000 + b">",
        (b"<b><i><b " + b"a " * 3_000_000 + b">") * 2,
    ],
    ids=lambda prefix: prefix[:10].decode(),
)
def test_text_after_hostile_markup_is_extracted(prefix: bytes) -> None:
    """Parsing continues after millions of open elements."""
    read = extract_text(b"first " + prefix + b"<p>last", "text/html", BASE)
    assert read is not None
    assert not read.cut
    assert read.text.startswith("first")
    assert read.text.endswith("\nlast")


def test_text_of_32_mib_page_is_not_cut() -> None:
    """A comment, tag or reference of 32 MiB is read to its end."""
    for start in (b"a<!--", b"a<b title='", b"a<script>", b"a&#"):
        body = start + b"1" * (_core.MAX_PAGE_BYTES - len(start))
        read = extract_text(body, "text/html", BASE)
        assert read is not None
        assert read.text[0] == "a"
        assert not read.cut


def test_text_of_decompression_bomb_is_cut() -> None:
    """At most 64 MiB are decompressed, and the text is marked as cut."""
    compressor = zlib.compressobj(wbits=31)
    body = b"".join(compressor.compress(b"a " * (MB // 2)) for _ in range(70)) + compressor.flush()
    read = extract_text(body, None, BASE)
    assert read is not None
    assert read.cut
    assert len(read.text) == _core.MAX_UNPACKED_PAGE_BYTES


@pytest.mark.parametrize("size", [1, 10, 100_000, 10**9])
def test_resemblance_with_large_shingles_takes_bounded_time(size: int) -> None:
    """The time does not depend on the shingle size."""
    first = "word " * 500_000
    second = first + "Ä" * MB + "日" * MB
    before = time.process_time()
    assert 0.0 <= text_resemblance(first, second, size) <= 1.0
    assert time.process_time() - before < 5
