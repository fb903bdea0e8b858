"""Link-format TimeMaps: real ones, flawed ones, and agreement with the slow model."""

import time
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.models import linkformat as model
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


def read(body: str | bytes) -> tuple[LinkFormatTimeMap, dict[str, int]]:
    """Return what a TimeMap tells, and the problems."""
    problems = Problems()
    found = read_timemap(body.encode() if isinstance(body, str) else body, problems)
    return found, problems.counts


def uris(body: str) -> list[str]:
    """Return the URI-Ms of a TimeMap in which nothing is wrong."""
    found, problems = read(body)
    assert problems == {}
    return [memento.uri for memento in found.mementos]


def test_the_example_of_the_standard() -> None:
    """A TimeMap as in RFC 7089, section 5, with its links, dates and relations."""
    found, problems = read(
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
    assert found == LinkFormatTimeMap(
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
def test_spellings_that_archives_have(entry: str) -> None:
    """Quotes, case, order, white space, commas and other parameters do not matter."""
    found, problems = read(entry)
    assert problems == {}
    assert [(memento.uri, memento.datetime) for memento in found.mementos] == [("http://w/1", "20140210000001")]
    assert not found.mementos[0].is_dated_by_uri


def test_addresses_with_everything_in_them() -> None:
    """Commas, semicolons, quotes and `>` inside an address are part of it; so is what is not UTF-8, escaped."""
    odd = "http://w/20140210000001/http://a.com/#h=1063,k=\"a\";s='y'>z"
    assert uris(f'<{odd}>; rel="memento", <{odd}2>; rel="memento"') == [odd, odd + "2"]
    found, _ = read(b"<http://w/20140210000001/\xfc\xe9,>; rel=memento")
    assert found.mementos[0].uri == "http://w/20140210000001/%FC%E9,"


@pytest.mark.parametrize("date", ["", '; datetime="yesterday"'])
def test_a_missing_date_is_taken_from_the_address_and_said(date: str) -> None:
    """14 digits behind a slash, if they are a date; 13 or 15, or month 13, are not."""
    odd = "http://w/20141310000001/2014021000000/201402100000011/20140210000001id_/http://a.com/"
    found, problems = read(f"<{odd}>; rel=memento{date}")
    assert found.mementos == (TimeMapEntry(odd, "20140210000001", is_dated_by_uri=True),)
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
def test_a_bad_entry_loses_itself_only(kind: str, bad: str, between: str) -> None:
    """The entries before and after it are read, and it is counted where it begins."""
    good = f'<http://w/0>; rel="memento"; datetime="{GMT}"'
    problems = Problems()
    found = read_timemap((good + between + bad + between + good).encode(), problems, "a.link")
    assert len(found.mementos) == 2
    assert problems.counts == {kind: 1}
    first = problems.first[kind]
    assert (first.file, first.offset, first.message) == ("a.link", len(good + between), TIMEMAP_PROBLEM_KINDS[kind])


def test_a_quoted_value_may_contain_what_begins_an_entry() -> None:
    """The entries after it are read; an open quote that closes nowhere, or wrongly, extends no entry."""
    good = f'rel="memento"; datetime="{GMT}"'
    assert uris(f'<a>; {good}; title="x, <y>", <b>; title=", <z>"; {good},\n<c>; {good}') == ["a", "b", "c"]
    for bad in ('title="x', "title='x", 'title="x, <y>; z="w"', 'title="x, <y>"; u="v'):
        found, problems = read(f'<a>; {good}; {bad},\n<b>; {good},\n<c>; {good}; title="1, <2>"')
        assert [memento.uri for memento in found.mementos][-2:] == ["b", "c"], bad
        assert problems["bad-quote"] == 1, bad


@pytest.mark.parametrize("page", ["<!DOCTYPE html><p>", "\n <HTML lang=en>", '<?xml version="1.0"?>', "<!-- x -->"])
def test_a_page_in_place_of_a_list_is_known_for_what_it_is(page: str) -> None:
    """HTML is one problem of its own kind, not a thousand bad entries."""
    assert read(page + "\n<a>; rel=memento" * 9) == (LinkFormatTimeMap(), {"html": 1})


def test_other_rubbish() -> None:
    """Nothing is nothing; text without entries, NULs and binary rubbish are counted."""
    assert read("") == (LinkFormatTimeMap(), {})
    assert read(" ,\n") == (LinkFormatTimeMap(), {})
    assert read("Not found") == (LinkFormatTimeMap(), {"no-link": 1})
    assert read(b"\0" * 1000) == (LinkFormatTimeMap(), {"no-link": 1})
    assert read(b"\x1f\x8b\x08\0\n<\xff\n<\xfe>") == (LinkFormatTimeMap(), {"no-link": 1, "bad-uri": 1, "no-rel": 1})


def test_lists_of_lists_and_other_relations() -> None:
    """Pages of a list keep their dates; relations that mean nothing here are counted, not kept."""
    found, problems = read(
        f'<t/2>; rel="timemap"; from="{GMT}"; until="never", <t/1>; rel="self timemap"; type="a/b", <t/1>; rel=self\n'
        '<o>; rel="original timegate", <l>; rel=license, <o2>; rel=original'
    )
    assert problems == {}
    assert found == LinkFormatTimeMap(
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
def test_hostile_repetition_takes_linear_time(unit: bytes) -> None:
    """Two megabytes of anything are read in a moment."""
    start = time.process_time()
    read(b'<a>; rel="' + unit * (2_000_000 // len(unit)))
    assert time.process_time() - start < 5


@pytest.mark.parametrize("cut", range(0, 160, 7))
def test_a_truncated_list_keeps_what_was_whole(cut: int) -> None:
    """Whatever is cut off, the entries before are there, and the last one is read or counted."""
    entry = f'<http://w/20140210000001/x>; rel="memento"; datetime="{GMT}"'
    found, problems = read((entry + ",\n" + entry + ",\n" + entry)[: len(entry) + 2 + cut])
    assert len(found.mementos) >= 1
    assert len(found.mementos) + sum(problems.values()) <= 3


PIECES = st.sampled_from(
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
    st.lists(PIECES, max_size=30).map(lambda pieces: "".join(pieces).encode()),
    st.lists(st.one_of(PIECES.map(str.encode), st.binary(max_size=3)), max_size=30).map(b"".join),
    st.binary(),
)


@given(BODIES)
@example(b"\xef\xbb\xbf<html")
@example(b'<a>; type="\xff"; rel=self')
def test_core_and_model_agree(body: bytes) -> None:
    """Whatever the bytes, the core finds what the model finds."""
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
def test_fuzzed_inputs_agree_with_the_model(file: Path) -> None:
    """What fuzzing began with, and once found, is read as the model reads it."""
    test_core_and_model_agree.hypothesis.inner_test(file.read_bytes())  # type: ignore[attr-defined]


URIS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='<>" '), min_size=1)
DATES = st.datetimes().map(lambda moment: f"{moment.year:04d}{moment:%m%d%H%M%S}")
LISTS = st.builds(TimeMapLink, URIS, st.none() | st.sampled_from(["application/json", "application/cdxj+ors"]),
                  st.none() | DATES, st.none() | DATES)  # fmt: skip


@given(st.none() | URIS, st.none() | LISTS, st.none() | URIS, st.lists(LISTS), st.lists(st.tuples(URIS, DATES)))
def test_what_is_written_reads_back(
    original: str | None,
    itself: TimeMapLink | None,
    timegate: str | None,
    lists: list[TimeMapLink],
    copies: list[tuple[str, str]],
) -> None:
    """A TimeMap survives being written, the first and last memento being called so."""
    mementos = tuple(
        TimeMapEntry(uri, date, first=place == 0, last=place == len(copies) - 1)
        for place, (uri, date) in enumerate(copies)
    )
    written = LinkFormatTimeMap(original, itself, timegate, tuple(lists), mementos)
    text = "".join(format_timemap(written))
    assert not text.endswith((",", "\n"))
    assert read(text) == (written, {})


def test_an_address_may_begin_like_a_tag() -> None:
    """Parameters follow it, and none follow a tag."""
    found, problems = read('<html5.example>; rel="original",\n<Head> ; rel="timegate"')
    assert (found.original, found.timegate, problems) == ("html5.example", "Head", {})
    assert read('<html5.example>\n<p>; rel="original"')[1] == {"html": 1}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
@example("HTML")
@example("!--")
def test_no_address_can_write_an_entry_of_its_own(uri: str) -> None:
    """Whatever an address contains, it is written as one entry."""
    found, problems = read(
        "".join(format_timemap(LinkFormatTimeMap(original=uri, mementos=(TimeMapEntry(uri, "20140210000001"),))))
    )
    assert problems == {}
    assert len(found.mementos) == 1
    assert asdict(found)["original"] == found.mementos[0].uri


def test_one_memento_is_first_and_last() -> None:
    """As MemGator writes it."""
    lines = list(format_timemap(LinkFormatTimeMap(mementos=(TimeMapEntry("http://w/1", "20140210000001"),))))
    assert lines == [f'<http://w/1>; rel="first last memento"; datetime="{GMT}"']
