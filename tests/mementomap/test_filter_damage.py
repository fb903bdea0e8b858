"""Files that are no filters, not whole, or not as they were written: refused by name, and nobody is denied a page."""

import struct
from pathlib import Path

import pytest

from tests.models.filter import xxh64
from unlost.errors import InputError, UsageError
from unlost.mementomap import Filter, FilterOptions, add_to_filter, build_filter

PAGES = Path(__file__).parents[2] / "docs" / "examples" / "pages.cdxj"
GOLDEN = (Path(__file__).parents[2] / "docs" / "examples" / "pages.filter").read_bytes()
HEADER = GOLDEN.index(b"\n\n") + 2


def with_header(data: bytes, old: bytes, new: bytes) -> bytes:
    """Return a filter with something else in its header, and a checksum that fits it."""
    assert old in data[:HEADER]
    head, body = data[: HEADER + 24].replace(old, new, 1), data[HEADER + 24 + 8 :]
    return head + struct.pack("<Q", xxh64(head)) + body


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a filter: .* it is empty"),
        (b"unlost-fil", "not a filter: .* the beginning of one"),
        (b'!fields {"keys": ["surt"]}\ncom,a)/ 1\n', "not a filter: .* found a map"),
        (b"\x1f\x8b\x08\x00", "not a filter: .* compressed data: decompress it first"),
        (b"com,a)/ 1\n", "not a filter: .* something else"),
        (GOLDEN.replace(b"filter 1", b"filter 2", 1), "a filter of version 2, and this unlost reads version 1"),
        (GOLDEN.replace(b"wayback", b"mistake", 1), "made by unknown rules, mistake: expected wayback or papers"),
        (GOLDEN.replace(b"bits 8", b"bits 9", 1), "header is damaged: it has another checksum"),
        (with_header(GOLDEN, b"bits 8", b"bits 9"), "header is damaged"),
        (with_header(GOLDEN, b"bits 8", b"bits 0"), "header is damaged"),
        (with_header(GOLDEN, b"bits 8", b"bits 17"), "header is damaged"),
        (with_header(GOLDEN, b"bits 8", b"bits 08"), "header is damaged"),
        (with_header(GOLDEN, b"keys 7", b"keys 8"), "header is damaged"),
        (with_header(GOLDEN, b"key hxpx", b"key dddd"), "header is damaged"),
        (with_header(GOLDEN, b"partitions 1", b"partitions 3"), "header is damaged"),
        (with_header(GOLDEN, b"partitions 1", b"partitions 4611686018427387904"), "ends in the middle"),
        (with_header(GOLDEN, b"bytes 171", b"bytes 18446744073709551615"), "header is damaged"),
        (with_header(GOLDEN, b"from 2010", b"from 2020"), "header is damaged"),
        (GOLDEN[:100], "ends in the middle"),
        (GOLDEN[: HEADER + 10], "ends in the middle"),
        (GOLDEN[:-1], "ends in the middle"),
        (GOLDEN + b"\n", "bytes that belong to no filter follow it, from byte 351 on"),
        (GOLDEN + GOLDEN[:-1], "ends in the middle"),
        (GOLDEN + with_header(GOLDEN, b"rules wayback", b"rules papers"), "its layers have different kinds"),
        (GOLDEN + with_header(GOLDEN, b"key hxpx", b"key urir"), "its layers have different kinds"),
    ],
)
def test_what_is_no_filter_is_refused_by_name(tmp_path: Path, data: bytes, message: str) -> None:
    """With the file's name and what to do."""
    file = tmp_path / "odd.filter"
    file.write_bytes(data)
    with pytest.raises(InputError, match=f"odd.filter: .*{message}"):
        Filter.open(file)


def test_files_that_are_none_are_refused_too(tmp_path: Path) -> None:
    """A folder, and nothing at all."""
    for path in (tmp_path, tmp_path / "none", Path("/dev/null")):
        with pytest.raises(InputError, match=str(path)):
            Filter.open(path)


