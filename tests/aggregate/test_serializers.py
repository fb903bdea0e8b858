"""TimeMaps in all formats: golden files, hostile URLs, paging, empty and long ones."""

import json
import time
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.aggregate.example_results import EXAMPLE, SERVICE_URLS, result_of
from unlost.aggregate import (
    LINKED_FORMATS,
    MEDIA_TYPES,
    TIMEMAP_PAGE_SIZE,
    DateSpan,
    ServiceUrls,
    TimeMapFormat,
    ascii_url,
    memento_summary_json,
    serialize_timemap,
    split_pages,
    summary_text,
)
from unlost.memento import LinkFormatTimeMap, read_timemap
from unlost.problems import Problems

FILES = Path(__file__).parent / "files"
HOSTILE = 'http://a.com/é"}>\r\n<http://evil/>; rel="original", \\\x00\x1b\u2028\udcff'
MEMENTO = ("20140210000001", "a", "http://a/1")


def read(body: bytes) -> LinkFormatTimeMap:
    """Read a TimeMap that has no problems."""
    problems = Problems()
    found = read_timemap(body, problems)
    assert problems.counts == {}
    return found


@pytest.mark.parametrize("form", MEDIA_TYPES)
def test_timemap_formats_match_memgator(form: TimeMapFormat) -> None:
    """Order, names, white space and dates."""
    assert serialize_timemap(EXAMPLE, SERVICE_URLS, form).decode() == (FILES / f"timemap.{form}").read_text()


def test_summary_by_archive_and_year() -> None:
    """As JSON and as text."""
    assert memento_summary_json(EXAMPLE, SERVICE_URLS).decode() == (FILES / "summary.json").read_text()
    assert summary_text(EXAMPLE).decode() == (FILES / "summary.text").read_text()
    assert json.loads(memento_summary_json(result_of([]), SERVICE_URLS))["mementos"] == 0
    assert summary_text(result_of([])) == b"year   total\ntotal      0\n"


def test_single_memento_is_first_and_last() -> None:
    """In link-format and in CDXJ."""
    found = result_of([MEMENTO])
    entry = b'<http://a/1>; rel="first last memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT",'
    assert entry in serialize_timemap(found, SERVICE_URLS, "link").splitlines()
    assert b'"rel": "first last memento"' in serialize_timemap(found, SERVICE_URLS, "cdxj").splitlines()[-1]


def test_empty_timemap_is_valid() -> None:
    """It has no dates, no first and no last memento."""
    found = result_of([])
    timemap = read(serialize_timemap(found, SERVICE_URLS, "link"))
    assert timemap.mementos == ()
    assert timemap.self_link is not None
    assert timemap.self_link.start is None
    assert json.loads(serialize_timemap(found, SERVICE_URLS, "json"))["mementos"] == {"list": []}
    assert serialize_timemap(found, SERVICE_URLS, "cdxj").splitlines()[-1].startswith(b"!meta")
    assert serialize_timemap(found, SERVICE_URLS, "text") == b""
    assert split_pages(found.mementos) == ()


@given(st.text(max_size=30), st.text(st.characters(max_codepoint=0xDFFF), max_size=30))
@example(HOSTILE, HOSTILE)
@example("http://a/%", "http://a/#")
def test_timemap_entries_cannot_be_injected(uri: str, urim: str) -> None:
    """Neither by the requested URL nor by listed mementos."""
    found = result_of([(MEMENTO[0], "a", urim)], uri)
    for form in MEDIA_TYPES:
        body = serialize_timemap(found, SERVICE_URLS, form)
        assert all(byte == 10 or 0x20 <= byte < 0x7F for byte in body)
    link = serialize_timemap(found, SERVICE_URLS, "link")
    assert link.count(b"\n") == 7
    assert link.count(b"<") == link.count(b">") == 7
    if uri and urim:
        timemap = read(link)
        assert (timemap.original, len(timemap.mementos)) == (ascii_url(uri), 1)
        assert timemap.timegate == SERVICE_URLS.timegate(uri)
    told_json = json.loads(serialize_timemap(found, SERVICE_URLS, "json"))
    assert told_json["mementos"]["list"] == [told_json["mementos"]["first"]] == [told_json["mementos"]["last"]]
    assert serialize_timemap(found, SERVICE_URLS, "cdxj").count(b"\n") == 7
    assert serialize_timemap(found, SERVICE_URLS, "text").count(b"\n") == 1


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
@example("http://a.com/%2F%2520?q=%26#x")
def test_service_urls_decode_to_the_requested_url(uri: str) -> None:
    """Decoded once, as by MemGator."""
    for address, prefix in (
        (SERVICE_URLS.timemap("link", uri), "/timemap/link/"),
        (SERVICE_URLS.timegate(uri), "/timegate/"),
        (SERVICE_URLS.memento("2014", uri), "/memento/2014/"),
        (SERVICE_URLS.memento("2014", uri, "json"), "/memento/json/2014/"),
        (SERVICE_URLS.timemap("json", uri, DateSpan("20140101000000", "2015")), "/timemap/json/20140101000000-2015/"),
    ):
        assert unquote(address.removeprefix(f"http://localhost:1208{prefix}")) == uri
        assert not set(address) & set('#<>" ')


