"""Where archives say that their MementoMaps are: headers and home pages of every making."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.archives.stubs import Answers, reply
from unlost.archives import MapLink, discover_maps, maps_in_headers, maps_in_page
from unlost.registry import Archive, ArchiveKind

HOME = "https://a.example/"
ARCHIVE = Archive(
    "a", "A", ArchiveKind.MEMENTO, timemap="https://a.example/timemap/link/", timegate="https://a.example/timegate/"
)
PAGE = "http://example.com/"


def in_header(value: str) -> list[str]:
    """Return the addresses of maps in a Link header of `https://a.example/web/x`."""
    return [link.url for link in maps_in_headers(reply("https://a.example/web/x", Link=value))]


def in_page(page: str | bytes, kind: str = "text/html; charset=utf-8") -> list[str]:
    """Return the addresses of maps in a page at `https://a.example/web/`."""
    body = page if isinstance(page, bytes) else page.encode()
    return [link.url for link in maps_in_page(reply("https://a.example/web/", body, Content_Type=kind))]


@pytest.mark.parametrize(
    ("header", "found"),
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
def test_headers(header: str, found: list[str]) -> None:
    """Links are read as RFC 8288 has them, made absolute, each once, a few at most, and only web addresses."""
    assert in_header(header) == found


def test_several_headers() -> None:
    """A server may send one for each link."""
    answer = reply(HOME, Link="<x>; rel=up", link="</m>; rel=mementomap")
    assert maps_in_headers(answer) == [MapLink("https://a.example/m", "Link header of https://a.example/")]


@pytest.mark.parametrize(
    ("page", "found"),
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
def test_pages(page: str, found: list[str]) -> None:
    """Links in the head count, wherever its base says; those in comments, scripts and bodies do not."""
    assert in_page(page) == found


def test_only_html_is_parsed_as_a_page() -> None:
    """Whatever a text looks like."""
    link = "<link rel=mementomap href=m>"
    assert in_page(link, "text/plain") == []
    assert in_page(link.encode() + b"\xff", "application/xhtml+xml") == ["https://a.example/web/m"]


@given(st.text(alphabet="<>/!-[]='\" \n&#;,linkreabsmotp:hf.", max_size=300), st.binary(max_size=300))
def test_arbitrary_pages_do_not_crash(text: str, data: bytes) -> None:
    """Whatever headers and pages hold."""
    for body in (text.encode(), data, b"<link rel=mementomap href=" + data):
        in_page(body)
    in_header(text)
    in_header(f"<{text}>; rel=mementomap")


def test_hostile_pages_take_no_time() -> None:
    """Half-open tags by the thousand are read in less than a few seconds, all together."""
    for piece in ("<", "<!", "<!--", "<a b='", "<![", "<?", "</", "<link rel=&#", "<textarea>", "<a " + "b=" * 9):
        in_page(piece * (1 << 20))
        in_header(piece * (1 << 14))


def discovered(*answers: object, timemap: object = None) -> tuple[list[str], list[str], int]:
    """Return where maps were found, the addresses that were asked for, and how many problems there were."""
    http_client = Answers(*answers)  # type: ignore[arg-type]
    found = asyncio.run(discover_maps(ARCHIVE, http_client, PAGE, timemap))  # type: ignore[arg-type]
    return [link.source for link in found.maps], http_client.asked, len(found.problems)


def test_given_response_is_searched_first() -> None:
    """A map in the answer to a TimeMap needs no further question."""
    answer = reply("https://a.example/timemap/link/x", Link="</m>; rel=mementomap")
    assert discovered(timemap=answer) == (["Link header of https://a.example/timemap/link/x"], [], 0)


def test_home_page_is_searched_second() -> None:
    """Its headers and its head."""
    page = reply(HOME, b"<link rel=mementomap href=m>", Content_Type="text/html")
    assert discovered(page, timemap=reply("https://a.example/t")) == ([f"page {HOME}"], [HOME], 0)
    assert discovered(reply(HOME, Link="</m>; rel=mementomap")) == ([f"Link header of {HOME}"], [HOME], 0)


def test_timegate_is_searched_third() -> None:
    """Only its headers: the page that it shows is an archived one, and its links are not the archive's."""
    gate = "https://a.example/timegate/http://example.com/"
    linked = reply(gate, status=302, Link="</m>; rel=mementomap")
    assert discovered(reply(HOME), linked) == ([f"Link header of {gate}"], [HOME, gate], 0)
    archived = reply(gate, b"<link rel=mementomap href=m>", Content_Type="text/html")
    assert discovered(reply(HOME), archived) == ([], [HOME, gate], 0)


def test_failures_are_reported() -> None:
    """A home page that cannot be had keeps nobody from looking elsewhere."""
    assert discovered() == ([], [HOME, "https://a.example/timegate/http://example.com/"], 2)
