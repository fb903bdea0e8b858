"""Bodies that were made to do harm: the text of every one is read in time, and what follows the harm is found."""

import time
import zlib

import pytest

from tests.html.traps import MB, TRAPS
from unlost import _core
from unlost.html import extract_text, text_resemblance

BASE = "http://h.example/d/p.html"

MORE: dict[str, tuple[bytes, str]] = {
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


@pytest.mark.parametrize("name", [*TRAPS, *MORE])
def test_traps(name: str) -> None:
    """A trap of a megabyte or two takes well under a second; what is quadratic would take hours."""
    body, mime = (TRAPS | MORE)[name]
    before = time.process_time()
    read = extract_text(body, mime, BASE)
    assert time.process_time() - before < 5
    assert read is None or not read.cut


@pytest.mark.parametrize(
    "harm",
    [
        b"<p>" * 2_000_000,
        b"<" * MB + b">",
        b"<video>" * 100_000,
        b"</b>" * 100_000,
        b"<div><canvas></div>" * 10_000,
        b"<b " + b"a " * 3_000_000 + b">",
        (b"<b><i><b " + b"a " * 3_000_000 + b">") * 2,
    ],
    ids=lambda harm: harm[:10].decode(),
)
def test_what_follows_a_trap_is_found(harm: bytes) -> None:
    """After more open elements than anybody counts, the page goes on."""
    read = extract_text(b"first " + harm + b"<p>last", "text/html", BASE)
    assert read is not None
    assert not read.cut
    assert read.text.startswith("first")
    assert read.text.endswith("\nlast")


def test_the_longest_pages() -> None:
    """A page of 32 MiB that is one comment, tag or reference is read to its end, without anything cut."""
    for start in (b"a<!--", b"a<b title='", b"a<script>", b"a&#"):
        body = start + b"1" * (_core.MAX_PAGE_BYTES - len(start))
        read = extract_text(body, "text/html", BASE)
        assert read is not None
        assert read.text[0] == "a"
        assert not read.cut


def test_bombs() -> None:
    """Of a gzipped body, 64 MiB are unpacked, and it is said that there was more."""
    packer = zlib.compressobj(wbits=31)
    body = b"".join(packer.compress(b"a " * (MB // 2)) for _ in range(70)) + packer.flush()
    read = extract_text(body, None, BASE)
    assert read is not None
    assert read.cut
    assert len(read.text) == _core.MAX_UNPACKED_PAGE_BYTES


@pytest.mark.parametrize("size", [1, 10, 100_000, 10**9])
def test_long_shingles(size: int) -> None:
    """However long shingles are, comparing takes no longer."""
    first = "word " * 500_000
    second = first + "Ä" * MB + "日" * MB
    before = time.process_time()
    assert 0.0 <= text_resemblance(first, second, size) <= 1.0
    assert time.process_time() - before < 5
