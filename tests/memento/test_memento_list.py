"""Memento lists: agreement with the Python model, hostile URIs, hostile bytes, many mementos."""

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
URIS = st.one_of(
    st.builds("{}://{}/{}".format, st.sampled_from(["http", "https", "HTTP"]), st.sampled_from("ab"), st.text("xy/<")),
    st.text(max_size=12),
    st.text(st.characters(min_codepoint=0, max_codepoint=0xDFFF), max_size=6).map("http://a/{}".format),
)
ROWS = st.lists(st.tuples(DATES, st.sampled_from(["a", "b", "ia", "x y\n", ""]), URIS), max_size=12)
ESCAPED_URI = re.compile(r"[!#-;=?-~]*")


def to_mementos(rows: list[tuple[str, str, str]]) -> Mementos:
    """Return these rows as `Mementos`."""
    return Mementos(MementoTuple(*row) for row in rows)


@given(ROWS, DATES, DATES, st.booleans(), st.booleans())
@example(
    [("20140210000001", "b", "https://a/1"), ("20140210000001", "a", "http://a/1")], "20140101000000", "", True, True
)
def test_memento_list_agrees_with_model(
    rows: list[tuple[str, str, str]], one: str, other: str, first: bool, last: bool
) -> None:
    """Order, deduplication, queries and all formats agree."""
    mementos, expected = to_mementos(rows), model.Mementos(rows)
    assert list(mementos) == expected.rows
    assert len(mementos) == len(expected.rows)
    assert [mementos[index] for index in range(-len(mementos), len(mementos))] == expected.rows * 2
    assert (mementos.first, mementos.last) == ((expected.rows[0], expected.rows[-1]) if expected.rows else (None, None))
    assert mementos.pack() == expected.packed()
    assert mementos.closest(one) == expected.closest(one)
    one = one.replace("235960", "235959")
    other = (other or one).replace("235960", "235959")
    assert mementos.until(one) == expected.until(one)
    for span in ((one, other), (None, one), (one, None)):
        assert list(mementos.between(*span)) == expected.between(*span).rows
    assert mementos.by_archive_and_year() == expected.by_archive_and_year()
    assert mementos.link_entries(first, last).decode() == expected.link_entries(first=first, last=last)
    assert mementos.cdxj_lines(first, last).decode() == expected.cdxj_lines(first=first, last=last)
    assert mementos.json_items().decode() == expected.json_items()
    assert mementos.text_lines().decode() == expected.text_lines()


@given(st.lists(ROWS, max_size=4))
def test_merge_is_independent_of_grouping_and_order(lists: list[list[tuple[str, str, str]]]) -> None:
    """Merged lists equal one list of all mementos."""
    merged = Mementos.merge(to_mementos(rows) for rows in lists)
    assert merged == to_mementos([row for rows in lists for row in rows])
    assert merged == Mementos.merge([merged, to_mementos([]), merged])
    assert hash(merged) == hash(to_mementos([row for rows in reversed(lists) for row in rows]))


@given(ROWS, st.integers(-15, 15), st.integers(-15, 15))
def test_slice_equals_list_of_same_mementos(rows: list[tuple[str, str, str]], begin: int, end: int) -> None:
    """A slice equals a list built from its mementos."""
    mementos = to_mementos(rows)
    assert list(mementos[begin:end]) == list(mementos)[begin:end]
    assert mementos[begin:end] == Mementos(list(mementos)[begin:end])
    assert mementos[:] == mementos


@given(ROWS)
def test_packed_mementos_round_trip_is_lossless(rows: list[tuple[str, str, str]]) -> None:
    """Packing and pickling preserve the list."""
    mementos = to_mementos(rows)
    assert Mementos.unpack(mementos.pack()) == mementos
    assert pickle.loads(pickle.dumps(mementos)) == mementos  # noqa: S301  trusted data


PACKED = b"mementos 1 a b\n20140210000001 0 http://a/1\n20150210000001 1 http://b/2\n"


