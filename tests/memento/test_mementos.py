"""The copies of a page: agreement with the slow model, hostile addresses, hostile bytes, many copies."""

import json
import pickle
import re
import sys
import time
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.models import mementos as model
from unlost import _core
from unlost.archives import join_url
from unlost.errors import DateError, InputError, UsageError
from unlost.memento import MementoDedup, Mementos, MementoTuple, read_archive_timemap, read_timemap
from unlost.problems import Problems

DATES = st.one_of(
    st.sampled_from(["20140210000001", "20140210000002", "20140210000003", "00010101000000", "99991231235959"]),
    st.datetimes().map(lambda moment: f"{moment.year:04d}{moment:%m%d%H%M%S}"),
    st.just("20161231235960"),
)
ADDRESSES = st.one_of(
    st.builds("{}://{}/{}".format, st.sampled_from(["http", "https", "HTTP"]), st.sampled_from("ab"), st.text("xy/<")),
    st.text(max_size=12),
    st.text(st.characters(min_codepoint=0, max_codepoint=0xDFFF), max_size=6).map("http://a/{}".format),
)
ROWS = st.lists(st.tuples(DATES, st.sampled_from(["a", "b", "ia", "x y\n", ""]), ADDRESSES), max_size=12)
HARMLESS = re.compile(r"[!#-;=?-~]*")


def listed(rows: list[tuple[str, str, str]]) -> Mementos:
    """Return these copies."""
    return Mementos(MementoTuple(*row) for row in rows)


@given(ROWS, DATES, DATES, st.booleans(), st.booleans())
@example(
    [("20140210000001", "b", "https://a/1"), ("20140210000001", "a", "http://a/1")], "20140101000000", "", True, True
)
def test_it_agrees_with_the_model(
    rows: list[tuple[str, str, str]], one: str, other: str, first: bool, last: bool
) -> None:
    """Order, duplicates, questions and every format are those of a sorted list of tuples."""
    copies, expected = listed(rows), model.Mementos(rows)
    assert list(copies) == expected.rows
    assert len(copies) == len(expected.rows)
    assert [copies[place] for place in range(-len(copies), len(copies))] == expected.rows * 2
    assert (copies.first, copies.last) == ((expected.rows[0], expected.rows[-1]) if expected.rows else (None, None))
    assert copies.pack() == expected.packed()
    assert copies.closest(one) == expected.closest(one)
    one = one.replace("235960", "235959")
    other = (other or one).replace("235960", "235959")
    assert copies.until(one) == expected.until(one)
    for span in ((one, other), (None, one), (one, None)):
        assert list(copies.between(*span)) == expected.between(*span).rows
    assert copies.by_archive_and_year() == expected.by_archive_and_year()
    assert copies.link_entries(first, last).decode() == expected.link_entries(first=first, last=last)
    assert copies.cdxj_lines(first, last).decode() == expected.cdxj_lines(first=first, last=last)
    assert copies.json_items().decode() == expected.json_items()
    assert copies.text_lines().decode() == expected.text_lines()


@given(st.lists(ROWS, max_size=4))
def test_merging_is_listing_all_at_once(parts: list[list[tuple[str, str, str]]]) -> None:
    """It does not matter how copies are spread over lists, nor in which order they come."""
    merged = Mementos.merge(listed(rows) for rows in parts)
    assert merged == listed([row for rows in parts for row in rows])
    assert merged == Mementos.merge([merged, listed([]), merged])
    assert hash(merged) == hash(listed([row for rows in reversed(parts) for row in rows]))


@given(ROWS, st.integers(-15, 15), st.integers(-15, 15))
def test_a_slice_is_a_list_of_its_own(rows: list[tuple[str, str, str]], begin: int, end: int) -> None:
    """A part is equal to a list of the same copies, also if not all archives are in it."""
    copies = listed(rows)
    assert list(copies[begin:end]) == list(copies)[begin:end]
    assert copies[begin:end] == Mementos(list(copies)[begin:end])
    assert copies[:] == copies


@given(ROWS)
def test_what_is_packed_comes_back(rows: list[tuple[str, str, str]]) -> None:
    """Packed, pickled and read again, it is the same."""
    copies = listed(rows)
    assert Mementos.unpack(copies.pack()) == copies
    assert pickle.loads(pickle.dumps(copies)) == copies  # noqa: S301  our own


PACKED = b"mementos 1 a b\n20140210000001 0 http://a/1\n20150210000001 1 http://b/2\n"


