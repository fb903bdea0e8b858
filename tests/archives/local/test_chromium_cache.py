"""Chromium's cache: unusual and damaged entries, and all kinds of keys."""

import sqlite3
import struct
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.archives.local.browser_caches import HEAD, RESPONSE_DATE, chromium_head, simple_entry, write_simple
from tests.archives.local.chromium_caches import body, read
from unlost.archives import CachedResponse, chromium_data_folder, open_chromium_content, parse_chromium_key
from unlost.errors import ArchiveFileError
from unlost.problems import Problems

ENDLESS = """
    CREATE VIEW resources AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r)
    SELECT n AS res_id, 'a' AS cache_key, 1 AS body_end, x'00' AS head, 0 AS doomed FROM r
"""
KEY = "1/0/_dk_https://a.com https://a.com https://a.com/page"


def test_chromium_entry_is_read_with_body(tmp_path: Path) -> None:
    """URL, date, status and type are those stored."""
    path = write_simple(tmp_path, KEY, b"hello")
    (response,), problems, left_out = read(tmp_path)
    assert response == CachedResponse("https://a.com/page", RESPONSE_DATE, 200, "text/html", None, 5, path.name)
    assert body(tmp_path, response) == b"hello"
    assert (problems.total, left_out.total()) == (0, 0)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("https://a.com/", (False, "https://a.com/")),
        ("1/0/https://a.com/1/2/x", (False, "https://a.com/1/2/x")),
        ("0/0/_dk_s_https://a.com https://b.com https://c.com/x#y", (False, "https://c.com/x")),
        ("1/0/_dk_cn_https://a.com https://b.com 2 https://c.com/", (False, "https://c.com/")),
        ("1/1655526400123456/https://a.com/form", (True, "https://a.com/form")),
        ("-12/https://a.com/form", (True, "https://a.com/form")),
        ("1/0/chrome-extension://abc/x.js", (False, None)),
        ("Range_1/0/https://a.com/film.mp4:2fb884ac72675a:0", (False, None)),
        ("1/0/_dk_https://a.com https://a.com ", (False, None)),
        ("", (False, None)),
    ],
)
def test_url_is_parsed_from_chromium_key(key: str, expected: tuple[bool, str | None]) -> None:
    """Partition prefixes are removed, and upload keys are recognised."""
    assert parse_chromium_key(key) == expected


@pytest.mark.parametrize(
    ("key", "head", "reason"),
    [
        (KEY.replace("1/0/", "1/77/"), chromium_head(), "other-method"),
        (KEY.replace("https://a.com/page", "chrome://settings/"), chromium_head(), "foreign-scheme"),
        (KEY, chromium_head(b"HTTP/1.1 206 Partial Content\0"), "part"),
        (KEY, chromium_head(flags=3 | 1 << 12), "part"),
        (KEY, chromium_head(HEAD + b"Content-Length: 6\0"), "part"),
    ],
)
def test_chromium_entry_other_than_full_get_response_is_omitted(
    tmp_path: Path, key: str, head: bytes, reason: str
) -> None:
    """Omitted entries are counted by reason."""
    write_simple(tmp_path, key, b"hello", head)
    assert read(tmp_path) == ([], Problems(), Counter({reason: 1}))


def test_sparse_chromium_entry_with_status_200_is_omitted(tmp_path: Path) -> None:
    """The sparse file next to the entry identifies it."""
    path = write_simple(tmp_path, KEY, b"")
    path.with_name(path.name.replace("_0", "_s")).write_bytes(b"")
    assert read(tmp_path)[2] == {"part": 1}


def test_chromium_redirect_without_body_is_read(tmp_path: Path) -> None:
    """Chromium stores no redirect bodies, whatever Content-Length says."""
    write_simple(tmp_path, KEY, b"", chromium_head(b"HTTP/1.1 301 Moved\0Location: /b\0Content-Length: 9\0"))
    assert read(tmp_path)[0][0].redirect == "/b"


def test_chromium_heads_of_all_versions_are_read(tmp_path: Path) -> None:
    """Newer heads have more flags and another time."""
    for number, head in enumerate((chromium_head(flags=1), chromium_head(extra=2), chromium_head(extra=4))):
        write_simple(tmp_path, f"https://a.com/{number}", b"", head)
    assert [response.datetime for response in read(tmp_path)[0]] == [RESPONSE_DATE] * 3


def test_dictionary_coding_is_reported_as_unknown(tmp_path: Path) -> None:
    """The body cannot be decoded without its dictionary."""
    write_simple(tmp_path, KEY, b"hello", chromium_head(HEAD + b"Content-Encoding: br\0", extra=1))
    (response,), *_ = read(tmp_path)
    content = open_chromium_content(tmp_path, response)
    assert content is not None
    assert content.coding == "br with a dictionary"


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (lambda data: data[:0], "truncated"),
        (lambda data: data[:30], "truncated"),
        (lambda data: data[:-1], "truncated"),
        (lambda data: b"\0" * 8 + data[8:], "damaged"),
        (lambda data: data.replace(b"HTTP/1.1 200", b"HTTP/1.1 404"), "damaged"),
        (lambda data: data.replace(b"https://a.com/page", b"https://b.com/page"), "damaged"),
        (lambda data: data[:12] + struct.pack("<I", 1 << 30) + data[16:], "damaged"),
    ],
)
def test_damaged_chromium_entry_affects_only_itself(tmp_path: Path, damage: "type", kind: str) -> None:
    """It is counted, and the others are read."""
    write_simple(tmp_path, KEY, b"hello").write_bytes(damage(simple_entry(KEY, b"hello")))
    write_simple(tmp_path, "https://a.com/good", b"hello")
    (tmp_path / "0123456789abcdef_0").mkdir()
    responses, problems, _ = read(tmp_path)
    assert [response.uri for response in responses] == ["https://a.com/good"]
    assert problems.counts == {kind: 1, "unreadable": 1}


