"""Invalid, truncated and damaged filters are rejected and never return a false negative."""

import struct
from pathlib import Path

import pytest

from tests.models.filter import xxh64
from unlost.errors import InputError, UsageError
from unlost.mementomap import Filter, FilterOptions, add_to_filter, build_filter

PAGES = Path(__file__).parents[2] / "docs" / "examples" / "pages.cdxj"
GOLDEN = (Path(__file__).parents[2] / "docs" / "examples" / "pages.filter").read_bytes()
HEADER = GOLDEN.index(b"\n\n") + 2


def replace_in_header(data: bytes, old: bytes, new: bytes) -> bytes:
    """Return a filter with a modified header and a matching checksum."""
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
        (replace_in_header(GOLDEN, b"bits 8", b"bits 9"), "header is damaged"),
        (replace_in_header(GOLDEN, b"bits 8", b"bits 0"), "header is damaged"),
        (replace_in_header(GOLDEN, b"bits 8", b"bits 17"), "header is damaged"),
        (replace_in_header(GOLDEN, b"bits 8", b"bits 08"), "header is damaged"),
        (replace_in_header(GOLDEN, b"keys 7", b"keys 8"), "header is damaged"),
        (replace_in_header(GOLDEN, b"key hxpx", b"key dddd"), "header is damaged"),
        (replace_in_header(GOLDEN, b"partitions 1", b"partitions 3"), "header is damaged"),
        (replace_in_header(GOLDEN, b"partitions 1", b"partitions 4611686018427387904"), "ends in the middle"),
        (replace_in_header(GOLDEN, b"bytes 171", b"bytes 18446744073709551615"), "header is damaged"),
        (replace_in_header(GOLDEN, b"from 2010", b"from 2020"), "header is damaged"),
        (GOLDEN[:100], "ends in the middle"),
        (GOLDEN[: HEADER + 10], "ends in the middle"),
        (GOLDEN[:-1], "ends in the middle"),
        (GOLDEN + b"\n", "bytes that belong to no filter follow it, from byte 351 on"),
        (GOLDEN + GOLDEN[:-1], "ends in the middle"),
        (GOLDEN + replace_in_header(GOLDEN, b"rules wayback", b"rules papers"), "its layers have different kinds"),
        (GOLDEN + replace_in_header(GOLDEN, b"key hxpx", b"key urir"), "its layers have different kinds"),
    ],
)
def test_invalid_filter_file_is_rejected(tmp_path: Path, data: bytes, message: str) -> None:
    """The error names the file and the cause."""
    file = tmp_path / "invalid.filter"
    file.write_bytes(data)
    with pytest.raises(InputError, match=f"invalid.filter: .*{message}"):
        Filter.open(file)


def test_folder_or_missing_file_as_filter_is_rejected(tmp_path: Path) -> None:
    """Folders, missing files and devices are rejected."""
    for path in (tmp_path, tmp_path / "none", Path("/dev/null")):
        with pytest.raises(InputError, match=str(path)):
            Filter.open(path)


def test_concatenated_filters_are_one_filter(tmp_path: Path) -> None:
    """A page is held if any of the filters holds it."""
    urls, other, chain = tmp_path / "urls", tmp_path / "b.filter", tmp_path / "chain.filter"
    urls.write_text("http://other.example.com/")
    build_filter([urls], other, FilterOptions(bits=16))
    chain.write_bytes(GOLDEN + other.read_bytes())
    opened = Filter.open(chain)
    assert opened.lookup_many(["http://example.com/a", "http://other.example.com/"]) == [True, True]
    assert [layer.bits for layer in opened.layers] == [8, 16]


def test_flipped_bit_in_filter_is_detected(tmp_path: Path) -> None:
    """Header damage is detected on opening, body damage by checks and look-ups."""
    file = tmp_path / "a.filter"
    for position in range(len(GOLDEN)):
        data = bytearray(GOLDEN)
        data[position] ^= 1 << position % 8
        file.write_bytes(data)
        if position < HEADER + 24 + 8:
            with pytest.raises(InputError, match=r"a\.filter: "):
                Filter.open(file)
            continue
        opened = Filter.open(file)
        (problem,) = opened.check()
        assert problem.startswith("the filter is damaged: partition 0 of layer 1 has another checksum")
        for look_up in (
            lambda: Filter.open(file).lookup("http://example.com/a"),
            lambda: Filter.open(file).lookup_key("com,example)/a"),
            lambda: Filter.open(file).lookup_many(["http://example.com/a"]),
            lambda: Filter.open(file).lookup_keys_many(["com,example)/a"]),
        ):
            with pytest.raises(InputError, match=r"a\.filter: the filter is damaged: partition 0 of layer 1"):
                look_up()


def test_adding_to_damaged_filter_is_rejected(tmp_path: Path) -> None:
    """The file is unchanged, and the error names it."""
    file = tmp_path / "a.filter"
    file.write_bytes(GOLDEN[:-1] + b"\xff")
    with pytest.raises(InputError, match=r"a\.filter: the filter is damaged"):
        add_to_filter(file, [PAGES])
    assert file.read_bytes() == GOLDEN[:-1] + b"\xff"
    assert list(tmp_path.iterdir()) == [file]


def test_filter_with_other_rules_is_rejected(tmp_path: Path) -> None:
    """Keys of different rules do not match."""
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
def test_filter_of_map_without_pages_is_rejected(
    tmp_path: Path, text: str, options: FilterOptions, message: str
) -> None:
    """No output is written."""
    map_path, file = tmp_path / "a.ukvs", tmp_path / "a.filter"
    map_path.write_text('!fields {"keys": ["surt"], "values": ["frequency"]}\n' + text)
    with pytest.raises(InputError, match=message):
        build_filter([map_path], file, options)
    assert list(tmp_path.iterdir()) == [map_path]


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
def test_invalid_filter_options_are_rejected_before_reading(tmp_path: Path, options: FilterOptions) -> None:
    """The index is not opened."""
    with pytest.raises(UsageError):
        build_filter([tmp_path / "none"], tmp_path / "a.filter", options)
    assert list(tmp_path.iterdir()) == []


def test_truncated_filter_is_rejected(tmp_path: Path) -> None:
    """A filter truncated at any byte cannot be opened."""
    urls, whole, cut = tmp_path / "urls", tmp_path / "whole.filter", tmp_path / "cut.filter"
    urls.write_text("".join(f"http://a.example/{n}\n" for n in range(40)))
    build_filter([urls], whole, FilterOptions(kind="urls"))
    data = whole.read_bytes()
    for size in range(len(data)):
        cut.write_bytes(data[:size])
        for read in (Filter.open, Filter.load):
            with pytest.raises(InputError):
                read(cut)