@given(st.binary(max_size=40), st.integers(0, len(PACKED)), st.integers(0, len(PACKED)))
@example(b"", 0, len(PACKED))
@example(b"mementos 1\n", 0, len(PACKED))
@example(b"99999999999999999999", 30, 31)
@example(b" http://c/\n20160230000000 0 http://d/", 42, 42)
def test_hostile_bytes_are_refused_or_harmless(noise: bytes, begin: int, end: int) -> None:
    """Whatever was kept, what comes of it is copies in order, or InputError."""
    data = PACKED[:begin] + noise + PACKED[max(begin, end) :]
    try:
        copies = Mementos.unpack(data)
    except InputError:
        return
    assert list(copies) == model.Mementos(copies).rows
    assert all(HARMLESS.fullmatch(copy.uri) and HARMLESS.fullmatch(copy.archive) for copy in copies)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"mementos 2 a\n", b"mementos 10\n", PACKED[:-1], PACKED + b"\n", PACKED.replace(b" 1 h", b" 2 h"),
        PACKED.replace(b" 1 h", b" -1 h"), PACKED.replace(b"http://b", b"http://b<"), PACKED.replace(b"b/2", b"b 2"),
        PACKED.replace(b"b/2", "é".encode()), PACKED.replace(b"0210000001", b"0230000001"), b"mementos 1 \xff\n",
        PACKED.replace(b"20150210000001", b"2015021000000"), PACKED.replace(b"a b\n", b"a b\r\n"),
    ],
)  # fmt: skip
def test_what_is_not_packed_is_refused(data: bytes) -> None:
    """A version of tomorrow, half a line, an archive that nobody named, an address that is not escaped."""
    with pytest.raises(InputError, match="packed mementos"):
        Mementos.unpack(data)


def test_what_is_no_date_is_refused() -> None:
    """Dates are whole and are dates."""
    for date in ("2014", "20140230000000", "2014021000000x", ""):
        with pytest.raises(DateError):
            Mementos([MementoTuple(date, "a", "http://a/")])
        with pytest.raises(DateError):
            Mementos().closest(date)
        with pytest.raises(DateError):
            Mementos().between(date, None)
    with pytest.raises(UsageError):
        Mementos()[::2]
    with pytest.raises(IndexError):
        Mementos()[0]


def test_the_closest_copy() -> None:
    """Before the first it is the first, behind the last the last; of two the earlier, of many the first."""
    dates = ["20140101000000", "20140101000010", "20140101000010", "20140101000020"]
    copies = Mementos(MementoTuple(date, "a", f"http://a/{n}") for n, date in enumerate(dates))
    asked = {"00010101000000": 0, "20140101000005": 0, "20140101000006": 1, "20140101000010": 1, "20140101000015": 1}
    asked |= {"20140101000016": 3, "99991231235959": 3}
    assert {date: copies.closest(date) for date in asked} == asked
    # Over the end of a year, where numbers are further apart than moments.
    copies = Mementos(
        [MementoTuple("20131231235950", "a", "http://a/1"), MementoTuple("20140101000020", "a", "http://a/2")]
    )
    assert [copies.closest(date) for date in ("20140101000005", "20140101000006")] == [0, 1]


def test_nobody_writes_entries_of_their_own() -> None:
    """What an archive lists can end neither an address, nor a line, nor a text in JSON."""
    hostile = 'http://a/"}\r\n<http://b/>; rel="original",\x00\x1b[31m\\ \u2028\x85é\udcff\ud800'
    copies = Mementos([MementoTuple("20140210000001", "a", hostile)])
    assert HARMLESS.fullmatch(copies[0].uri)
    found = read_timemap(copies.link_entries(True, True), Problems())
    assert [memento.uri for memento in found.mementos] == [copies[0].uri]
    assert found.original is None
    assert json.loads(copies.json_items())["uri"] == copies[0].uri
    assert json.loads(copies.cdxj_lines(True, True)[15:])["uri"] == copies[0].uri
    assert copies.text_lines().count(b"\n") == 1
    # What is escaped already stays as it is.
    assert Mementos([copies[0]]) == copies


PIECES = [
    "<",
    ">",
    ";",
    ",",
    "\n",
    '"',
    "http://b/",
    "https://b/",
    "//c",
    "/",
    "..",
    "?",
    "#",
    "20140210000001",
    "x",
    "é",
]
PIECES += ['; rel="memento"', '; rel="original"', "http:", "ftp://", '; datetime="Mon, 10 Feb 2014 00:00:01 GMT"', "["]


