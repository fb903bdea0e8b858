"""Map look-ups in file and memory: the paper's sample, hostile URLs and files, batches."""

import gzip
import itertools
import pickle
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.mementomap.opened_maps import FORMS, Form, open_map
from unlost import uri
from unlost._core import MapSource
from unlost.errors import ForeignSchemeError, InputError, UriError, UsageError
from unlost.index import Frequency
from unlost.mementomap import LookupResult, Map

SAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "sample.ukvs"


@FORMS
@pytest.mark.parametrize(
    ("url", "held", "matched", "frequency"),
    [
        ("http://example.com/", True, "com,*", "10000+"),
        ("https://com/", True, "com,*", "10000+"),
        ("https://arxiv.org", True, "org,arxiv)/", "100"),
        ("https://arxiv.org/?q", True, "org,arxiv)/", "100"),
        ("https://arxiv.org/abs/1", True, "org,arxiv)/*", "2500~/900"),
        ("https://arxiv.org/pdf/1", False, "org,arxiv)/pdf/*", "0"),
        ("https://arxiv.org/pdf/1/2?x", False, "org,arxiv)/pdf/*", "0"),
        ("https://arxiv.org/pdf", True, "org,arxiv)/*", "2500~/900"),
        ("https://arxiv.org/pdf.html", True, "org,arxiv)/*", "2500~/900"),
        ("http://www.bbc.co.uk/images/", True, "uk,co,bbc)/images/*", "300+/20-"),
        ("http://www.bbc.co.uk/images/a/b", True, "uk,co,bbc)/images/*", "300+/20-"),
        ("http://www.bbc.co.uk/images-2", False, None, None),
        ("http://bbc.co.uk/", False, None, None),
        ("http://aaa/", False, None, None),
        ("http://zzz/", False, None, None),
    ],
)
def test_lookup_in_sample_map_returns_most_specific_row(
    form: Form, url: str, held: bool, matched: str | None, frequency: str | None
) -> None:
    """An exclusion wildcard excludes pages below it, but not the page itself."""
    expected = LookupResult(uri.key(url).split("?")[0], held, matched, frequency)
    holdings = form(SAMPLE)
    assert holdings.lookup(url) == expected
    assert holdings.lookup_many([url]) == [expected]
    assert holdings.lookup_keys_many([uri.key(url)]) == [expected]
    assert holdings.lookup_key_lines(uri.key(url).encode() + b"\r\n") == [expected]
    assert (expected.held, expected.matched) == (held, matched)
    assert expected.frequency == (None if frequency is None else Frequency.parse(frequency))


@FORMS
def test_map_header_is_available(form: Form) -> None:
    """File and memory maps have the header."""
    holdings = form(SAMPLE)
    assert holdings.header.meta["name"] == "Example Web Archive"
    assert holdings.path == str(SAMPLE)
    assert holdings.problems.total == 0


@FORMS
def test_total_row_matches_only_in_rolled_up_map(form: Form, tmp_path: Path) -> None:
    """`*` is the archive's total, unless the header marks the map as rolled up."""
    total = "* 54321\ncom,a)/ 0\n"
    assert open_map(tmp_path, total, form).lookup("http://a.org/").matched is None
    assert open_map(tmp_path, total, form).lookup_keys_many(["*"])[0].matched is None
    rolled_up = open_map(tmp_path, '!meta {"rolled_up": true}\n' + total, form)
    assert rolled_up.lookup("http://a.org/") == LookupResult("org,a)/", True, "*", "54321")
    assert rolled_up.lookup("http://a.com/").held is False


@FORMS
def test_rows_of_one_key_are_combined(form: Form, tmp_path: Path) -> None:
    """A page is held if it was held in any year; counts are added, and pages may overlap."""
    text = (
        '!fields {"keys": ["surt", "datetime"], "values": ["frequency"]}\n'
        "com,a)/ 2001 0\ncom,a)/ 2002 3/1\ncom,a)/ 2003 4/1\ncom,b)/ 2001 0\ncom,b)/* 2001 5\n"
    )
    holdings = open_map(tmp_path, text, form)
    assert holdings.lookup("http://a.com/") == LookupResult("com,a)/", True, "com,a)/", "7/2-")
    assert holdings.lookup("http://b.com/") == LookupResult("com,b)/", False, "com,b)/", "0")
    assert holdings.lookup("http://b.com/x") == LookupResult("com,b)/x", True, "com,b)/*", "5")