def test_changed_chromium_body_is_reported_when_read(tmp_path: Path) -> None:
    """The checksum detects it."""
    path = write_simple(tmp_path, KEY, b"hello")
    (response,), *_ = read(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"hello", b"hallo"))
    with pytest.raises(ArchiveFileError, match="checksum"):
        body(tmp_path, response)


def test_chromium_entry_with_invalid_date_is_counted(tmp_path: Path) -> None:
    """No date is guessed."""
    write_simple(tmp_path, KEY, b"", chromium_head(time=1 << 62))
    write_simple(tmp_path, "https://a.com/", b"", chromium_head(time=-5))
    assert read(tmp_path)[1].counts == {"bad-date": 2}


def test_replaced_or_deleted_chromium_entry_is_missing(tmp_path: Path) -> None:
    """The entry may be replaced between listing and fetching."""
    path = write_simple(tmp_path, KEY, b"hello")
    (response,), *_ = read(tmp_path)
    path.write_bytes(simple_entry("https://other.com/", b"hello"))
    assert open_chromium_content(tmp_path, response) is None
    path.unlink()
    assert open_chromium_content(tmp_path, response) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 399), byte=st.integers(0, 255), end=st.integers(0, 400))
def test_modified_chromium_entry_returns_no_wrong_body(tmp_path: Path, position: int, byte: int, end: int) -> None:
    """A changed or truncated file yields the stored body or none."""
    stored = simple_entry(KEY, b"hello")
    data = bytearray(stored)
    data[position % len(data)] = byte
    data = data[: max(end, 1)]
    (tmp_path / "0123456789abcdef_0").write_bytes(data)
    responses, *_ = read(tmp_path)
    for response in responses:
        assert (response.uri, response.status, response.datetime) == ("https://a.com/page", 200, RESPONSE_DATE)
        try:
            assert body(tmp_path, response) == b"hello"
        except ArchiveFileError:
            assert data != stored


def write_sql(path: Path, *statements: str) -> None:
    """Write a database that is not Chromium's."""
    with closing(sqlite3.connect(path)) as file:
        for statement in statements:
            file.execute(statement)
        file.commit()


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE other(a)"],
        ["CREATE TABLE resources(a)", "CREATE TABLE blobs(a)"],
        ["CREATE TABLE blobs(res_id, start, end, blob)", ENDLESS],
    ],
)
def test_foreign_database_is_counted_and_not_executed(tmp_path: Path, statements: list[str]) -> None:
    """A malicious database cannot keep the reader busy."""
    write_sql(tmp_path / "sqldb0", *statements)
    (tmp_path / "sqldb1").write_bytes(b"no database" * 100)
    assert read(tmp_path)[1].counts == {"unreadable": 2}


def test_chromium_database_body_with_gap_is_omitted(tmp_path: Path) -> None:
    """Contiguous pieces form a page, others are ranges."""
    head = chromium_head().hex()
    write_sql(
        tmp_path / "sqldb0",
        "CREATE TABLE resources(res_id INTEGER PRIMARY KEY, cache_key, body_end, head, doomed)",
        "CREATE TABLE blobs(res_id, start, end, blob)",
        *(f"INSERT INTO resources VALUES ({n}, 'https://a.com/{n}', 5, x'{head}', {int(n == 4)})" for n in range(1, 5)),  # noqa: S608  for a test
        "INSERT INTO blobs VALUES (1, 2, 5, x'6c6c6f'), (1, 0, 2, x'6865'), (2, 0, 2, x'6865'), (2, 3, 5, x'6c6f')",
    )
    (response,), _, left_out = read(tmp_path)
    assert (response.uri, body(tmp_path, response)) == ("https://a.com/1", b"hello")
    assert left_out == {"part": 2}


def test_chromium_database_rows_of_wrong_type_are_damage(tmp_path: Path) -> None:
    """SQLite does not enforce column types."""
    write_sql(
        tmp_path / "sqldb0",
        "CREATE TABLE resources(res_id INTEGER PRIMARY KEY, cache_key, body_end, head, doomed)",
        "CREATE TABLE blobs(res_id, start, end, blob)",
        "INSERT INTO resources VALUES (1, 7, 'x', 'head', 0), (2, 'https://a.com/', 1, x'0011', 0)",
        "INSERT INTO blobs VALUES (2, 'a', 'b', 3)",
    )
    assert read(tmp_path)[1].counts == {"damaged": 2}


def test_chromium_index_of_unknown_version_is_reported(tmp_path: Path) -> None:
    """Broken entry chains are reported, too."""
    (tmp_path / "index").write_bytes(struct.pack("<II", 0xC103CAC3, 0x90000) + bytes(400))
    assert read(tmp_path)[1].counts == {"foreign": 1}
    (tmp_path / "index").write_bytes(struct.pack("<II", 0xC103CAC3, 0x30000) + bytes(360) + b"\xff" * 7 + b"\xfe")
    assert read(tmp_path)[1].counts == {"damaged": 2}


def test_chromium_cache_folder_is_found_in_profile(tmp_path: Path) -> None:
    """Profiles and folders of profiles are searched; other folders are used as given."""
    entries = tmp_path / "Default" / "Cache" / "Cache_Data"
    entries.mkdir(parents=True)
    for position in (tmp_path, tmp_path / "Default", tmp_path / "Default" / "Cache", entries):
        assert chromium_data_folder(position) == entries