@given(
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
    st.sampled_from(["http://a.org/map/x/http://b/", "https://a.org", "http://a.org/x?y/../z#f", "http://a.org?q"]),
)
@example('<../x/20140210000001/http://b/>; rel="memento"', "http://a.org/map/link/http://b/")
@example('<?20140210000001/20140210000001>; rel="memento",<http:x/20140210000001>;rel="memento"', "http://a.org/x")
def test_lists_are_read_as_the_model_reads_them(text: str, base: str) -> None:
    """The copies, the links and the faults of any text are those of the model, with addresses made absolute."""
    body = text.encode()
    mementos, original, itself, timegate, timemaps, others, faults = _core.read_mementos(body, "a", base)
    expected = model.read(body, "a", base)
    assert [*mementos] == expected["mementos"].rows  # type: ignore[attr-defined]
    assert (original, itself, timegate) == (expected["original"], expected["itself"], expected["timegate"])
    assert timemaps == expected["timemaps"]
    assert others == expected["others"]
    counts = {kind: times for kind, times, _ in faults}
    assert counts.pop("bad-uri", 0) == expected["bad"]
    assert counts == expected["faults"]


@pytest.mark.parametrize(
    "link",
    ["http://b/x?y", "https://b/", "/x", "/x/http://b/", "//b/x", "x", "../x", "./x/../y", "?q", "x?q#f", "HTTP://B/x"],
)
def test_relative_links_lead_where_captures_lead(link: str) -> None:
    """The same TimeMap gives the same addresses whichever way it is read."""
    base = "http://a.org/map/link/b/"  # with two slashes in it, Python's way makes one of them
    body = f'<{link}>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT"'.encode()
    found = read_archive_timemap(body, "a", base, Problems()).mementos
    expected = join_url(base, link)
    assert found[0].uri.casefold() == expected.casefold()


def test_what_is_no_address_of_the_web_is_counted() -> None:
    """Other schemes, no host and half an address are faults, with their place."""
    problems = Problems()
    date = '; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT"'
    links = ["http://a/1", "javascript:alert(1)", "http://", "mailto:a@b", "http://[b", "data:x", "https://:80/"]
    body = ",\n".join(f"<{link}>{date}" for link in links).encode()
    found = read_archive_timemap(body, "a", "http://a.org/", problems)
    assert [memento.uri for memento in found.mementos] == ["http://a/1"]
    assert problems.counts == {"bad-uri": len(links) - 1}
    assert problems.first["bad-uri"].line == 2


def test_little_text_does_not_become_much() -> None:
    """Relative links to a long address are cut at a cap, and counted: they could be gigabytes."""
    base = "http://a.org/" + "x" * 100_000 + "/"
    body = b",".join(b"<%d>;rel=memento;datetime=20140210000001" % n for n in range(3_000))
    problems = Problems()
    found = read_archive_timemap(body, "a", base, problems)
    assert 1 << 27 <= found.mementos.memory_size < 1 << 28
    assert problems.counts["too-large"] + len(found.mementos) == 3_000


def test_pages_that_repeat_others_are_known() -> None:
    """How many copies are new is told, whatever their scheme or archive."""
    seen = MementoDedup()
    copies = Mementos(MementoTuple(f"201402{day:02d}000000", "a", "http://a/x") for day in range(1, 29))
    assert [seen.add(copies[:10]), seen.add(copies[5:15]), seen.add(copies[:15]), seen.add(copies)] == [10, 5, 0, 13]
    assert seen.add(Mementos([MementoTuple("20140201000000", "b", "https://a/x")])) == 0


def test_a_hundred_thousand_copies() -> None:
    """They take little more memory than their text, no Python object each, and a fraction of a second."""
    stamps = [
        f"{2000 + n // 10_000}{n // 1000 % 10 + 1:02d}{n % 28 + 1:02d}{n % 24:02d}{n % 60:02d}{n // 28 % 60:02d}"
        for n in range(100_000)
    ]
    body = ",\n".join(
        f'<https://web.example.org/web/{stamp}/http://example.com/{n}>; rel="memento"; datetime="{stamp}"'
        for n, stamp in enumerate(stamps)
    ).encode()
    tracemalloc.start()
    begin = time.perf_counter()
    copies = read_archive_timemap(body, "a", "https://web.example.org/", Problems()).mementos
    merged = Mementos.merge([copies[:60_000], copies[40_000:], copies])
    text = merged.link_entries(True, True)
    kept = Mementos.unpack(merged.pack())
    found = [merged.closest(stamp) for stamp in stamps[:1000]]
    took = time.perf_counter() - begin
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(merged) == 100_000 == text.count(b"\n")
    assert kept == merged == copies
    assert None not in found
    written = sum(len(copy.uri) for copy in merged)
    assert copies.memory_size <= sys.getsizeof(copies) < written + 100_000 * 20
    assert peak < len(text) * 3  # what Python sees: the bytes that were written, and no more
    assert took < 5