@FORMS
@pytest.mark.parametrize("fields", ["", " x", " 1x", " -1", " 1234567890123456789", ' {"a": 1}'])
def test_unreadable_frequency_is_held(form: Form, fields: str, tmp_path: Path) -> None:
    """A key with an unknown frequency is held."""
    assert open_map(tmp_path, f"com,a)/{fields}", form).lookup("http://a.com/") == LookupResult(
        "com,a)/", True, "com,a)/", "/"
    )


@FORMS
def test_frequency_field_position_is_read_from_header(form: Form, tmp_path: Path) -> None:
    """The header names the value fields, perhaps without a frequency."""
    text = '!fields {"keys": ["surt"], "values": ["language", "frequency"]}\ncom,a)/ en 7 {"x": 1}\n'
    assert str(open_map(tmp_path, text, form).lookup("http://a.com/").frequency) == "7"
    text = '!fields {"keys": ["surt"], "values": ["language"]}\ncom,a)/ en\n'
    assert open_map(tmp_path, text, form).lookup("http://a.com/") == LookupResult("com,a)/", True, "com,a)/", "/")


def test_ip_address_is_found_in_any_notation(tmp_path: Path) -> None:
    """Maps and queries may write IP addresses forwards, reversed or as one number."""
    for row in ("4,3,2,1)/a 1", "1.2.3.4)/a 1", "4,3,2,1)/a/ 1", "1.2.3.4)/* 1"):
        holdings = open_map(tmp_path, row)
        for query in ("http://1.2.3.4/a", "4,3,2,1)/a", "1.2.3.4)/a/", "http://0x01020304/A"):
            assert holdings.lookup(query).held, (row, query)


def test_map_with_long_rows_and_many_headers_is_searched(tmp_path: Path) -> None:
    """Rows of megabytes are searched like others."""
    long = "com,b)/" + "x" * 3_000_000
    header = "".join(f'!meta {{"n{i}": {i}}}\n' for i in range(3000))
    text = header + f'com,a)/ 1 {{"x": "{"y" * 2_000_000}"}}\n{long} 2\ncom,c)/ 3\n'
    for form in (Map.open, Map.load):
        holdings = open_map(tmp_path, text, form)
        assert [holdings.lookup(f"http://{name}.com/").held for name in "abc"] == [True, False, True]
        assert holdings.lookup_keys_many([long])[0].frequency == Frequency(2)
        assert len(holdings.header.meta) == 3000


@FORMS
def test_batch_lookup_returns_errors_in_place(form: Form) -> None:
    """`lookup` raises the error that `lookup_many` returns."""
    holdings = form(SAMPLE)
    good, foreign, bad, also_good = holdings.lookup_many(["http://a.com/", "dns:a.com", b"http://\xff b/", b"com,a)/"])
    assert good == also_good
    assert isinstance(foreign, ForeignSchemeError)
    assert isinstance(bad, UriError)
    with pytest.raises(ForeignSchemeError):
        holdings.lookup("dns:a.com")
    with pytest.raises(TypeError):
        holdings.lookup_many([1])  # type: ignore[list-item]
    assert holdings.lookup_many([]) == []


@FORMS
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 64, 1024, 1025, 9999])
def test_batch_lookup_results_are_an_ordered_sequence(form: Form, threads: int, count: int) -> None:
    """Indexing, slicing, iteration and `held` agree for any number of results and threads."""
    holdings = form(SAMPLE)
    queries = [f"http://{'arxiv.org' if i % 3 else 'bbc.co.uk'}/{i}" for i in range(count)]
    results = holdings.lookup_many(iter(queries), threads)
    expected = [holdings.lookup(each) for each in queries]
    assert isinstance(results, Sequence)
    assert len(results) == count
    assert [results[i] for i in range(-count, count)] == [*expected, *expected]
    assert list(results) == results[:] == expected
    assert results[::-7] == expected[::-7]
    assert results.held == [result.held for result in expected]
    assert results == expected
    assert results == holdings.lookup_many(queries)
    assert results != [*expected, *expected[:1], "one more"]
    assert repr(results) == f"<{count} results, {sum(results.held)} held>"
    for index in (count, -count - 1):
        with pytest.raises(IndexError, match=f"there are {count} results, none numbered {index}"):
            results[index]


