"""Link-format TimeMaps: real, malformed, and in agreement with the Python model."""

import time
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.models import link_format as model
from unlost import _core
from unlost.memento import (
    TIMEMAP_PROBLEM_KINDS,
    LinkFormatTimeMap,
    TimeMapEntry,
    TimeMapLink,
    format_timemap,
    read_timemap,
)
from unlost.problems import Problems

CORPUS = Path(__file__).parents[2] / "rust" / "fuzz" / "corpus" / "linkformat"
GMT = "Mon, 10 Feb 2014 00:00:01 GMT"


def read_body(body: str | bytes) -> tuple[LinkFormatTimeMap, dict[str, int]]:
    """Return a parsed TimeMap and the problem counts."""
    problems = Problems()
    timemap = read_timemap(body.encode() if isinstance(body, str) else body, problems)
    return timemap, problems.counts


def read_uris(body: str) -> list[str]:
    """Return the URI-Ms of a TimeMap without problems."""
    timemap, problems = read_body(body)
    assert problems == {}
    return [memento.uri for memento in timemap.mementos]


def test_timemap_example_of_rfc_7089_is_parsed() -> None:
    """The TimeMap of RFC 7089, section 5, is parsed with links, dates and relations."""
    timemap, problems = read_body(
        '<http://a.example.org>;rel="original",\n'
        "<http://arxiv.example.net/timemap/http://a.example.org>\n"
        '  ; rel="self";type="application/link-format"\n'
        '  ; from="Tue, 20 Jun 2000 18:02:59 GMT"\n'
        '  ; until="Wed, 09 Apr 2008 20:30:51 GMT",\n'
        "<http://arxiv.example.net/timegate/http://a.example.org>\n"
        '  ; rel="timegate",\n'
        "<http://arxiv.example.net/web/20000620180259/http://a.example.org>\n"
        '  ; rel="first memento";datetime="Tue, 20 Jun 2000 18:02:59 GMT"\n'
        '  ; license="http://creativecommons.org/publicdomain/zero/1.0/",\n'
        "<http://arxiv.example.net/web/20091027204954/http://a.example.org>\n"
        '   ; rel="last memento";datetime="Tue, 27 Oct 2009 20:49:54 GMT"\n'
    )
    base = "http://arxiv.example.net"
    assert problems == {}
    assert timemap == LinkFormatTimeMap(
        "http://a.example.org",
        TimeMapLink(
            f"{base}/timemap/http://a.example.org", "application/link-format", "20000620180259", "20080409203051"
        ),
        f"{base}/timegate/http://a.example.org",
        (),
        (
            TimeMapEntry(f"{base}/web/20000620180259/http://a.example.org", "20000620180259", first=True),
            TimeMapEntry(f"{base}/web/20091027204954/http://a.example.org", "20091027204954", last=True),
        ),
    )


@pytest.mark.parametrize(
    "entry",
    [
        f'<http://w/1>; rel="memento"; datetime="{GMT}"',
        f'<http://w/1>;rel="memento";datetime="{GMT}",',
        f"<http://w/1>; rel=memento; datetime={GMT},\r\n",
        f"\ufeff  <http://w/1>; rel='first memento'; datetime='{GMT}'",
        f'<http://w/1>; datetime="{GMT}"; REL="MEMENTO Last"',
        f'<http://w/1> ; title="a, b; c" ; rel = "prev memento" ; datetime = "{GMT}" ; collection',
        '<http://w/1>; rel="memento"; datetime="10 Feb 2014 01:00:01 +0100"',
        '<http://w/1>; rel="memento"; datetime="20140210000001"; embargo="<none>"',
        f',,\n, <http://w/1>; rel="memento"; datetime="{GMT}";,',
        '<http://w/1>; rel="memento"; datetime="2014-02-10T00:00:01Z"',
        "<http://w/1>; rel=memento; datetime=2014-02-10T00:00:01Z,",
        "<http://w/1>;rel=first memento;datetime=2014-02-10 01:00:01.25+01:00;license=x",
        f'<http://w/1>; title="a, <b>; c"; rel="memento"; datetime="{GMT}"',
        f'<http://w/1>; rel="memento"; datetime="{GMT}"; title="one,\n<two>; rel=\\"memento\\", <three"',
        f'<http://w/1>; a=\', <\'; b=", <"; rel=\'memento\'; datetime="{GMT}"; c="\n<x>; y=z",\n',
    ],
)
def test_memento_link_in_any_notation_is_parsed(entry: str) -> None:
    """Quotes, case, order, white space, commas and other parameters do not matter."""
    timemap, problems = read_body(entry)
    assert problems == {}
    assert [(memento.uri, memento.datetime) for memento in timemap.mementos] == [("http://w/1", "20140210000001")]
    assert not timemap.mementos[0].is_dated_by_uri


