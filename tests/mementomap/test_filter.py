"""Filters: no false negatives, bounded size and false-positive rate, deterministic bytes."""

import math
import random
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import real_data
from tests.mementomap import strategies
from tests.mementomap.map_files import write_index
from tests.mementomap.strategies import Row, captures
from tests.models import filter as model
from unlost import uri
from unlost.errors import UriError
from unlost.mementomap import (
    Filter,
    FilterKeyKind,
    FilterOptions,
    add_to_filter,
    build_filter,
    build_map,
    compact_filter,
)

FEWER = settings(max_examples=settings().max_examples // 4)
TINY_MEMORY = 256  # bytes: sixteen hashes
BITS = st.integers(1, 16)
KINDS: st.SearchStrategy[FilterKeyKind] = st.sampled_from(["hxpx", "urir"])
FORMS = st.sampled_from(["cdxj", "cdx", "cdx with header"])
FILES = Path(__file__).parents[2] / "docs" / "examples"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Provide a temporary folder per example."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def expected_keys(rows: list[Row], kind: str) -> set[str]:
    """Return the keys of a filter according to the model."""
    return {key.split("?")[0] if kind == "hxpx" else key for key, _ in captures(rows)}


def assert_all_held(path: Path, rows: list[Row]) -> Filter:
    """Check that every page is held, by single and batch look-ups, by key and URL; return the filter."""
    opened = Filter.open(path)
    queried = sorted({key for key, _ in captures(rows)})
    listed = [strategies.url(key) for key in queried]
    assert opened.lookup_many(listed) == opened.lookup_keys_many(queried) == [True] * len(queried)
    assert opened.lookup_key_lines("\n".join(queried).encode()) == [True] * len(queried)
    assert all(opened.lookup(url) and opened.lookup_key(key) for url, key in zip(listed, queried, strict=True))
    return opened


def write_urls(path: Path, count: int, name: str = "a") -> Path:
    """Write a list of `count` URLs."""
    path.write_text("".join(f"http://{name}{n % 97}.com/{n}\n" for n in range(count)))
    return path


@given(strategies.ROWS, FORMS, BITS, KINDS)
def test_filter_holds_every_input_page(rows: list[Row], form: str, bits: int, kind: FilterKeyKind) -> None:
    """For any bits and key kind; the header has the number of keys and the dates."""
    with temporary_folder() as folder:
        index, file = write_index(folder / "index", rows, form), folder / "a.filter"
        report = build_filter([index], file, FilterOptions(bits=bits, key=kind))
        opened = assert_all_held(file, rows)
        keys, dates = expected_keys(rows, kind), [date for _, date in captures(rows)]
        assert (report.keys, opened.keys, opened.bits, opened.key) == (len(keys), len(keys), bits, kind)
        assert (opened.earliest, opened.latest, opened.built_at) == (min(dates), max(dates), None)
        assert file.stat().st_size <= 1.2 * bits * len(keys) / 8 + 1024


@FEWER
@given(strategies.ROWS, BITS, KINDS, st.lists(strategies.KEYS, max_size=20))
def test_filter_format_agrees_with_documentation(
    rows: list[Row], bits: int, kind: FilterKeyKind, others: list[str]
) -> None:
    """A reader written from docs/filter.md returns the same results, including false positives."""
    with temporary_folder() as folder:
        file = folder / "a.filter"
        build_filter([write_index(folder / "index", rows)], file, FilterOptions(bits=bits, key=kind))
        layers, opened = model.read(file.read_bytes()), Filter.open(file)
        queried = sorted({key for key, _ in captures(rows)}) + others
        assert [model.has(layers, key) for key in queried] == opened.lookup_keys_many(queried)


@FEWER
@given(strategies.ROWS, st.lists(BITS, min_size=2, max_size=4), KINDS)
def test_filter_with_added_layers_holds_every_page(rows: list[Row], widths: list[int], kind: FilterKeyKind) -> None:
    """Added pages are held for any bits; compaction of all inputs yields one layer."""
    assume(len(rows) >= len(widths))  # adding no rows is rejected
    with temporary_folder() as folder:
        file = folder / "a.filter"
        row_sets = [rows[n :: len(widths)] for n in range(len(widths))]
        indexes = [write_index(folder / f"{n}", part) for n, part in enumerate(row_sets)]
        build_filter(indexes[:1], file, FilterOptions(bits=widths[0], key=kind))
        for index, bits in zip(indexes[1:], widths[1:], strict=True):
            before = file.read_bytes()
            add_to_filter(file, [index], FilterOptions(bits=bits))
            assert file.read_bytes().startswith(before)
        opened = assert_all_held(file, rows)
        assert [layer.bits for layer in opened.layers] == widths
        assert opened.keys <= len(expected_keys(rows, kind))
        assert model.read(file.read_bytes())[-1].header["key"] == kind
        compact_filter(file, indexes, file)
        whole = folder / "whole.filter"
        build_filter(indexes, whole, FilterOptions(bits=widths[0], key=kind))
        assert file.read_bytes() == whole.read_bytes()


@FEWER
@given(strategies.ROWS, BITS, KINDS, st.randoms(use_true_random=False))
def test_filter_bytes_are_independent_of_processing(
    rows: list[Row], bits: int, kind: FilterKeyKind, random_: random.Random
) -> None:
    """Threads, memory, order, compression and distribution over files do not affect the bytes."""
    fixed = FilterOptions(bits=bits, key=kind)
    shuffled = random_.sample(rows, len(rows))
    cut = len(rows) // 3
    with temporary_folder() as folder:

        def variant(name: str, row_sets: list[list[Row]], chosen: FilterOptions = fixed) -> bytes:
            """Return the bytes of the filter of some files."""
            inputs = [write_index(folder / f"{n}-{name}", part) for n, part in enumerate(row_sets)]
            build_filter(inputs, folder / f"{name}.filter", chosen)
            return (folder / f"{name}.filter").read_bytes()

        variants = {
            "one thread": variant("one", [rows], replace(fixed, threads=1)),
            "five threads": variant("five", [rows], replace(fixed, threads=5)),
            "spilled": variant("spilled", [rows], replace(fixed, memory=TINY_MEMORY)),
            "spilled by three": variant("spilled3", [rows], replace(fixed, memory=TINY_MEMORY, threads=3)),
            "small blocks": variant("blocks", [rows], replace(fixed, block=100)),
            "shuffled": variant("shuffled", [shuffled]),
            "twice": variant("twice", [rows, shuffled]),
            "gzip": variant("rows.gz", [rows]),
            "zstd": variant("rows.zst", [rows]),
            "split": variant("split", [rows[:cut], rows[cut:]]),
        }
        assert variants == dict.fromkeys(variants, variant("plain", [rows]))


def test_filter_with_partitions_is_independent_of_memory(tmp_path: Path) -> None:
    """Four partitions are built from memory and from temporary files; adding the same pages adds no keys."""
    urls, file, spilled = write_urls(tmp_path / "urls", 600_000), tmp_path / "a.filter", tmp_path / "b.filter"
    build_filter([urls], file, FilterOptions(bits=4))
    build_filter([urls], spilled, FilterOptions(bits=4, memory=1 << 20, threads=3))
    assert file.read_bytes() == spilled.read_bytes()
    assert b"\npartitions 4\n" in file.read_bytes()[:400]
    opened = Filter.open(file)
    queried = urls.read_text().splitlines()
    assert opened.keys == len(queried)
    assert all(opened.lookup_many(queried))
    report = add_to_filter(file, [urls], FilterOptions(memory=1 << 20))
    assert (report.keys, len(Filter.open(file).layers), all(Filter.open(file).lookup_many(queried, 3))) == (0, 2, True)


@pytest.mark.real_data
@pytest.mark.parametrize("kind", ["hxpx", "urir"])
def test_filter_holds_all_real_urls(tmp_path: Path, kind: FilterKeyKind) -> None:
    """1.2 million URLs are held; invalid ones are errors on both sides."""
    urls, file = tmp_path / "urls", tmp_path / "a.filter"
    queried = real_data.urls()
    urls.write_text("\n".join(queried))
    report = build_filter([urls], file, FilterOptions(bits=5, key=kind, kind="urls"))
    results = Filter.open(file).lookup_many(queried)
    assert results.count(False) == 0
    assert report.counted == results.count(True) > 1_000_000
    assert file.stat().st_size <= 1.2 * 5 * report.keys / 8 + 1024


SIZES = [*range(20), 41, 42, 100, 123, 356, 500, 1037, 1500, 2000, 3015, 5000, 8772, 10_000, 26_000, 75_000, 300_000]


@pytest.mark.parametrize("count", SIZES)
def test_filter_size_is_within_documented_bound(tmp_path: Path, count: int) -> None:
    """At most 1.2 bits per key and fingerprint bit plus 1 KiB, for any number of keys."""
    urls, file = write_urls(tmp_path / "urls", count), tmp_path / "a.filter"
    with urls.open("a") as more:
        more.write("dns:a.com\n")  # empty input is an error; this line is read but not counted
    for bits in (1, 2, 8, 15, 16):
        build_filter([urls], file, FilterOptions(bits=bits))
        opened = Filter.open(file)
        assert (opened.keys, opened.check()) == (count, [])
        assert file.stat().st_size <= 1.2 * bits * count / 8 + 1024


def test_filter_false_positive_rate_is_as_documented(tmp_path: Path) -> None:
    """The rate is one in 2^bits, within five standard deviations."""
    urls, file = write_urls(tmp_path / "urls", 5000), tmp_path / "a.filter"
    others = [f"com,b{n % 89})/{n}" for n in range(200_000)]
    for bits in range(1, 17):
        build_filter([urls], file, FilterOptions(bits=bits))
        expected = len(others) / 2**bits
        wrong = sum(Filter.open(file).lookup_keys_many(others))
        assert abs(wrong - expected) <= 5 * math.sqrt(expected) + 1, bits


def test_filter_bytes_equal_stored_sample(tmp_path: Path) -> None:
    """Changed bytes require a new format version."""
    file = tmp_path / "a.filter"
    build_filter([FILES / "pages.cdxj"], file)
    assert file.read_bytes() == (FILES / "pages.filter").read_bytes()
    assert len(model.read(file.read_bytes())) == 1


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_model_hash_agrees_with_published_vectors(text: bytes, hashed: int) -> None:
    """The model's xxh64 agrees with the published test vectors."""
    assert model.xxh64(text) == hashed


def test_filter_header_records_row_selection(tmp_path: Path) -> None:
    """Rows added later are selected with the same options."""
    index, file = FILES / "pages.cdxj", tmp_path / "a.filter"
    options = FilterOptions(
        status=frozenset({"200", "301"}), exclude=frozenset({"robots"}), rules="papers", built_at="20240101000000"
    )
    build_filter([index], file, options)
    add_to_filter(file, [index])
    compact_filter(file, [index], tmp_path / "b.filter")
    first, second = Filter.open(file).layers
    (whole,) = Filter.open(tmp_path / "b.filter").layers
    assert {(layer.status, layer.exclude, layer.rules) for layer in (first, second, whole)} == {
        (frozenset({"200", "301"}), frozenset({"robots"}), "papers")
    }
    assert (first.built_at, second.built_at, second.keys, whole.keys) == ("20240101000000", None, 0, first.keys)
    assert Filter.open(file).built_at == "20240101000000"


@pytest.mark.parametrize(
    ("date", "expected"),
    [("2014", "20140101000000"), ("20140210000001999", "20140210000001"), ("2014-02-10T00:00:01Z", "20140210000001"),
     ("99999999999999", None)],
)  # fmt: skip
def test_partial_capture_date_is_padded_in_filter_header(tmp_path: Path, date: str, expected: str | None) -> None:
    """An invalid date is ignored, but its page is counted."""
    index, file = tmp_path / "a.cdxj", tmp_path / "a.filter"
    index.write_text(f'com,a)/ {date} {{"url": "http://a.com/"}}\n')
    build_filter([index], file)
    opened = Filter.open(file)
    assert (opened.earliest, opened.latest, opened.lookup("http://a.com/")) == (expected, expected, True)


def test_filter_of_map_equals_filter_of_index(tmp_path: Path) -> None:
    """The filters differ only in the dates, which maps lack."""
    index, file, held = FILES / "pages.cdxj", tmp_path / "a.filter", tmp_path / "a.ukvs"
    build_map([index], held)
    build_filter([held], file)
    opened, golden = Filter.open(file), (FILES / "pages.filter").read_bytes()
    assert (opened.keys, opened.earliest) == (7, None)
    assert file.read_bytes()[-171:] == golden[-171:]


def test_filter_of_map_omits_excluded_pages(tmp_path: Path) -> None:
    """Excluded pages and subtrees are omitted; uncertain frequencies are held."""
    held, file = tmp_path / "a.ukvs", tmp_path / "a.filter"
    held.write_text("* 9\ncom,a)/ 5\ncom,a)/b 0\ncom,a)/c/* 0\ncom,a)/d /\ncom,a)/E/ 1\n")
    report = build_filter([held], file, FilterOptions(bits=16))
    assert (report.keys, report.filtered) == (3, 2)
    queried = [f"http://a.com/{page}" for page in ("", "b", "c/x", "d", "e")]
    assert Filter.open(file).lookup_many(queried) == [True, False, False, True, True]


def test_filter_lookup_of_invalid_url_yields_error(tmp_path: Path) -> None:
    """A single look-up raises the error, a batch returns it in place of the result."""
    opened = Filter.open(FILES / "pages.filter")
    held, bad = opened.lookup_many(["http://example.com/a", "http://a b/"])
    assert held is True
    assert isinstance(bad, UriError)
    with pytest.raises(UriError):
        opened.lookup("http://a b/")
    assert opened.lookup_many([]) == opened.lookup_keys_many([]) == []
    foreign = tmp_path / "foreign"
    foreign.write_text("dns:a.com\n")
    build_filter([foreign], tmp_path / "e.filter")
    nothing = Filter.open(tmp_path / "e.filter")
    assert (nothing.keys, nothing.lookup("http://example.com/a"), nothing.earliest) == (0, False, None)


def test_filter_lookup_is_thread_safe(tmp_path: Path) -> None:
    """Concurrent look-ups agree, also during the first checksum verification."""
    urls, file = write_urls(tmp_path / "urls", 50_000), tmp_path / "a.filter"
    build_filter([urls], file)
    queried = urls.read_text().splitlines()
    opened = Filter.open(file)
    with ThreadPoolExecutor(8) as pool:
        assert all(all(results) for results in pool.map(opened.lookup_many, [queried] * 8))


@pytest.mark.parametrize("end", ["\n", "\r\n", " 20140101 {}\n"])
def test_filter_lookup_of_key_lines_returns_result_per_line(end: str, tmp_path: Path) -> None:
    """Results are in line order for any number of threads and any line end."""
    build_filter([write_urls(tmp_path / "a.txt", 30_000)], tmp_path / "a.filter")
    opened = Filter.open(tmp_path / "a.filter")
    queried = [f"com,a{n % 97})/{n}" for n in range(60_000)]
    queried[7] = queried[-1] = ""
    expected = opened.lookup_keys_many(queried)
    assert expected.count(True) > 29_000
    assert not all(expected)
    text = "".join(f"{key}{end}" for key in queried).encode()
    for threads in (1, 2, 5, None):
        assert opened.lookup_key_lines(text, threads) == expected
    assert opened.lookup_key_lines(text + b"com,a0)/0") == [*expected, True]
    assert opened.lookup_key_lines(b"") == []


def test_filter_lookup_ignores_query_and_trailing_fields() -> None:
    """The query and fields after white space are ignored."""
    opened = Filter.open(FILES / "pages.filter")
    key = uri.key("http://example.com/a?b=c")
    assert opened.lookup_keys_many([key, f"{key} 2014", b"com,example)/a\t7"]) == [True] * 3
