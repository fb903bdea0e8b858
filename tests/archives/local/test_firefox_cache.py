"""Firefox's cache: unusual and damaged entries, and all kinds of keys."""

import struct
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.archives.local.browser_caches import firefox_entry, write_firefox
from unlost.archives import (
    CachedResponse,
    firefox_data_folder,
    open_firefox_content,
    parse_firefox_key,
    read_firefox_responses,
)
from unlost.errors import ArchiveFileError
from unlost.problems import Problems

KEY = "O^partitionKey=%28https%2Ca.com%29,:https://a.com/page"


def read(folder: Path) -> tuple[list[CachedResponse], Problems, Counter[str]]:
    """Read a folder."""
    problems, left_out = Problems(), Counter[str]()
    return list(read_firefox_responses(folder, problems, left_out)), problems, left_out


def body(folder: Path, response: CachedResponse) -> bytes:
    """Return the body of a response."""
    content = open_firefox_content(folder, response)
    assert content is not None
    return b"".join(content.chunks)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [0, 5, 262_144, 262_145])
def test_firefox_entry_is_read_with_body(tmp_path: Path, version: int, size: int) -> None:
    """For all format versions and numbers of chunks."""
    path = write_firefox(tmp_path, KEY, firefox_entry(KEY, b"x" * size, version=version))
    (response,), problems, left_out = read(tmp_path)
    assert response == CachedResponse("https://a.com/page", "20220618042640", 200, "text/html", None, size, path.name)
    assert body(tmp_path, response) == b"x" * size
    assert (problems.total, left_out.total()) == (0, 0)


@pytest.mark.parametrize("size", [5, 262_144])
def test_alternative_data_is_not_part_of_body(tmp_path: Path, size: int) -> None:
    """Alternative data may be in the same chunk or after it."""
    write_firefox(tmp_path, KEY, firefox_entry(KEY, b"x" * size, alternative=b"bytecode" * 40_000))
    (response,), *_ = read(tmp_path)
    assert body(tmp_path, response) == b"x" * size


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (":https://a.com/", "https://a.com/"),
        ("a,:https://a.com/b,c:d", "https://a.com/b,c:d"),
        ("~1,,2,O^userContextId=1,p,:http://a.com/#x", "http://a.com/"),
        ("O^x:y,:http://a.com/", "http://a.com/"),
        (":moz-extension://a/", None),
        ("a,", None),
        ("", None),
    ],
)
def test_url_is_parsed_from_firefox_key(key: str, expected: str | None) -> None:
    """Tags before the URL are skipped."""
    assert parse_firefox_key(key) == expected


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (firefox_entry(KEY, b"", method=b"POST"), "other-method"),
        (firefox_entry(KEY, b"", method=b"HEAD"), "other-method"),
        (firefox_entry("~predictor-origin,:https://a.com/", b"", None), "no-response"),
        (firefox_entry(":moz-extension://a/", b""), "foreign-scheme"),
        (firefox_entry(KEY, b"x", b"HTTP/1.1 206 Partial Content\r\n"), "part"),
        (firefox_entry(KEY, b"x", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"), "part"),
        (firefox_entry(KEY, b"x")[:-4] + struct.pack(">I", 1 << 31 | 1), "encrypted"),
    ],
)
def test_firefox_entry_other_than_full_get_response_is_omitted(tmp_path: Path, data: bytes, reason: str) -> None:
    """Omitted entries are counted by reason."""
    write_firefox(tmp_path, KEY, data)
    assert read(tmp_path) == ([], Problems(), Counter({reason: 1}))


def test_firefox_redirect_has_target(tmp_path: Path) -> None:
    """The capture has its target."""
    write_firefox(tmp_path, KEY, firefox_entry(KEY, b"", b"HTTP/3 308 \r\nlocation: /b\r\n"))
    assert read(tmp_path)[0][0].redirect == "/b"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "truncated"),
        (firefox_entry(KEY, b"hello")[:-1], "truncated"),
        (firefox_entry(KEY, b"hello").replace(b"HTTP/2 200", b"HTTP/2 404"), "damaged"),
        (firefox_entry(KEY, b"hello", b"no head"), "damaged"),
        (firefox_entry(KEY, b"hello", version=3, modified=0), "bad-date"),
        (bytes(3_000_000), "damaged"),
    ],
)
def test_damaged_firefox_entry_affects_only_itself(tmp_path: Path, data: bytes, kind: str) -> None:
    """It is counted, and the others are read."""
    write_firefox(tmp_path, KEY, data)
    write_firefox(tmp_path, ":https://a.com/good", firefox_entry(":https://a.com/good", b"hello"))
    (tmp_path / ("A" * 40)).mkdir()
    (tmp_path / "README").write_text("no entry")
    responses, problems, _ = read(tmp_path)
    assert "https://a.com/good" in [response.uri for response in responses]
    assert problems.counts == {"unreadable": 1, kind: 1}


def test_changed_firefox_body_is_reported_when_read(tmp_path: Path) -> None:
    """The chunk's hash detects it."""
    path = write_firefox(tmp_path, KEY, firefox_entry(KEY, b"hello" * 100_000))
    (response,), *_ = read(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:300_000] + b"!" + data[300_001:])
    with pytest.raises(ArchiveFileError, match="at byte 262144"):
        body(tmp_path, response)


def test_replaced_or_deleted_firefox_entry_is_missing(tmp_path: Path) -> None:
    """The entry may be replaced between listing and fetching."""
    path = write_firefox(tmp_path, KEY, firefox_entry(KEY, b"hello"))
    (response,), *_ = read(tmp_path)
    path.write_bytes(firefox_entry(":https://other.com/", b"hello"))
    assert open_firefox_content(tmp_path, response) is None
    path.unlink()
    assert open_firefox_content(tmp_path, response) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 299), byte=st.integers(0, 255), end=st.integers(0, 300))
def test_modified_firefox_entry_returns_no_wrong_body(tmp_path: Path, position: int, byte: int, end: int) -> None:
    """A changed or truncated file yields the stored body or none."""
    data = bytearray(firefox_entry(KEY, b"hello"))
    data[position % len(data)] = byte
    (tmp_path / ("A" * 40)).write_bytes(data[:end] if end < len(data) else data)
    for response in read(tmp_path)[0]:
        assert (response.uri, response.status, response.datetime) == ("https://a.com/page", 200, "20220618042640")
        try:
            assert body(tmp_path, response) == b"hello"
        except ArchiveFileError:
            assert position % len(data) < 5


def test_firefox_cache_folder_is_found_in_profile(tmp_path: Path) -> None:
    """The cache folder itself is accepted; other folders are used as given."""
    entries = tmp_path / "cache2" / "entries"
    entries.mkdir(parents=True)
    for position in (tmp_path, tmp_path / "cache2", entries):
        assert firefox_data_folder(position) == entries