@given(st.binary(max_size=40), st.integers(0, len(PACKED)), st.integers(0, len(PACKED)))
@example(b"", 0, len(PACKED))
@example(b"mementos 1\n", 0, len(PACKED))
@example(b"99999999999999999999", 30, 31)
@example(b" http://c/\n20160230000000 0 http://d/", 42, 42)
def test_corrupt_packed_mementos_are_rejected_or_valid(noise: bytes, begin: int, end: int) -> None:
    """Arbitrary bytes yield sorted, escaped mementos or `InputError`."""
    data = PACKED[:begin] + noise + PACKED[max(begin, end) :]
    try:
        mementos = Mementos.unpack(data)
    except InputError:
        return
    assert list(mementos) == model.Mementos(mementos).rows
    assert all(ESCAPED_URI.fullmatch(each.uri) and ESCAPED_URI.fullmatch(each.archive) for each in mementos)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"mementos 2 a\n", b"mementos 10\n", PACKED[:-1], PACKED + b"\n", PACKED.replace(b" 1 h", b" 2 h"),
        PACKED.replace(b" 1 h", b" -1 h"), PACKED.replace(b"http://b", b"http://b<"), PACKED.replace(b"b/2", b"b 2"),
        PACKED.replace(b"b/2", "é".encode()), PACKED.replace(b"0210000001", b"0230000001"), b"mementos 1 \xff\n",
        PACKED.replace(b"20150210000001", b"2015021000000"), PACKED.replace(b"a b\n", b"a b\r\n"),
    ],
)  # fmt: skip
def test_invalid_packed_mementos_are_rejected(data: bytes) -> None:
    """Unknown versions, incomplete lines, unknown archives and unescaped URIs are invalid."""
    with pytest.raises(InputError, match="packed mementos"):
        Mementos.unpack(data)


def test_invalid_memento_date_is_rejected() -> None:
    """Dates must have 14 digits and exist."""
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


def test_closest_memento_prefers_earlier_of_equal_distance() -> None:
    """Of two equally close mementos the earlier is returned, of several with one date the first."""
    dates = ["20140101000000", "20140101000010", "20140101000010", "20140101000020"]
    mementos = Mementos(MementoTuple(date, "a", f"http://a/{n}") for n, date in enumerate(dates))
    expected = {"00010101000000": 0, "20140101000005": 0, "20140101000006": 1, "20140101000010": 1, "20140101000015": 1}
    expected |= {"20140101000016": 3, "99991231235959": 3}
    assert {date: mementos.closest(date) for date in expected} == expected
    # Across the end of a year, where 14-digit numbers differ more than times.
    mementos = Mementos(
        [MementoTuple("20131231235950", "a", "http://a/1"), MementoTuple("20140101000020", "a", "http://a/2")]
    )
    assert [mementos.closest(date) for date in ("20140101000005", "20140101000006")] == [0, 1]


def test_hostile_uri_cannot_inject_entries() -> None:
    """A listed URI cannot end a URI, a line or a JSON string."""
    hostile = 'http://a/"}\r\n<http://b/>; rel="original",\x00\x1b[31m\\ \u2028\x85é\udcff\ud800'
    mementos = Mementos([MementoTuple("20140210000001", "a", hostile)])
    assert ESCAPED_URI.fullmatch(mementos[0].uri)
    timemap = read_timemap(mementos.link_entries(True, True), Problems())
    assert [memento.uri for memento in timemap.mementos] == [mementos[0].uri]
    assert timemap.original is None
    assert json.loads(mementos.json_items())["uri"] == mementos[0].uri
    assert json.loads(mementos.cdxj_lines(True, True)[15:])["uri"] == mementos[0].uri
    assert mementos.text_lines().count(b"\n") == 1
    # Escaped URIs are not escaped again.
    assert Mementos([mementos[0]]) == mementos


