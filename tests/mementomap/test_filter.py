"""Filters: never a false negative, no larger than promised, wrong no more often than promised, the same everywhere."""

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
from tests.mementomap.files import write_index
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
def folder() -> Iterator[Path]:
    """Give a folder of its own to each example."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def keys_of(rows: list[Row], kind: str) -> set[str]:
    """Return the model of a filter: a set."""
    return {key.split("?")[0] if kind == "hxpx" else key for key, _ in captures(rows)}


def assert_held(path: Path, rows: list[Row]) -> Filter:
    """See that every page is held, by one look-up or many, by key or address; return the filter."""
    opened = Filter.open(path)
    asked = sorted({key for key, _ in captures(rows)})
    addresses = [strategies.url(key) for key in asked]
    assert opened.lookup_many(addresses) == opened.lookup_keys_many(asked) == [True] * len(asked)
    assert opened.lookup_key_lines("\n".join(asked).encode()) == [True] * len(asked)
    assert all(opened.lookup(address) and opened.lookup_key(key) for address, key in zip(addresses, asked, strict=True))
    return opened


def pages(path: Path, count: int, name: str = "a") -> Path:
    """Write a list of so many addresses."""
    path.write_text("".join(f"http://{name}{n % 97}.com/{n}\n" for n in range(count)))
    return path


@given(strategies.ROWS, FORMS, BITS, KINDS)
def test_what_went_in_is_held(rows: list[Row], form: str, bits: int, kind: FilterKeyKind) -> None:
    """In every width and with either kind of key; the header counts keys and tells the dates."""
    with folder() as where:
        index, file = write_index(where / "index", rows, form), where / "a.filter"
        report = build_filter([index], file, FilterOptions(bits=bits, key=kind))
        opened = assert_held(file, rows)
        keys, dates = keys_of(rows, kind), [date for _, date in captures(rows)]
        assert (report.keys, opened.keys, opened.bits, opened.key) == (len(keys), len(keys), bits, kind)
        assert (opened.earliest, opened.latest, opened.built_at) == (min(dates), max(dates), None)
        assert file.stat().st_size <= 1.2 * bits * len(keys) / 8 + 1024


@FEWER
@given(strategies.ROWS, BITS, KINDS, st.lists(strategies.KEYS, max_size=20))
def test_the_file_says_what_the_docs_say(rows: list[Row], bits: int, kind: FilterKeyKind, others: list[str]) -> None:
    """A reader that was written from docs/filter.md gives the same answers, right and wrong ones."""
    with folder() as where:
        file = where / "a.filter"
        build_filter([write_index(where / "index", rows)], file, FilterOptions(bits=bits, key=kind))
        layers, opened = model.read(file.read_bytes()), Filter.open(file)
        asked = sorted({key for key, _ in captures(rows)}) + others
        assert [model.has(layers, key) for key in asked] == opened.lookup_keys_many(asked)


@FEWER
@given(strategies.ROWS, st.lists(BITS, min_size=2, max_size=4), KINDS)
def test_chains_lose_nothing(rows: list[Row], widths: list[int], kind: FilterKeyKind) -> None:
    """What is added in pieces is held as well, whatever the widths; compacted from all, there is one layer again."""
    assume(len(rows) >= len(widths))  # adding nothing is refused
    with folder() as where:
        file = where / "a.filter"
        parts = [rows[n :: len(widths)] for n in range(len(widths))]
        indexes = [write_index(where / f"{n}", part) for n, part in enumerate(parts)]
        build_filter(indexes[:1], file, FilterOptions(bits=widths[0], key=kind))
        for index, bits in zip(indexes[1:], widths[1:], strict=True):
            before = file.read_bytes()
            add_to_filter(file, [index], FilterOptions(bits=bits))
            assert file.read_bytes().startswith(before)
        opened = assert_held(file, rows)
        assert [layer.bits for layer in opened.layers] == widths
        assert opened.keys <= len(keys_of(rows, kind))
        assert model.read(file.read_bytes())[-1].header["key"] == kind
        compact_filter(file, indexes, file)
        whole = where / "whole.filter"
        build_filter(indexes, whole, FilterOptions(bits=widths[0], key=kind))
        assert file.read_bytes() == whole.read_bytes()


@FEWER
@given(strategies.ROWS, BITS, KINDS, st.randoms(use_true_random=False))
def test_a_filter_depends_on_nothing_but_the_rows(
    rows: list[Row], bits: int, kind: FilterKeyKind, random_: random.Random
) -> None:
    """Not on threads, memory, order, compression, or on how the rows are split over files: the same bytes."""
    fixed = FilterOptions(bits=bits, key=kind)
    shuffled = random_.sample(rows, len(rows))
    cut = len(rows) // 3
    with folder() as where:

        def variant(name: str, parts: list[list[Row]], chosen: FilterOptions = fixed) -> bytes:
            """Return the bytes of the filter of some files."""
            inputs = [write_index(where / f"{n}-{name}", part) for n, part in enumerate(parts)]
            build_filter(inputs, where / f"{name}.filter", chosen)
            return (where / f"{name}.filter").read_bytes()

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


def test_many_partitions_do_not_depend_on_memory_either(tmp_path: Path) -> None:
    """Four of them, from memory and from temporary files; every page is held, and adding them again adds none."""
    urls, file, spilled = pages(tmp_path / "urls", 600_000), tmp_path / "a.filter", tmp_path / "b.filter"
    build_filter([urls], file, FilterOptions(bits=4))
    build_filter([urls], spilled, FilterOptions(bits=4, memory=1 << 20, threads=3))
    assert file.read_bytes() == spilled.read_bytes()
    assert b"\npartitions 4\n" in file.read_bytes()[:400]
    opened = Filter.open(file)
    asked = urls.read_text().splitlines()
    assert opened.keys == len(asked)
    assert all(opened.lookup_many(asked))
    report = add_to_filter(file, [urls], FilterOptions(memory=1 << 20))
    assert (report.keys, len(Filter.open(file).layers), all(Filter.open(file).lookup_many(asked, 3))) == (0, 2, True)


@pytest.mark.real_data
@pytest.mark.parametrize("kind", ["hxpx", "urir"])
def test_no_real_page_is_denied(tmp_path: Path, kind: FilterKeyKind) -> None:
    """1.2 million addresses, whatever they look like; those that are none are errors on both sides."""
    urls, file = tmp_path / "urls", tmp_path / "a.filter"
    asked = real_data.urls()
    urls.write_text("\n".join(asked))
    report = build_filter([urls], file, FilterOptions(bits=5, key=kind, kind="urls"))
    answers = Filter.open(file).lookup_many(asked)
    assert answers.count(False) == 0
    assert report.counted == answers.count(True) > 1_000_000
    assert file.stat().st_size <= 1.2 * 5 * report.keys / 8 + 1024


SIZES = [*range(20), 41, 42, 100, 123, 356, 500, 1037, 1500, 2000, 3015, 5000, 8772, 10_000, 26_000, 75_000, 300_000]


@pytest.mark.parametrize("count", SIZES)
def test_no_filter_is_larger_than_promised(tmp_path: Path, count: int) -> None:
    """1.2 bits a key for each bit of a fingerprint, and a kilobyte: for every number of keys."""
    urls, file = pages(tmp_path / "urls", count), tmp_path / "a.filter"
    with urls.open("a") as more:
        more.write("dns:a.com\n")  # empty input is an error; this is read, and not counted
    for bits in (1, 2, 8, 15, 16):
        build_filter([urls], file, FilterOptions(bits=bits))
        opened = Filter.open(file)
        assert (opened.keys, opened.check()) == (count, [])
        assert file.stat().st_size <= 1.2 * bits * count / 8 + 1024


def test_yes_is_wrong_as_often_as_promised(tmp_path: Path) -> None:
    """One in 2^bits, in every width, within five standard deviations."""
    urls, file = pages(tmp_path / "urls", 5000), tmp_path / "a.filter"
    others = [f"com,b{n % 89})/{n}" for n in range(200_000)]
    for bits in range(1, 17):
        build_filter([urls], file, FilterOptions(bits=bits))
        expected = len(others) / 2**bits
        wrong = sum(Filter.open(file).lookup_keys_many(others))
        assert abs(wrong - expected) <= 5 * math.sqrt(expected) + 1, bits


def test_the_bytes_of_a_filter_are_fixed(tmp_path: Path) -> None:
    """One that was kept is built again to the byte; should it ever change, its version must change with it."""
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
def test_the_models_hash_is_the_published_one(text: bytes, hashed: int) -> None:
    """Its test vectors."""
    assert model.xxh64(text) == hashed


def test_the_rows_that_count_are_kept_in_the_header(tmp_path: Path) -> None:
    """So that what is added later is chosen in the same way."""
    index, file = FILES / "pages.cdxj", tmp_path / "a.filter"
    chosen = FilterOptions(
        status=frozenset({"200", "301"}), exclude=frozenset({"robots"}), rules="papers", built_at="20240101000000"
    )
    build_filter([index], file, chosen)
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
def test_dates_that_are_cut_count_from_their_beginning(tmp_path: Path, date: str, expected: str | None) -> None:
    """As everywhere; one that is none does not count, and its page does."""
    index, file = tmp_path / "a.cdxj", tmp_path / "a.filter"
    index.write_text(f'com,a)/ {date} {{"url": "http://a.com/"}}\n')
    build_filter([index], file)
    opened = Filter.open(file)
    assert (opened.earliest, opened.latest, opened.lookup("http://a.com/")) == (expected, expected, True)


def test_maps_without_wildcards_make_the_same_filter(tmp_path: Path) -> None:
    """But for the dates, which maps do not have."""
    index, file, held = FILES / "pages.cdxj", tmp_path / "a.filter", tmp_path / "a.ukvs"
    build_map([index], held)
    build_filter([held], file)
    opened, golden = Filter.open(file), (FILES / "pages.filter").read_bytes()
    assert (opened.keys, opened.earliest) == (7, None)
    assert file.read_bytes()[-171:] == golden[-171:]


def test_what_a_map_excludes_is_not_held(tmp_path: Path) -> None:
    """Neither a page nor everything below one; doubtful frequencies are held."""
    held, file = tmp_path / "a.ukvs", tmp_path / "a.filter"
    held.write_text("* 9\ncom,a)/ 5\ncom,a)/b 0\ncom,a)/c/* 0\ncom,a)/d /\ncom,a)/E/ 1\n")
    report = build_filter([held], file, FilterOptions(bits=16))
    assert (report.keys, report.filtered) == (3, 2)
    asked = [f"http://a.com/{page}" for page in ("", "b", "c/x", "d", "e")]
    assert Filter.open(file).lookup_many(asked) == [True, False, False, True, True]


def test_bad_addresses_are_answered_by_their_errors(tmp_path: Path) -> None:
    """One by one they are raised, in a batch they stand where the answers would."""
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


def test_several_threads_may_ask_at_once(tmp_path: Path) -> None:
    """Also while what they read is being checked for the first time."""
    urls, file = pages(tmp_path / "urls", 50_000), tmp_path / "a.filter"
    build_filter([urls], file)
    asked = urls.read_text().splitlines()
    opened = Filter.open(file)
    with ThreadPoolExecutor(8) as pool:
        assert all(all(answers) for answers in pool.map(opened.lookup_many, [asked] * 8))


@pytest.mark.parametrize("end", ["\n", "\r\n", " 20140101 {}\n"])
def test_keys_in_a_text_are_answered_line_by_line(end: str, tmp_path: Path) -> None:
    """Every line is answered in its place, on any number of threads, with an end of the last one or without."""
    build_filter([pages(tmp_path / "a.txt", 30_000)], tmp_path / "a.filter")
    opened = Filter.open(tmp_path / "a.filter")
    asked = [f"com,a{n % 97})/{n}" for n in range(60_000)]
    asked[7] = asked[-1] = ""
    expected = opened.lookup_keys_many(asked)
    assert expected.count(True) > 29_000
    assert not all(expected)
    text = "".join(f"{key}{end}" for key in asked).encode()
    for threads in (1, 2, 5, None):
        assert opened.lookup_key_lines(text, threads) == expected
    assert opened.lookup_key_lines(text + b"com,a0)/0") == [*expected, True]
    assert opened.lookup_key_lines(b"") == []


def test_keys_are_cut_as_they_were_when_it_was_made() -> None:
    """A query, and what stands behind white space, makes no difference."""
    opened = Filter.open(FILES / "pages.filter")
    key = uri.key("http://example.com/a?b=c")
    assert opened.lookup_keys_many([key, f"{key} 2014", b"com,example)/a\t7"]) == [True] * 3