def test_uri_with_delimiters_is_parsed() -> None:
    """Commas, semicolons, quotes and `>` belong to the URI; invalid UTF-8 is escaped."""
    uri = "http://w/20140210000001/http://a.com/#h=1063,k=\"a\";s='y'>z"
    assert read_uris(f'<{uri}>; rel="memento", <{uri}2>; rel="memento"') == [uri, uri + "2"]
    timemap, _ = read_body(b"<http://w/20140210000001/\xfc\xe9,>; rel=memento")
    assert timemap.mementos[0].uri == "http://w/20140210000001/%FC%E9,"


@pytest.mark.parametrize("date", ["", '; datetime="yesterday"'])
def test_missing_datetime_is_taken_from_uri(date: str) -> None:
    """A 14-digit path segment with a valid date is the datetime, and the entry is marked."""
    uri = "http://w/20141310000001/2014021000000/201402100000011/20140210000001id_/http://a.com/"
    timemap, problems = read_body(f"<{uri}>; rel=memento{date}")
    assert timemap.mementos == (TimeMapEntry(uri, "20140210000001", is_dated_by_uri=True),)
    assert problems == {}


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        ("bad-quote", f'<http://w/1>; rel="memento; datetime="{GMT}"'),
        ("bad-quote", f'<http://w/1>; rel="memento"; datetime="{GMT}'),
        ("bad-quote", f'<http://w/1>; rel=memento"; datetime="{GMT}"'),
        ("bad-uri", f'<http://w/1; rel="memento"; datetime="{GMT}"'),
        ("bad-uri", f'<>; rel="memento"; datetime="{GMT}"'),
        ("bad-uri", f'<http://w/\0>; rel="memento"; datetime="{GMT}"'),
        ("bad-parameter", f'<http://w/1>; ="memento"; datetime="{GMT}"'),
        ("no-rel", f'<http://w/1>; datetime="{GMT}"'),
        ("no-date", '<http://w/1>; rel="memento"'),
    ],
)
@pytest.mark.parametrize("between", [",", ",\n", "\n", "\r\n , "])
def test_invalid_link_affects_only_itself(kind: str, bad: str, between: str) -> None:
    """Entries before and after it are read, and it is counted with its offset."""
    good = f'<http://w/0>; rel="memento"; datetime="{GMT}"'
    problems = Problems()
    timemap = read_timemap((good + between + bad + between + good).encode(), problems, "a.link")
    assert len(timemap.mementos) == 2
    assert problems.counts == {kind: 1}
    first = problems.first[kind]
    assert (first.file, first.offset, first.message) == ("a.link", len(good + between), TIMEMAP_PROBLEM_KINDS[kind])


def test_quoted_value_with_delimiters_is_parsed() -> None:
    """An unclosed quote does not extend to later entries."""
    good = f'rel="memento"; datetime="{GMT}"'
    assert read_uris(f'<a>; {good}; title="x, <y>", <b>; title=", <z>"; {good},\n<c>; {good}') == ["a", "b", "c"]
    for bad in ('title="x', "title='x", 'title="x, <y>; z="w"', 'title="x, <y>"; u="v'):
        timemap, problems = read_body(f'<a>; {good}; {bad},\n<b>; {good},\n<c>; {good}; title="1, <2>"')
        assert [memento.uri for memento in timemap.mementos][-2:] == ["b", "c"], bad
        assert problems["bad-quote"] == 1, bad


