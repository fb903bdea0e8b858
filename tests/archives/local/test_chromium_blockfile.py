"""Chromium's Blockfile Cache: chains, long keys, invalid entries and addresses."""

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.archives.local.browser_caches import RESPONSE_DATE, Blockfile
from tests.archives.local.chromium_caches import body, read
from unlost.errors import ArchiveFileError


def test_all_entries_of_blockfile_chain_are_read(tmp_path: Path) -> None:
    """Entries with external keys are read, abandoned entries are not."""
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


def test_sparse_blockfile_entries_are_not_pages(tmp_path: Path) -> None:
    """Neither parent nor child entries of a sparse body are pages."""
    cache = Blockfile()
    cache.add("https://a.com/film", b"x", flags=1)
    cache.add("Range_https://a.com/film:1:0", b"x", flags=2)
    cache.write(tmp_path)
    assert read(tmp_path)[2] == {"part": 1, "foreign-scheme": 1}


def test_cyclic_blockfile_chain_ends(tmp_path: Path) -> None:
    """An entry may refer to itself, and two buckets to one chain."""
    cache = Blockfile()
    cache.buckets.append(cache.add("https://a.com/", b"x", following=-1))
    cache.write(tmp_path)
    responses, problems, _ = read(tmp_path)
    assert [each.uri for each in responses] == ["https://a.com/"]
    assert problems.counts == {"loop": 2}


def test_truncated_blockfile_body_is_reported_when_read(tmp_path: Path) -> None:
    """Listing does not read bodies."""
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
def test_invalid_blockfile_address_or_length_returns_no_wrong_body(tmp_path: Path, field: int, value: int) -> None:
    """Any modified entry yields the stored body or none, even with a valid hash."""
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
