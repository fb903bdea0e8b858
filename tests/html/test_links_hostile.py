"""Pages that were made to do harm: every one is read in time, within its limits, and what is left out is counted."""

import gzip
import time
import zlib

import pytest

from tests.html.traps import MB, TRAPS
from unlost import _core
from unlost.html import extract_links, scan_links

BASE = "http://h.example/d/p.html"


@pytest.mark.parametrize("name", TRAPS)
def test_traps(name: str) -> None:
    """A trap of a megabyte or two takes well under a second; what is quadratic would take hours."""
    body, mime = TRAPS[name]
    before = time.process_time()
    scan_links(body, mime, BASE)
    assert time.process_time() - before < 5


def test_what_follows_a_trap_is_found() -> None:
    """After more open elements than there is memory for, the page goes on."""
    body = b"<a href=first>" + b"<p>" * 2_000_000 + b"<a href=last>"
    assert [link.uri for link in extract_links(body, "text/html", BASE)] == [
        "http://h.example/d/first",
        "http://h.example/d/last",
    ]


def test_deep_styles() -> None:
    """Blocks inside each other are looked into to a depth that nobody reaches; what follows is found at any depth."""
    assert len(extract_links(b"a{" * 90 + b"b:url(x)", "text/css", BASE)) == 1
    assert [
        link.uri[-1]
        for link in extract_links(b"a{" * 500 + b"b:url(x)" + b"}" * 500 + b"c{d:url(y)}", "text/css", BASE)
    ] == ["y"]


def test_many_links() -> None:
    """There are never more than 100,000 links, and the others are counted."""
    found = scan_links(b"".join(b"<a href=%d>" % number for number in range(150_000)), "text/html", BASE)
    assert len(found.links) == _core.MAX_PAGE_LINKS == 100_000
    assert (found.omitted, found.cut) == (50_000, False)


def test_long_addresses() -> None:
    """An address of more than 8,000 bytes is left out, and counted."""
    rest = 8_000 - len("http://h.example/d/")
    found = scan_links(b"<a href=%s><a href=%s>" % (b"x" * rest, b"y" * (rest + 1)), "text/html", BASE)
    assert [len(link.uri) for link in found.links] == [8_000]
    assert found.omitted == 1


def test_a_long_base() -> None:
    """A base that makes every short address a long one does not fill the memory."""
    body = b"<base href=/%s/>" % (b"x" * 7_900) + b"".join(b"<a href=%d>" % number for number in range(100_000))
    found = scan_links(body, "text/html", BASE)
    assert sum(len(link.uri) for link in found.links) <= 64 * MB
    assert len(found.links) + found.omitted == 100_000


def test_long_bodies() -> None:
    """Of a body, 32 MiB are read."""
    filler = b" " * (_core.MAX_PAGE_BYTES - len(b"<a href=x>"))
    found = scan_links(b"<a href=x>" + filler + b"<a href=y>", "text/html", BASE)
    assert [link.uri[-1] for link in found.links] == ["x"]
    assert found.cut


def test_bombs() -> None:
    """Of a gzipped body, 64 MiB are unpacked, once."""
    packer = zlib.compressobj(wbits=31)
    parts = [packer.compress(b"<urlset><loc>http://h.example/x</loc>")]
    parts += [packer.compress(bytes(MB)) for _ in range(70)]
    body = b"".join(parts) + packer.compress(b"<loc>http://h.example/y</loc>") + packer.flush()
    found = scan_links(body, None, "http://h.example/sitemap.xml.gz")
    assert [link.uri[-1] for link in found.links] == ["x"]
    assert found.cut
    assert scan_links(gzip.compress(body), None, BASE).links == []


def test_damaged_gzip() -> None:
    """Of a gzipped body that is damaged, what comes before the damage counts, and it is said that there was more."""
    body = gzip.compress(b"<urlset><loc>http://h.example/x</loc>" + bytes(range(256)) * 200)
    found = scan_links(body[:-50], None, "http://h.example/sitemap.xml.gz")
    assert [link.uri[-1] for link in found.links] == ["x"]
    assert found.cut


def test_entities_are_not_expanded() -> None:
    """A document type that declares a billion laughs declares nothing."""
    laughs = b'<!DOCTYPE urlset [<!ENTITY a "http://h.example/x"><!ENTITY b "&a;&a;&a;">]>'
    found = extract_links(
        b'<?xml version="1.0"?>' + laughs + b"<urlset><loc>http://h.example/&b;</loc></urlset>", "text/xml", BASE
    )
    assert [link.uri for link in found] == ["http://h.example/&b;"]