@pytest.mark.parametrize("page", ["<!DOCTYPE html><p>", "\n <HTML lang=en>", '<?xml version="1.0"?>', "<!-- x -->"])
def test_html_in_place_of_timemap_is_one_problem(page: str) -> None:
    """HTML is counted once under its own kind."""
    assert read_body(page + "\n<a>; rel=memento" * 9) == (LinkFormatTimeMap(), {"html": 1})


def test_text_without_links_is_counted() -> None:
    """Empty bodies have no problems; other text and binary data are counted."""
    assert read_body("") == (LinkFormatTimeMap(), {})
    assert read_body(" ,\n") == (LinkFormatTimeMap(), {})
    assert read_body("Not found") == (LinkFormatTimeMap(), {"no-link": 1})
    assert read_body(b"\0" * 1000) == (LinkFormatTimeMap(), {"no-link": 1})
    assert read_body(b"\x1f\x8b\x08\0\n<\xff\n<\xfe>") == (
        LinkFormatTimeMap(),
        {"no-link": 1, "bad-uri": 1, "no-rel": 1},
    )


def test_timemap_index_and_other_relations_are_parsed() -> None:
    """Linked TimeMaps have their dates; unknown relations are only counted."""
    timemap, problems = read_body(
        f'<t/2>; rel="timemap"; from="{GMT}"; until="never", <t/1>; rel="self timemap"; type="a/b", <t/1>; rel=self\n'
        '<o>; rel="original timegate", <l>; rel=license, <o2>; rel=original'
    )
    assert problems == {}
    assert timemap == LinkFormatTimeMap(
        "o", TimeMapLink("t/1", "a/b"), "o", (TimeMapLink("t/2", None, "20140210000001"),), (), 3
    )


@pytest.mark.parametrize(
    "unit",
    [
        b",<",
        b"<",
        b"<a> ",
        b',<a>;x="',
        b",<a>;x='\"",
        b";",
        b'",<a>";x=',
        b';,<a>;x="',
        b"\n<a>;x=\"',",
        b'\\"',
        b"/20140101000000",
        b" ",
    ],
)
def test_hostile_timemap_is_parsed_in_linear_time(unit: bytes) -> None:
    """Two megabytes of repeated tokens are parsed within seconds."""
    start = time.process_time()
    read_body(b'<a>; rel="' + unit * (2_000_000 // len(unit)))
    assert time.process_time() - start < 5


@pytest.mark.parametrize("cut", range(0, 160, 7))
def test_truncated_timemap_yields_complete_entries(cut: int) -> None:
    """Entries before the truncation are read; the last one is read or counted."""
    entry = f'<http://w/20140210000001/x>; rel="memento"; datetime="{GMT}"'
    timemap, problems = read_body((entry + ",\n" + entry + ",\n" + entry)[: len(entry) + 2 + cut])
    assert len(timemap.mementos) >= 1
    assert len(timemap.mementos) + sum(problems.values()) <= 3


TOKENS = st.sampled_from(
    [
        *"<>;=,'\"\\ \n\r\t\f-:/",
        *["rel", "REL", "datetime", "type", "from", "until", "memento", "first", "Last", "original", "self", "timemap"],
        *["timegate", "http://w/", "/20140210000001/", "20141310000001", GMT, "1 Mar 2012 00:00:60 +0130", "\0", "é"],
        *['<http://w/1>; rel="memento"', "; datetime=", "<a>", ',\n<b>; rel="', "31 Dec 9999 23:59:59 -0001", "<html"],
        *["Sat, 1-Feb-2013 1:00:00", "02 February 2013 00:00:00 UT", "GMT", "ut", "+00:59", "2", "0"],
        *["2014-02-10T00:00:01Z", "2013-12-31 23:59", ":60.25", "-00:30", "2014-02-30", '; title="', ", <c>", '";'],
    ]
)
BODIES = st.one_of(
    st.lists(TOKENS, max_size=30).map(lambda tokens: "".join(tokens).encode()),
    st.lists(st.one_of(TOKENS.map(str.encode), st.binary(max_size=3)), max_size=30).map(b"".join),
    st.binary(),
)


@given(BODIES)
@example(b"\xef\xbb\xbf<html")
@example(b'<a>; type="\xff"; rel=self')
def test_timemap_parser_agrees_with_model(body: bytes) -> None:
    """The core and the model return the same result for any bytes."""
    expected = model.read(body)
    original, itself, timegate, timemaps, mementos, others, faults = _core.read_timemap(body)
    assert {
        "original": original,
        "itself": itself,
        "timegate": timegate,
        "timemaps": timemaps,
        "mementos": list(zip(*mementos, strict=True)),
        "others": others,
        "faults": {kind: (times, first) for kind, times, first in faults},
    } == expected


@pytest.mark.parametrize("file", sorted(CORPUS.iterdir()), ids=lambda file: file.name)
def test_timemap_of_fuzzing_corpus_agrees_with_model(file: Path) -> None:
    """Seeds and former findings of the fuzz target yield equal results."""
    test_timemap_parser_agrees_with_model.hypothesis.inner_test(file.read_bytes())  # type: ignore[attr-defined]


URIS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='<>" '), min_size=1)
DATES = st.datetimes().map(lambda date: f"{date.year:04d}{date:%m%d%H%M%S}")
TIMEMAP_LINKS = st.builds(TimeMapLink, URIS, st.none() | st.sampled_from(["application/json", "application/cdxj+ors"]),
                  st.none() | DATES, st.none() | DATES)  # fmt: skip


