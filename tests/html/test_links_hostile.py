"""Links of hostile pages are extracted in bounded time and memory, and omissions are counted."""

import gzip
import time
import zlib

import pytest

from tests.html.hostile_pages import HOSTILE_PAGES, MB
from unlost import _core
from unlost.html import extract_links, scan_links

BASE = "http://h.example/d/p.html"


@pytest.mark.parametrize("name", HOSTILE_PAGES)
def test_links_of_hostile_page_are_extracted_in_linear_time(name: str) -> None:
    """One or two megabytes take seconds at most; quadratic parsing would take hours."""
    body, mime = HOSTILE_PAGES[name]
    before = time.process_time()
    scan_links(body, mime, BASE)
    assert time.process_time() - before < 5


def test_links_after_many_open_elements_are_extracted() -> None:
    """Parsing continues after millions of open elements."""
    body = b"<a href=first>" + b"<p>" * 2_000_000 + b"<a href=last>"
    assert [link.uri for link in extract_links(body, "text/html", BASE)] == [
        "http://h.example/d/first",
        "http://h.example/d/last",
    ]


def test_deeply_nested_css_blocks_are_limited() -> None:
    """Very deep blocks are skipped, and later rules are parsed."""
    assert len(extract_links(b"a{" * 90 + b"b:url(x)", "text/css", BASE)) == 1
    assert [
        link.uri[-1]
        for link in extract_links(b"a{" * 500 + b"b:url(x)" + b"}" * 500 + b"c{d:url(y)}", "text/css", BASE)
    ] == ["y"]


def test_number_of_links_is_limited() -> None:
    """At most 100,000 links are returned, and the others are counted."""
    page_links = scan_links(b"".join(b"<a href=%d>" % number for number in range(150_000)), "text/html", BASE)
    assert len(page_links.links) == _core.MAX_PAGE_LINKS == 100_000
    assert (page_links.omitted, page_links.cut) == (50_000, False)


def test_overlong_url_is_omitted() -> None:
    """A URL above 8,000 bytes is omitted and counted."""
    rest = 8_000 - len("http://h.example/d/")
    page_links = scan_links(b"<a href=%s><a href=%s>" % (b"x" * rest, b"y" * (rest + 1)), "text/html", BASE)
    assert [len(link.uri) for link in page_links.links] == [8_000]
    assert page_links.omitted == 1


def test_total_size_of_urls_is_limited() -> None:
    """A long base makes short links long; the total remains bounded."""
    body = b"<base href=/%s/>" % (b"x" * 7_900) + b"".join(b"<a href=%d>" % number for number in range(100_000))
    page_links = scan_links(body, "text/html", BASE)
    assert sum(len(link.uri) for link in page_links.links) <= 64 * MB
    assert len(page_links.links) + page_links.omitted == 100_000


def test_body_beyond_size_limit_is_cut() -> None:
    """At most 32 MiB of a body are read."""
    filler = b" " * (_core.MAX_PAGE_BYTES - len(b"<a href=x>"))
    page_links = scan_links(b"<a href=x>" + filler + b"<a href=y>", "text/html", BASE)
    assert [link.uri[-1] for link in page_links.links] == ["x"]
    assert page_links.cut


def test_decompression_bomb_is_cut() -> None:
    """At most 64 MiB are decompressed, and nested gzip is not."""
    compressor = zlib.compressobj(wbits=31)
    parts = [compressor.compress(b"<urlset><loc>http://h.example/x</loc>")]
    parts += [compressor.compress(bytes(MB)) for _ in range(70)]
    body = b"".join(parts) + compressor.compress(b"<loc>http://h.example/y</loc>") + compressor.flush()
    page_links = scan_links(body, None, "http://h.example/sitemap.xml.gz")
    assert [link.uri[-1] for link in page_links.links] == ["x"]
    assert page_links.cut
    assert scan_links(gzip.compress(body), None, BASE).links == []


def test_links_before_gzip_damage_are_extracted() -> None:
    """The result is marked as cut."""
    body = gzip.compress(b"<urlset><loc>http://h.example/x</loc>" + bytes(range(256)) * 200)
    page_links = scan_links(body[:-50], None, "http://h.example/sitemap.xml.gz")
    assert [link.uri[-1] for link in page_links.links] == ["x"]
    assert page_links.cut


def test_xml_entities_are_not_expanded() -> None:
    """Entity declarations are ignored."""
    laughs = b'<!DOCTYPE urlset [<!ENTITY a "http://h.example/x"><!ENTITY b "&a;&a;&a;">]>'
    page_links = extract_links(
        b'<?xml version="1.0"?>' + laughs + b"<urlset><loc>http://h.example/&b;</loc></urlset>", "text/xml", BASE
    )
    assert [link.uri for link in page_links] == ["http://h.example/&b;"]