def test_filters_are_chained_by_putting_one_behind_the_other(tmp_path: Path) -> None:
    """`cat` does it; any of them may say yes."""
    urls, other, chain = tmp_path / "urls", tmp_path / "b.filter", tmp_path / "chain.filter"
    urls.write_text("http://other.example.com/")
    build_filter([urls], other, FilterOptions(bits=16))
    chain.write_bytes(GOLDEN + other.read_bytes())
    opened = Filter.open(chain)
    assert opened.lookup_many(["http://example.com/a", "http://other.example.com/"]) == [True, True]
    assert [layer.bits for layer in opened.layers] == [8, 16]


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    """In a header when it is opened, in a body when it is checked, or asked: no damage denies a page."""
    file = tmp_path / "a.filter"
    for at in range(len(GOLDEN)):
        data = bytearray(GOLDEN)
        data[at] ^= 1 << at % 8
        file.write_bytes(data)
        if at < HEADER + 24 + 8:
            with pytest.raises(InputError, match=r"a\.filter: "):
                Filter.open(file)
            continue
        opened = Filter.open(file)
        (sentence,) = opened.check()
        assert sentence.startswith("the filter is damaged: partition 0 of layer 1 has another checksum")
        for ask in (
            lambda: Filter.open(file).lookup("http://example.com/a"),
            lambda: Filter.open(file).lookup_key("com,example)/a"),
            lambda: Filter.open(file).lookup_many(["http://example.com/a"]),
            lambda: Filter.open(file).lookup_keys_many(["com,example)/a"]),
        ):
            with pytest.raises(InputError, match=r"a\.filter: the filter is damaged: partition 0 of layer 1"):
                ask()


def test_nothing_is_added_to_a_damaged_filter(tmp_path: Path) -> None:
    """It stays as it is, and is named."""
    file = tmp_path / "a.filter"
    file.write_bytes(GOLDEN[:-1] + b"\xff")
    with pytest.raises(InputError, match=r"a\.filter: the filter is damaged"):
        add_to_filter(file, [PAGES])
    assert file.read_bytes() == GOLDEN[:-1] + b"\xff"
    assert list(tmp_path.iterdir()) == [file]


def test_another_rule_set_than_is_wanted_is_refused(tmp_path: Path) -> None:
    """Its keys would be others."""
    file = tmp_path / "a.filter"
    build_filter([PAGES], file, FilterOptions(rules="papers"))
    assert Filter.open(file, rules="papers").rules == "papers"
    with pytest.raises(InputError, match=r"a\.filter: made by other rules \(papers\) than are asked for \(wayback\)"):
        Filter.open(file, rules="wayback")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("com,a)/* 5\n", FilterOptions(), r"a\.ukvs: neither a .* filter can be made of the wildcard com,a\)/\*"),
        ("com,a)/ 5\n", FilterOptions(key="urir"), r"a\.ukvs: the keys of a map have no queries"),
        ('!meta {"rules": "papers"}\ncom,a)/ 5\n', FilterOptions(), r"a\.ukvs: made by other rules \(papers\)"),
        ('!meta {"rolled_up": true}\n* 5\n', FilterOptions(), r"a\.ukvs: everything in it was rolled up"),
    ],
)  # fmt: skip
def test_maps_that_do_not_list_pages_are_refused(
    tmp_path: Path, text: str, options: FilterOptions, message: str
) -> None:
    """And nothing is left behind."""
    held, file = tmp_path / "a.ukvs", tmp_path / "a.filter"
    held.write_text('!fields {"keys": ["surt"], "values": ["frequency"]}\n' + text)
    with pytest.raises(InputError, match=message):
        build_filter([held], file, options)
    assert list(tmp_path.iterdir()) == [held]


@pytest.mark.parametrize(
    "options",
    [
        FilterOptions(bits=0),
        FilterOptions(bits=17),
        FilterOptions(built_at="yesterday"),
        FilterOptions(built_at="20141332000000"),
        FilterOptions(mime=frozenset({"text/" + "x" * 10_000})),
        FilterOptions(exclude=frozenset({"pdf"})),
        FilterOptions(status=frozenset({"2 0"})),
        FilterOptions(mime=frozenset({"a,b"})),
        FilterOptions(mime=frozenset({"-"})),
    ],
)
def test_what_no_filter_can_be_made_by_is_refused_before_the_work(tmp_path: Path, options: FilterOptions) -> None:
    """The index is not even opened."""
    with pytest.raises(UsageError):
        build_filter([tmp_path / "none"], tmp_path / "a.filter", options)
    assert list(tmp_path.iterdir()) == []


def test_a_truncated_filter_is_refused(tmp_path: Path) -> None:
    """Wherever it is cut, before a page is looked up in it."""
    urls, whole, cut = tmp_path / "urls", tmp_path / "whole.filter", tmp_path / "cut.filter"
    urls.write_text("".join(f"http://a.example/{n}\n" for n in range(40)))
    build_filter([urls], whole, FilterOptions(kind="urls"))
    data = whole.read_bytes()
    for size in range(len(data)):
        cut.write_bytes(data[:size])
        for read in (Filter.open, Filter.load):
            with pytest.raises(InputError):
                read(cut)