@given(
    st.none() | URIS,
    st.none() | TIMEMAP_LINKS,
    st.none() | URIS,
    st.lists(TIMEMAP_LINKS),
    st.lists(st.tuples(URIS, DATES)),
)
def test_timemap_round_trip_is_lossless(
    original: str | None,
    itself: TimeMapLink | None,
    timegate: str | None,
    timemaps: list[TimeMapLink],
    entries: list[tuple[str, str]],
) -> None:
    """A written TimeMap is read back, with the first and last memento marked."""
    mementos = tuple(
        TimeMapEntry(uri, date, first=number == 0, last=number == len(entries) - 1)
        for number, (uri, date) in enumerate(entries)
    )
    written = LinkFormatTimeMap(original, itself, timegate, tuple(timemaps), mementos)
    text = "".join(format_timemap(written))
    assert not text.endswith((",", "\n"))
    assert read_body(text) == (written, {})


def test_uri_that_resembles_html_tag_is_parsed() -> None:
    """A link has parameters, a tag has none."""
    timemap, problems = read_body('<html5.example>; rel="original",\n<Head> ; rel="timegate"')
    assert (timemap.original, timemap.timegate, problems) == ("html5.example", "Head", {})
    assert read_body('<html5.example>\n<p>; rel="original"')[1] == {"html": 1}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
@example("HTML")
@example("!--")
def test_written_uri_cannot_inject_link(uri: str) -> None:
    """Any URI is written as one entry."""
    timemap, problems = read_body(
        "".join(format_timemap(LinkFormatTimeMap(original=uri, mementos=(TimeMapEntry(uri, "20140210000001"),))))
    )
    assert problems == {}
    assert len(timemap.mementos) == 1
    assert asdict(timemap)["original"] == timemap.mementos[0].uri


def test_single_memento_is_written_as_first_and_last() -> None:
    """The relation is `first last memento`, as MemGator writes it."""
    lines = list(format_timemap(LinkFormatTimeMap(mementos=(TimeMapEntry("http://w/1", "20140210000001"),))))
    assert lines == [f'<http://w/1>; rel="first last memento"; datetime="{GMT}"']
