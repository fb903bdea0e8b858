"""Chromium's Blockfile Cache: chains, long keys, entries that are none, and hostile addresses."""

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.archives.local.browser_caches import RESPONSE_DATE, Blockfile
from tests.archives.local.chromium_caches import body, read
from unlost.errors import ArchiveFileError


def test_all_entries_of_a_chain_are_read(tmp_path: Path) -> None:
    """Also those with keys that are stored elsewhere, and none that the browser gave up."""
    cache = Blockfile()
    last = cache.add("https://a.com/last", b"", in_chain=True)
    middle = cache.add("https://a.com/gone", b"x", state=1, following=last, in_chain=True)
    cache.add("https://a.com/" + "long" * 100, b"hello", following=middle)
    cache.write(tmp_path)
    responses, problems, left_out = read(tmp_path)
    assert [(each.uri[:18], each.datetime) for each in responses] == [
        ("https://a.com/long", RESPONSE_DATE),
        ("https://a.com/last", RESPONSE_DATE),
    ]
    assert [body(tmp_path, each) for each in responses] == [b"hello", b""]
    assert (problems.total, left_out.total()) == (0, 0)


def test_parts_of_a_body_are_no_page(tmp_path: Path) -> None:
    """Neither an entry that has children nor its children."""
    cache = Blockfile()
    cache.add("https://a.com/film", b"x", flags=1)
    cache.add("Range_https://a.com/film:1:0", b"x", flags=2)
    cache.write(tmp_path)
    assert read(tmp_path)[2] == {"part": 1, "foreign-scheme": 1}


def test_a_circle_ends(tmp_path: Path) -> None:
    """An entry that follows itself, and two buckets with one chain."""
    cache = Blockfile()
    cache.buckets.append(cache.add("https://a.com/", b"x", following=-1))
    cache.write(tmp_path)
    responses, problems, _ = read(tmp_path)
    assert [each.uri for each in responses] == ["https://a.com/"]
    assert problems.counts == {"loop": 2}


def test_a_body_shorter_than_it_was_is_told(tmp_path: Path) -> None:
    """When it is read."""
    cache = Blockfile()
    cache.add("https://a.com/", b"hello")
    cache.write(tmp_path)
    (response,), *_ = read(tmp_path)
    (tmp_path / "f_000001").write_bytes(b"hell")
    with pytest.raises(ArchiveFileError, match="end of the file"):
        body(tmp_path, response)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    field=st.integers(0, 23),
    value=st.sampled_from([0, 1, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xA0010000, 0xA3FFFFFF, 0xC3030000, 0xFFFFFFFF]),
)
def test_no_address_or_length_is_trusted(tmp_path: Path, field: int, value: int) -> None:
    """Whatever stands in an entry: what is read is what was stored, or nothing; also if nobody hashed the entry."""
    cache = Blockfile()
    cache.add("https://a.com/", b"hello")
    cache.write(tmp_path)
    data = bytearray((tmp_path / "data_1").read_bytes())
    struct.pack_into("<I", data, 8192 + 4 * field, value)
    (tmp_path / "data_1").write_bytes(data)
    assert [body(tmp_path, response) for response in read(tmp_path)[0]] in ([], [b"hello"])
    struct.pack_into("<I", data, 8192 + 92, 0)
    (tmp_path / "data_1").write_bytes(data)
    for response in read(tmp_path)[0]:
        with suppress(ArchiveFileError, FileNotFoundError):
            body(tmp_path, response)
