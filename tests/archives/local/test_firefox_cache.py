"""Firefox's cache: entries that no visit makes, damaged ones, and keys of every kind."""

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
def test_an_entry_is_read_with_its_body(tmp_path: Path, version: int, size: int) -> None:
    """In every version of the format, and however many parts it has."""
    path = write_firefox(tmp_path, KEY, firefox_entry(KEY, b"x" * size, version=version))
    (response,), problems, left_out = read(tmp_path)
    assert response == CachedResponse("https://a.com/page", "20220618042640", 200, "text/html", None, size, path.name)
    assert body(tmp_path, response) == b"x" * size
    assert (problems.total, left_out.total()) == (0, 0)


@pytest.mark.parametrize("size", [5, 262_144])
def test_what_the_browser_made_of_a_body_is_not_part_of_it(tmp_path: Path, size: int) -> None:
    """Be it in the same part of the file or behind it."""
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
def test_the_address_is_taken_out_of_a_key(key: str, expected: str | None) -> None:
    """Behind tags of any kind."""
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
def test_what_is_no_whole_response_to_a_get_is_left_out(tmp_path: Path, data: bytes, reason: str) -> None:
    """And counted by its reason."""
    write_firefox(tmp_path, KEY, data)
    assert read(tmp_path) == ([], Problems(), Counter({reason: 1}))


def test_a_redirect_is_told(tmp_path: Path) -> None:
    """With where to."""
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
def test_damage_costs_the_entry_alone(tmp_path: Path, data: bytes, kind: str) -> None:
    """It is counted, and the others are read."""
    write_firefox(tmp_path, KEY, data)
    write_firefox(tmp_path, ":https://a.com/good", firefox_entry(":https://a.com/good", b"hello"))
    (tmp_path / ("A" * 40)).mkdir()
    (tmp_path / "README").write_text("no entry")
    responses, problems, _ = read(tmp_path)
    assert "https://a.com/good" in [response.uri for response in responses]
    assert problems.counts == {"unreadable": 1, kind: 1}


def test_a_changed_body_is_told_when_it_is_read(tmp_path: Path) -> None:
    """By the hash of its part."""
    path = write_firefox(tmp_path, KEY, firefox_entry(KEY, b"hello" * 100_000))
    (response,), *_ = read(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:300_000] + b"!" + data[300_001:])
    with pytest.raises(ArchiveFileError, match="at byte 262144"):
        body(tmp_path, response)


def test_an_entry_that_another_took_the_place_of_is_gone(tmp_path: Path) -> None:
    """As is one whose file is."""
    path = write_firefox(tmp_path, KEY, firefox_entry(KEY, b"hello"))
    (response,), *_ = read(tmp_path)
    path.write_bytes(firefox_entry(":https://other.com/", b"hello"))
    assert open_firefox_content(tmp_path, response) is None
    path.unlink()
    assert open_firefox_content(tmp_path, response) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 299), byte=st.integers(0, 255), end=st.integers(0, 300))
def test_no_change_makes_another_page_of_it(tmp_path: Path, place: int, byte: int, end: int) -> None:
    """A changed byte, or a cut: what is read is what was stored, or nothing."""
    data = bytearray(firefox_entry(KEY, b"hello"))
    data[place % len(data)] = byte
    (tmp_path / ("A" * 40)).write_bytes(data[:end] if end < len(data) else data)
    for response in read(tmp_path)[0]:
        assert (response.uri, response.status, response.datetime) == ("https://a.com/page", 200, "20220618042640")
        try:
            assert body(tmp_path, response) == b"hello"
        except ArchiveFileError:
            assert place % len(data) < 5


def test_the_folder_is_found_in_a_profile(tmp_path: Path) -> None:
    """Or in the cache's own; else it is taken as it is."""
    entries = tmp_path / "cache2" / "entries"
    entries.mkdir(parents=True)
    for place in (tmp_path, tmp_path / "cache2", entries):
        assert firefox_data_folder(place) == entries