TOKENS = [
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
TOKENS += ['; rel="memento"', '; rel="original"', "http:", "ftp://", '; datetime="Mon, 10 Feb 2014 00:00:01 GMT"', "["]


@given(
    st.lists(st.sampled_from(TOKENS), max_size=30).map("".join),
    st.sampled_from(["http://a.org/map/x/http://b/", "https://a.org", "http://a.org/x?y/../z#f", "http://a.org?q"]),
)
@example('<../x/20140210000001/http://b/>; rel="memento"', "http://a.org/map/link/http://b/")
@example('<?20140210000001/20140210000001>; rel="memento",<http:x/20140210000001>;rel="memento"', "http://a.org/x")
def test_archive_timemap_parser_agrees_with_model(text: str, base: str) -> None:
    """Mementos, links and problems of any text agree, with URIs made absolute."""
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
def test_relative_memento_uri_is_resolved_like_capture_url(link: str) -> None:
    """Both readers resolve relative URIs in the same way."""
    base = "http://a.org/map/link/b/"  # Python's urljoin would merge two slashes
    body = f'<{link}>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT"'.encode()
    found = read_archive_timemap(body, "a", base, Problems()).mementos
    expected = join_url(base, link)
    assert found[0].uri.casefold() == expected.casefold()


def test_non_web_memento_uri_is_counted() -> None:
    """Other schemes, missing and invalid hosts are counted with their position."""
    problems = Problems()
    date = '; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT"'
    links = ["http://a/1", "javascript:alert(1)", "http://", "mailto:a@b", "http://[b", "data:x", "https://:80/"]
    body = ",\n".join(f"<{link}>{date}" for link in links).encode()
    timemap = read_archive_timemap(body, "a", "http://a.org/", problems)
    assert [memento.uri for memento in timemap.mementos] == ["http://a/1"]
    assert problems.counts == {"bad-uri": len(links) - 1}
    assert problems.first["bad-uri"].line == 2


def test_resolved_uris_are_limited_in_size() -> None:
    """Relative URIs with a long base could expand to gigabytes; the excess is counted."""
    base = "http://a.org/" + "x" * 100_000 + "/"
    body = b",".join(b"<%d>;rel=memento;datetime=20140210000001" % n for n in range(3_000))
    problems = Problems()
    timemap = read_archive_timemap(body, "a", base, problems)
    assert 1 << 27 <= timemap.mementos.memory_size < 1 << 28
    assert problems.counts["too-large"] + len(timemap.mementos) == 3_000


def test_seen_mementos_counts_new_mementos() -> None:
    """Mementos that differ only in scheme or archive are not new."""
    seen = MementoDedup()
    mementos = Mementos(MementoTuple(f"201402{day:02d}000000", "a", "http://a/x") for day in range(1, 29))
    assert [seen.add(mementos[:10]), seen.add(mementos[5:15]), seen.add(mementos[:15]), seen.add(mementos)] == [
        10,
        5,
        0,
        13,
    ]
    assert seen.add(Mementos([MementoTuple("20140201000000", "b", "https://a/x")])) == 0


def test_hundred_thousand_mementos_need_little_memory_and_time() -> None:
    """They need little more memory than their text and are processed within seconds."""
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
    mementos = read_archive_timemap(body, "a", "https://web.example.org/", Problems()).mementos
    merged = Mementos.merge([mementos[:60_000], mementos[40_000:], mementos])
    text = merged.link_entries(True, True)
    unpacked = Mementos.unpack(merged.pack())
    closest = [merged.closest(stamp) for stamp in stamps[:1000]]
    elapsed = time.perf_counter() - begin
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(merged) == 100_000 == text.count(b"\n")
    assert unpacked == merged == mementos
    assert None not in closest
    written = sum(len(each.uri) for each in merged)
    assert mementos.memory_size <= sys.getsizeof(mementos) < written + 100_000 * 20
    assert peak < len(text) * 3  # tracemalloc sees only the serialized bytes
    assert elapsed < 5