@FORMS
def test_held_is_false_for_invalid_url(form: Form) -> None:
    """`held` has one entry per URL."""
    assert form(SAMPLE).lookup_many(["http://arxiv.org/", "dns:arxiv.org", "http://bbc.co.uk/"]).held == [
        True,
        False,
        False,
    ]


@FORMS
def test_batch_lookup_propagates_iterator_exception(form: Form) -> None:
    """An exception of the caller's iterator ends the look-up."""

    def broken() -> Iterator[str]:
        yield from (f"http://arxiv.org/{i}" for i in range(5000))
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        form(SAMPLE).lookup_many(broken(), 3)


@FORMS
def test_lookup_uses_rules_of_map(form: Form, tmp_path: Path) -> None:
    """A map with the papers' rules preserves the case of paths; unknown rules are rejected."""
    rows = "com,a)/A 1\n"
    assert not open_map(tmp_path, rows, form).lookup("http://a.com/A").held
    assert open_map(tmp_path, '!meta {"rules": "papers"}\n' + rows, form).lookup("http://a.com/A").held
    with pytest.raises(InputError, match=r"a\.ukvs: made by unknown rules, 'x'"):
        open_map(tmp_path, '!meta {"rules": "x"}\n' + rows, form)


@FORMS
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"hello world\n", "not a map"),
        (b"\x7fELF\0\0", "not a map"),
        (b'com,a)/ 20140101000000 {"url": "x"}\n', "an index"),
        (b" CDX N b a m s k r M S V g\n", "an index"),
        (b"@context []\n", "a profile"),
    ],
)
def test_invalid_map_file_is_rejected(form: Form, text: bytes, message: str, tmp_path: Path) -> None:
    """The error names the file and its detected kind."""
    with pytest.raises(InputError, match=rf"a\.ukvs: {message}"):
        open_map(tmp_path, text, form)


@FORMS
def test_unreadable_map_file_is_named(form: Form, tmp_path: Path) -> None:
    """Missing files and folders are named in the error."""
    for file in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError, match=str(file)):
            form(file)


def test_compressed_map_is_loaded_but_not_opened(tmp_path: Path) -> None:
    """`open` requires an uncompressed file; a damaged compressed map is rejected."""
    compressed = gzip.compress(SAMPLE.read_bytes())
    assert open_map(tmp_path, compressed, Map.load).lookup("http://a.com/") == Map.open(SAMPLE).lookup("http://a.com/")
    with pytest.raises(InputError, match="compressed"):
        open_map(tmp_path, compressed)
    for damaged, message in ((compressed[:-12], "ends in the middle"), (compressed + b"garbage", "behind the end")):
        with pytest.raises(InputError, match=message):
            open_map(tmp_path, damaged, Map.load)


def test_unsorted_map_is_rejected(tmp_path: Path) -> None:
    """A loaded map is checked completely, an opened map during searches."""
    rows = [f"com,a{i:03})/ 1\n" for i in range(1000)]
    text = "".join(rows[500:] + rows[:500])
    with pytest.raises(InputError, match=r"a\.ukvs: not sorted: the row at byte 6500"):
        open_map(tmp_path, text, Map.load)
    holdings = open_map(tmp_path, text)
    keys = [row.split()[0] for row in rows]
    with pytest.raises(InputError, match=r"a\.ukvs: not sorted"):
        holdings.lookup_keys_many(keys)
    with pytest.raises(InputError, match=r"a\.ukvs: not sorted"):
        [holdings.lookup(key) for key in keys]


def test_open_map_is_unaffected_by_file_replacement(tmp_path: Path) -> None:
    """Renaming another file over the map does not affect open maps."""
    holdings = open_map(tmp_path, "com,a)/ 1\n")
    (tmp_path / "new").write_text("com,b)/ 1\n")
    (tmp_path / "new").replace(tmp_path / "a.ukvs")
    assert holdings.lookup("http://a.com/").held