def test_base_url_is_escaped() -> None:
    """It may come from the Host header."""
    assert ServiceUrls('http://a"\r\n>').timegate("x") == "http://a%22%0D%0A%3E/timegate/x"


def test_timemap_pages_list_each_memento_once() -> None:
    """Each page links to the others, and only the ends are called first and last."""
    rows = [
        (f"201402{day:02d}{hour:02d}0000", "a", f"http://a/{day}-{hour}") for day in range(1, 21) for hour in range(5)
    ]
    found = result_of(rows)
    spans = split_pages(found.mementos, 30)
    assert [len(found.mementos.between(*span)) for span in spans] == [30, 30, 30, 10]
    listed = []
    relations = []
    for span in spans:
        others = [other for other in spans if other != span]
        timemap = read(serialize_timemap(found, SERVICE_URLS, "link", span, others))
        assert timemap.self_link is not None
        assert (timemap.self_link.start, timemap.self_link.until) == span
        assert timemap.self_link.uri == SERVICE_URLS.timemap("link", found.uri, span)
        further = [(link.uri, link.start, link.until) for link in timemap.timemaps if link.start]
        assert further == [(SERVICE_URLS.timemap("link", found.uri, other), *other) for other in others]
        listed += [memento.uri for memento in timemap.mementos]
        relations += [memento.first for memento in timemap.mementos] + [memento.last for memento in timemap.mementos]
        as_json = json.loads(serialize_timemap(found, SERVICE_URLS, "json", span, others))
        assert [page["uri"] for page in as_json["timemap_index"]] == [
            SERVICE_URLS.timemap("json", found.uri, other) for other in others
        ]
        assert as_json["mementos"]["last"]["uri"] == rows[-1][2]
        assert serialize_timemap(found, SERVICE_URLS, "cdxj", span, others).count(b"!meta") == 4
    assert listed == [row[2] for row in rows]
    assert sum(relations) == 2


def test_mementos_of_one_second_are_on_one_page() -> None:
    """Pages are split between dates, so that a span identifies its mementos."""
    rows = [("20140210000001", "a", f"http://a/{n}") for n in range(50)] + [("20140210000002", "a", "http://a/x")]
    spans = split_pages(result_of(rows).mementos, 10)
    assert spans == (DateSpan("20140210000001", "20140210000001"), DateSpan("20140210000002", "20140210000002"))
    assert TIMEMAP_PAGE_SIZE == 10_000
    assert len(split_pages(result_of(rows).mementos)) == 1


def test_long_timemaps_are_serialized_fast() -> None:
    """All formats of 100,000 mementos take seconds at most."""
    rows = (
        (
            f"{2000 + n // 10_000}{n // 1000 % 10 + 1:02d}{n % 28 + 1:02d}{n % 24:02d}{n % 60:02d}00",
            "a",
            f"http://a/{n}",
        )
        for n in range(100_000)
    )
    found = result_of(rows)
    begin = time.perf_counter()
    sizes = {form: serialize_timemap(found, SERVICE_URLS, form).count(b"\n") for form in (*LINKED_FORMATS, "text")}
    seconds = time.perf_counter() - begin
    assert sizes["link"] == 100_000 + 6
    assert sizes["text"] == 100_000
    assert seconds < 5
