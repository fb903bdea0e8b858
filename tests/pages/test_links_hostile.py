"""Pages that were made to do harm: every one is read in time, within its limits, and what is left out is counted."""

import gzip
import time
import zlib

import pytest

from unlost import _core
from unlost.pages.links import find_links, links

BASE = "http://h.example/d/p.html"
MB = 1 << 20

# Each is a megabyte or two of what some parser somewhere reads in quadratic time, or on the stack.
TRAPS: dict[str, tuple[bytes, str]] = {
    "open brackets": (b"<" * MB, "text/html"),
    "open elements": (b"<p>" * (MB // 2), "text/html"),
    "open elements of many names": (b"".join(b"<x%d>" % number for number in range(MB // 8)), "text/html"),
    "stray ends": (b"<a>" * (MB // 6) + b"</b>" * (MB // 6), "text/html"),
    "attributes": (b"<a " + b" href=x" * (MB // 7) + b">", "text/html"),
    "attributes of many names": (
        b"<a " + b"".join(b" x%d=y" % number for number in range(MB // 8)) + b">",
        "text/html",
    ),
    "bases": (b"<base href=/x>" * (MB // 14), "text/html"),
    "candidates": (b"<img srcset='" + b"a (,b " * (MB // 6) + b"'>", "text/html"),
    "commas": (b"<img srcset='" + b"," * MB + b"'>", "text/html"),
    "entities": (b"<a href='" + b"&#x" * (MB // 3) + b"'>", "text/html"),
    "comments": (b"<!--" * (MB // 4), "text/html"),
    "fallbacks": (b"<noscript>" * (MB // 10), "text/html"),
    "drawings": (b"<svg><title>" * (MB // 12), "text/html"),
    "style attribute": (b"<p style='" + b"(" * MB + b"'>", "text/html"),
    "zeros": (bytes(MB), "text/html"),
    "no UTF-8": (b"<a href=" + b"\xff" * MB, "text/html; charset=utf-8"),
    "labels": (b"<a href=http://" + b"a." * (MB // 2) + b">", "text/html"),
    "letters in a host": (b"<a href=http://" + "ä".encode() * (MB // 2) + b">", "text/html"),
    "blocks": (b"{" * MB, "text/css"),
    "functions": (b"a(" * MB, "text/css"),
    "blocks and names": (b"{@namespace " * (MB // 12), "text/css"),
    "bad addresses": (b"url(a'" * (MB // 6), "text/css"),
    "strings": (b"'\n" * MB, "text/css"),
    "elements in XML": (b"<urlset>" + b"<url>" * (MB // 5), "text/xml"),
    "brackets in XML": (b"<urlset>" + b"<" * MB, "text/xml"),
    "sections in XML": (b"<urlset>" + b"<![CDATA[" * (MB // 9), "text/xml"),
    "quotes in XML": (b"<svg " + b"a='" * (MB // 3), "image/svg+xml"),
    "document types": (b"<svg>" + b"<!DOCTYPE [" * (MB // 11), "image/svg+xml"),
    "styles in XML": (b"<svg>" + b"<style>" * (MB // 7), "image/svg+xml"),
    "entities in XML": (b"<urlset><loc>" + b"&" * MB, "text/xml"),
    "descriptions": (b"<rss>" + b"<description>&lt;p" * (MB // 18), "text/xml"),
}


@pytest.mark.parametrize("name", TRAPS)
def test_traps(name: str) -> None:
    """A trap of a megabyte or two takes well under a second; what is quadratic would take hours."""
    body, mime = TRAPS[name]
    before = time.process_time()
    find_links(body, mime, BASE)
    assert time.process_time() - before < 5


def test_what_follows_a_trap_is_found() -> None:
    """After more open elements than there is memory for, the page goes on."""
    body = b"<a href=first>" + b"<p>" * 2_000_000 + b"<a href=last>"
    assert [link.uri for link in links(body, "text/html", BASE)] == [
        "http://h.example/d/first",
        "http://h.example/d/last",
    ]


def test_deep_styles() -> None:
    """Blocks inside each other are looked into to a depth that nobody reaches; what follows is found at any depth."""
    assert len(links(b"a{" * 90 + b"b:url(x)", "text/css", BASE)) == 1
    assert [
        link.uri[-1] for link in links(b"a{" * 500 + b"b:url(x)" + b"}" * 500 + b"c{d:url(y)}", "text/css", BASE)
    ] == ["y"]


def test_many_links() -> None:
    """There are never more than 100,000 links, and the others are counted."""
    found = find_links(b"".join(b"<a href=%d>" % number for number in range(150_000)), "text/html", BASE)
    assert len(found.links) == _core.MAX_PAGE_LINKS == 100_000
    assert (found.left_out, found.cut) == (50_000, False)


def test_long_addresses() -> None:
    """An address of more than 8,000 bytes is left out, and counted."""
    rest = 8_000 - len("http://h.example/d/")
    found = find_links(b"<a href=%s><a href=%s>" % (b"x" * rest, b"y" * (rest + 1)), "text/html", BASE)
    assert [len(link.uri) for link in found.links] == [8_000]
    assert found.left_out == 1


def test_a_long_base() -> None:
    """A base that makes every short address a long one does not fill the memory."""
    body = b"<base href=/%s/>" % (b"x" * 7_900) + b"".join(b"<a href=%d>" % number for number in range(100_000))
    found = find_links(body, "text/html", BASE)
    assert sum(len(link.uri) for link in found.links) <= 64 * MB
    assert len(found.links) + found.left_out == 100_000


def test_long_bodies() -> None:
    """Of a body, 32 MiB are read."""
    filler = b" " * (_core.MAX_PAGE_BYTES - len(b"<a href=x>"))
    found = find_links(b"<a href=x>" + filler + b"<a href=y>", "text/html", BASE)
    assert [link.uri[-1] for link in found.links] == ["x"]
    assert found.cut


def test_bombs() -> None:
    """Of a gzipped body, 64 MiB are unpacked, once."""
    packer = zlib.compressobj(wbits=31)
    parts = [packer.compress(b"<urlset><loc>http://h.example/x</loc>")]
    parts += [packer.compress(bytes(MB)) for _ in range(70)]
    body = b"".join(parts) + packer.compress(b"<loc>http://h.example/y</loc>") + packer.flush()
    found = find_links(body, None, "http://h.example/sitemap.xml.gz")
    assert [link.uri[-1] for link in found.links] == ["x"]
    assert found.cut
    assert find_links(gzip.compress(body), None, BASE).links == []


def test_damaged_gzip() -> None:
    """Of a gzipped body that is damaged, what comes before the damage counts, and it is said that there was more."""
    body = gzip.compress(b"<urlset><loc>http://h.example/x</loc>" + bytes(range(256)) * 200)
    found = find_links(body[:-50], None, "http://h.example/sitemap.xml.gz")
    assert [link.uri[-1] for link in found.links] == ["x"]
    assert found.cut


def test_entities_are_not_expanded() -> None:
    """A document type that declares a billion laughs declares nothing."""
    laughs = b'<!DOCTYPE urlset [<!ENTITY a "http://h.example/x"><!ENTITY b "&a;&a;&a;">]>'
    found = links(
        b'<?xml version="1.0"?>' + laughs + b"<urlset><loc>http://h.example/&b;</loc></urlset>", "text/xml", BASE
    )
    assert [link.uri for link in found] == ["http://h.example/&b;"]
