"""Discovery of MementoMaps in headers and home pages of archives."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.archives.stubs import StubHttpClient, reply
from unlost.archives import MapLink, discover_maps, maps_in_headers, maps_in_page
from unlost.registry import Archive, ArchiveKind

HOME = "https://a.example/"
ARCHIVE = Archive(
    "a", "A", ArchiveKind.MEMENTO, timemap="https://a.example/timemap/link/", timegate="https://a.example/timegate/"
)
PAGE = "http://example.com/"


def urls_in_header(value: str) -> list[str]:
    """Return the map URLs in a Link header of `https://a.example/web/x`."""
    return [link.url for link in maps_in_headers(reply("https://a.example/web/x", Link=value))]


def urls_in_page(page: str | bytes, kind: str = "text/html; charset=utf-8") -> list[str]:
    """Return the map URLs in a page at `https://a.example/web/`."""
    body = page if isinstance(page, bytes) else page.encode()
    return [link.url for link in maps_in_page(reply("https://a.example/web/", body, Content_Type=kind))]


@pytest.mark.parametrize(
    ("header", "results"),
    [
        ('<https://b.example/m.ukvs>; rel="mementomap"', ["https://b.example/m.ukvs"]),
        ("<m.ukvs>;rel=mementomap", ["https://a.example/web/m.ukvs"]),
        ("</m.ukvs#top> ; type=text/plain ; REL = 'x' , <n>; rel=\"self MementoMap\"", ["https://a.example/web/n"]),
        ('<http://a/?x=1,2>; rel="original", <//b.example/m>; rel="mementomap"; title="a, <b>; rel=c"', ["https://b.example/m"]),
        ('<m>; title="say \\"rel=mementomap\\""; rel=up', []),
        ("<m>; rel=up; rel=mementomap", []),
        ("<m>; rel=mementomaps", []),
        ('<m>; rel="mementomap', []),
        ("<m>", []),
        ("m; rel=mementomap", []),
        ("<ftp://b.example/m>; rel=mementomap, <javascript:alert(1)>; rel=mementomap", []),
        ("<http://[b/>; rel=mementomap, <http://u:p@b/>; rel=mementomap, <>; rel=mementomap", []),
        ("<m>; rel=mementomap, <./m>; rel=mementomap", ["https://a.example/web/m"]),
        (", ".join(f"<{n}>; rel=mementomap" for n in range(20)), [f"https://a.example/web/{n}" for n in range(10)]),
        ("", []),
    ],
)  # fmt: skip
def test_map_links_in_header_are_parsed(header: str, results: list[str]) -> None:
    """Links are parsed as in RFC 8288, absolute, unique, limited in number, and restricted to web URLs."""
    assert urls_in_header(header) == results


def test_map_links_in_several_headers_are_combined() -> None:
    """A server may send one header per link."""
    response = reply(HOME, Link="<x>; rel=up", link="</m>; rel=mementomap")
    assert maps_in_headers(response) == [MapLink("https://a.example/m", "Link header of https://a.example/")]


@pytest.mark.parametrize(
    ("page", "results"),
    [
        ('<html><head><link rel="mementomap" href="/m.ukvs"></head>', ["https://a.example/m.ukvs"]),
        ("<LINK HREF='m&amp;n' REL='alternate MEMENTOMAP'/>", ["https://a.example/web/m&n"]),
        ('<base href="http://b.example/c/"><link rel=mementomap href=m>', ["http://b.example/c/m"]),
        ('<link rel=mementomap href=m><base href="/d/"><base href="/e/">', ["https://a.example/d/m"]),
        ("<!-- <link rel=mementomap href=m> --><script>'<link rel=mementomap href=n>'</script>", []),
        ("<head></head><link rel=mementomap href=m>", []),
        ("<body><link rel=mementomap href=m>", []),
        ("<link rel=mementomap><link rel=mementomap href=''><link rel href=m><a rel=mementomap href=m>", []),
        ("<link rel=mementomap href=m><![ <link rel=mementomap href=n>", ["https://a.example/web/m"]),
        ("<link rel=mementomap href=m", []),
        ("<!--" + " " * (1 << 16) + "--><link rel=mementomap href=m>", []),
    ],
)
def test_map_links_in_page_head_are_found(page: str, results: list[str]) -> None:
    """The page's base applies; comments, scripts and bodies are ignored."""
    assert urls_in_page(page) == results


def test_only_html_is_parsed_as_a_page() -> None:
    """Other media types are ignored, whatever the text contains."""
    link = "<link rel=mementomap href=m>"
    assert urls_in_page(link, "text/plain") == []
    assert urls_in_page(link.encode() + b"\xff", "application/xhtml+xml") == ["https://a.example/web/m"]


@given(st.text(alphabet="<>/!-[]='\" \n&#;,linkreabsmotp:hf.", max_size=300), st.binary(max_size=300))
def test_arbitrary_pages_do_not_crash(text: str, data: bytes) -> None:
    """Any headers and pages are accepted."""
    for body in (text.encode(), data, b"<link rel=mementomap href=" + data):
        urls_in_page(body)
    urls_in_header(text)
    urls_in_header(f"<{text}>; rel=mementomap")


def test_hostile_pages_are_searched_in_bounded_time() -> None:
    """Thousands of unclosed tags are parsed within seconds."""
    for piece in ("<", "<!", "<!--", "<a b='", "<![", "<?", "</", "<link rel=&#", "<textarea>", "<a " + "b=" * 9):
        urls_in_page(piece * (1 << 20))
        urls_in_header(piece * (1 << 14))


def discover(*responses: object, timemap: object = None) -> tuple[list[str], list[str], int]:
    """Return the maps found, the requested URLs, and the number of problems."""
    http_client = StubHttpClient(*responses)  # type: ignore[arg-type]
    results = asyncio.run(discover_maps(ARCHIVE, http_client, PAGE, timemap))  # type: ignore[arg-type]
    return [link.source for link in results.maps], http_client.requests, len(results.problems)


def test_given_response_is_searched_first() -> None:
    """A map in a TimeMap response needs no further request."""
    response = reply("https://a.example/timemap/link/x", Link="</m>; rel=mementomap")
    assert discover(timemap=response) == (["Link header of https://a.example/timemap/link/x"], [], 0)


def test_home_page_is_searched_second() -> None:
    """Its headers and its head are searched."""
    page = reply(HOME, b"<link rel=mementomap href=m>", Content_Type="text/html")
    assert discover(page, timemap=reply("https://a.example/t")) == ([f"page {HOME}"], [HOME], 0)
    assert discover(reply(HOME, Link="</m>; rel=mementomap")) == ([f"Link header of {HOME}"], [HOME], 0)


def test_timegate_is_searched_third() -> None:
    """Only its headers are searched, since its body is an archived page."""
    gate = "https://a.example/timegate/http://example.com/"
    linked = reply(gate, status=302, Link="</m>; rel=mementomap")
    assert discover(reply(HOME), linked) == ([f"Link header of {gate}"], [HOME, gate], 0)
    archived = reply(gate, b"<link rel=mementomap href=m>", Content_Type="text/html")
    assert discover(reply(HOME), archived) == ([], [HOME, gate], 0)


def test_failures_are_reported() -> None:
    """A failed home page does not prevent further requests."""
    assert discover() == ([], [HOME, "https://a.example/timegate/http://example.com/"], 2)