@FORMS
def test_lookup_results_are_independent_of_threads(form: Form, tmp_path: Path) -> None:
    """Results agree for any number of threads and for concurrent callers."""
    rows = sorted(f"com,a{i % 700})/{i:x}{'/*' if i % 3 else ''} {i}\n" for i in range(20_000))
    holdings = open_map(tmp_path, "".join(rows), form)
    urls = [f"http://a{i % 701}.com/{i:x}/b" for i in range(30_000)]
    keys = "\n".join(uri.key(url) for url in urls).encode()
    expected = holdings.lookup_many(urls, threads=1)
    assert {result.held for result in expected if isinstance(result, LookupResult)} == {True, False}
    for threads in (0, 2, 3, 16, None):
        assert holdings.lookup_many(urls, threads) == expected
        assert holdings.lookup_key_lines(keys, threads) == expected
    with ThreadPoolExecutor(4) as pool:
        assert all(results == expected for results in pool.map(lambda _: holdings.lookup_many(urls), range(8)))


@FORMS
def test_lookup_releases_gil(form: Form, tmp_path: Path) -> None:
    """Another thread runs during a search."""
    rows = "".join(sorted(f"com,a)/{i:x} 1\n" for i in range(5000)))
    holdings = open_map(tmp_path, rows, form)
    # A million path segments, each a candidate: a slow look-up.
    key = "com,a)" + "/a" * 1_000_000
    ended = threading.Event()
    ticks: list[float] = []

    def count() -> None:
        while not ended.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0001)

    thread = threading.Thread(target=count)
    thread.start()
    start = time.perf_counter()
    results = holdings.lookup_keys_many([key] * 20, threads=1)
    end = time.perf_counter()
    ended.set()
    thread.join()
    assert not any(result.held for result in results)
    gaps = [b - a for a, b in itertools.pairwise(ticks)]
    assert max(gaps) < (end - start) / 2


def test_lookup_answer_is_immutable_value() -> None:
    """Answers are equal, hashable and picklable."""
    result = Map.open(SAMPLE).lookup("http://www.bbc.co.uk/images/x")
    same = LookupResult("uk,co,bbc)/images/x", True, "uk,co,bbc)/images/*", Frequency(300, "+", 20, "-"))
    assert result == same
    assert hash(result) == hash(same)
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301  trusted data
    assert result != LookupResult("uk,co,bbc)/images/x", True, "uk,co,bbc)/images/*", "300")
    assert result != object()
    not_held = LookupResult("com,a)/", False)
    assert repr(not_held) == "LookupResult(key='com,a)/', held=False, matched=None, frequency=None)"
    assert (not_held.matched, not_held.frequency) == (None, None)
    assert pickle.loads(pickle.dumps(not_held)) == not_held  # noqa: S301
    with pytest.raises(AttributeError):
        result.held = False  # type: ignore[misc]
    with pytest.raises(InputError):
        LookupResult("com,a)/", True, "com,a)/", "x")


def test_lookup_of_non_utf8_key_preserves_bytes(tmp_path: Path) -> None:
    """Invalid UTF-8 is returned with surrogate escapes."""
    holdings = open_map(tmp_path, b"com,\xff)/* 1\n")
    (result,) = holdings.lookup_keys_many([b"com,\xff)/a b"])
    assert result.key.encode("utf-8", "surrogateescape") == b"com,\xff)/a"
    assert result.matched is not None
    assert result.held
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301


def test_map_source_rows_are_consumed_once() -> None:
    """A second call raises an error."""
    source = MapSource.open(SAMPLE)
    source.rows(1, False)
    with pytest.raises(UsageError):
        source.rows(1, False)


def test_map_open_reads_only_header(tmp_path: Path) -> None:
    """A sparse file of a terabyte is opened within a second."""
    file = tmp_path / "large.ukvs"
    file.write_text("!meta {}\ncom,a)/ 1\n")
    with file.open("r+b") as opened:
        opened.truncate(1 << 40)
    start = time.perf_counter()
    Map.open(file)
    assert time.perf_counter() - start < 1
