"""Common behaviour of archives of browser pages: one capture per URL, prefixes, dates, errors."""

import asyncio
import gzip
import os
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

import brotli
import pytest

from tests.archives.local.browser_caches import HEAD, Blockfile, chromium_head, har_entry, har_text, write_simple
from tests.archives.local.cached_pages import Make, list_prefixes
from unlost.archives import (
    ArchiveClient,
    CachedResponse,
    ChromiumCacheClient,
    FirefoxCacheClient,
    HarClient,
    browser_cache,
    har,
)
from unlost.capture import Capture
from unlost.errors import DateError, FailedError, ListCutError, UriError, UsageError
from unlost.problems import Problems
from unlost.registry import Archive, ArchiveKind


def har_of(position: Path, *entries: object, **fields: object) -> HarClient:
    """Return an archive of a HAR file with these entries."""
    (position / "a.har").write_bytes(har_text(*entries))
    return HarClient(Archive("mine", "Mine", ArchiveKind.HAR, folder=str(position), deep=False, **fields))  # type: ignore[arg-type]


def entry_at(date: str, uri: str, text: str | None = "hello", **response: object) -> dict[str, object]:
    """Return an entry with a date."""
    return {**har_entry(uri, text, **response), "startedDateTime": date}


async def text_of(repository: ArchiveClient, uri: str) -> bytes | None:
    """Return the body fetched for a URL, or None."""
    fetched = await repository.get(uri, "2001")
    if fetched is None:
        return None
    with fetched.body as body:
        return body.read()


def uris(captures: list[Capture]) -> list[str]:
    """Return the URLs of captures."""
    return [capture.uri for capture in captures]


def test_client_implements_the_protocol(tmp_path: Path) -> None:
    """The types agree, and the client names its archive."""
    repository: ArchiveClient = har_of(tmp_path)
    assert (repository.archive.id, repository.archive.deep) == ("mine", False)


def test_last_response_with_a_body_is_served(tmp_path: Path) -> None:
    """Responses 304 and responses without a stored body are skipped."""
    repository = har_of(
        tmp_path,
        entry_at("2020-01-01", "http://a.com/", "new"),
        entry_at("2019-01-01", "http://a.com/", "old"),
        entry_at("2021-01-01", "http://a.com/", None, status=304),
        entry_at("2022-01-01", "http://a.com/", None),
        entry_at("2020-01-01", "http://b.com/", None),
    )
    assert asyncio.run(text_of(repository, "http://a.com/")) == b"new"
    assert asyncio.run(repository.last_capture_date("http://a.com/")) == "20200101000000"
    assert asyncio.run(repository.last_capture_date("http://b.com/")) == "20200101000000"
    assert asyncio.run(text_of(repository, "http://b.com/")) is None
    assert asyncio.run(repository.last_capture_date("http://c.com/")) is None


def test_page_is_found_by_other_spellings_its_own_first(tmp_path: Path) -> None:
    """A redirect between schemes does not hide the page."""
    repository = har_of(
        tmp_path,
        entry_at("2021-01-01", "http://www.a.com/x", None, status=301, redirectURL="https://a.com/x"),
        entry_at("2020-01-01", "https://a.com/x", "secure"),
    )

    async def query() -> None:
        assert uris([each async for each in repository.captures("https://a.com/x#top")]) == [
            "https://a.com/x",
            "http://www.a.com/x",
        ]
        assert await text_of(repository, "https://a.com/x") == b"secure"
        assert await text_of(repository, "http://www.a.com/x") == b""
        assert [each async for each in repository.captures("mailto:a@b.c")] == []

    asyncio.run(query())


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("http://a.com", ["/", "/b", "/b/c", "/bc", "port"]),
        ("http://a.com/", ["/", "/b", "/b/c", "/bc"]),
        ("https://www.A.com/b", ["/b", "/b/c", "/bc"]),
        ("http://a.com/b/", ["/b", "/b/c"]),
        ("*.a.com", ["/", "/b", "/b/c", "/bc", "shop", "port"]),
        ("http://aa.com", []),
    ],
)
def test_prefix_lists_its_pages(tmp_path: Path, prefix: str, expected: list[str]) -> None:
    """For folders, prefixes, hosts and domains; longer names are excluded."""
    names = {f"http://a.com{path}": path for path in ("/", "/b", "/b/c", "/bc")}
    names |= {"http://shop.a.com/": "shop", "http://a.com:81/": "port", "http://a.common/": "other"}
    repository = har_of(tmp_path, *map(har_entry, names))
    assert sorted(names[uri] for uri in uris(asyncio.run(list_prefixes(repository, prefix)))) == sorted(expected)


def test_date_range_is_inclusive(tmp_path: Path) -> None:
    """Dates may be partial."""
    dates = ["2019-12-31T23:59:59Z", "2020-01-01T00:00:00Z", "2020-12-31T23:59:59Z", "2021-01-01T00:00:00Z"]
    repository = har_of(tmp_path, *(entry_at(date, f"http://a.com/{number}") for number, date in enumerate(dates)))

    async def query() -> None:
        results = [each async for each in repository.list_prefix("http://a.com", "2020", "2020")]
        assert uris(results) == ["http://a.com/1", "http://a.com/2"]
        with pytest.raises(DateError):
            await anext(repository.list_prefix("http://a.com", "never"))
        with pytest.raises(UriError):
            await anext(repository.list_prefix("http://"))

    asyncio.run(query())


def test_capture_names_its_file(tmp_path: Path) -> None:
    """The capture also has whether the archive modifies content."""
    repository = har_of(tmp_path, har_entry("http://a.com/"), migrated=("text/plain",))
    (capture,) = asyncio.run(list_prefixes(repository, "http://a.com"))
    assert (capture.archive, capture.key, capture.filename) == ("mine", "com,a)/", "a.har")
    assert (capture.migrated, capture.status, capture.length) == (True, 200, 5)
    assert capture.offset is not None


def chromium_of(position: Path, body: bytes, coding: bytes) -> ChromiumCacheClient:
    """Return an archive of one page in a coding."""
    write_simple(position, "http://a.com/", body, chromium_head(HEAD + b"Content-Encoding: " + coding + b"\0"))
    return ChromiumCacheClient(Archive("mine", "Mine", ArchiveKind.CHROMIUM, folder=str(position), deep=False))


@pytest.mark.parametrize(
    ("body", "coding"),
    [(gzip.compress(b"hello")[:-3], "gzip"), (brotli.compress(b"hello")[:-1], "br"), (b"\0\1\2", "sdch")],
)
def test_undecodable_body_raises_with_its_coding(tmp_path: Path, body: bytes, coding: str) -> None:
    """Neither garbage nor a part of the body is returned."""
    repository = chromium_of(tmp_path, body, coding.encode())
    with pytest.raises(FailedError, match=coding) as caught:
        asyncio.run(repository.get("http://a.com/"))
    assert (caught.value.kind, caught.value.archive) == ("malformed", "mine")


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate", "sdch"])
def test_uncoded_body_is_unchanged(tmp_path: Path, coding: str) -> None:
    """Falsely declared codings are ignored."""
    repository = chromium_of(tmp_path, b"<p>hello</p>", coding.encode())
    assert asyncio.run(text_of(repository, "http://a.com/")) == b"<p>hello</p>"


def test_deleted_body_is_missing(tmp_path: Path) -> None:
    """Its entry may be in another file that remains."""
    cache = Blockfile()
    cache.add("http://a.com/", b"hello")
    cache.write(tmp_path)
    repository = ChromiumCacheClient(Archive("mine", "Mine", ArchiveKind.CHROMIUM, folder=str(tmp_path), deep=False))
    assert asyncio.run(text_of(repository, "http://a.com/")) == b"hello"
    (tmp_path / "f_000001").unlink()
    assert asyncio.run(text_of(repository, "http://a.com/")) is None


@pytest.mark.parametrize(
    ("make", "kind", "name"),
    [
        (HarClient, ArchiveKind.HAR, "a.har"),
        (ChromiumCacheClient, ArchiveKind.CHROMIUM, "0123456789abcdef_0"),
        (ChromiumCacheClient, ArchiveKind.CHROMIUM, "index"),
        (ChromiumCacheClient, ArchiveKind.CHROMIUM, "sqldb0"),
        (FirefoxCacheClient, ArchiveKind.FIREFOX, "A" * 40),
    ],
)
def test_pipe_is_not_read(tmp_path: Path, make: Make, kind: ArchiveKind, name: str) -> None:
    """Reading a pipe could block forever."""
    os.mkfifo(tmp_path / name)
    repository = make(Archive("mine", "Mine", kind, folder=str(tmp_path), deep=False))
    with suppress(FailedError):  # if it is the only file
        assert asyncio.run(list_prefixes(repository, "http://a.com")) == []
    assert repository.problems.counts in ({"unreadable": 1}, {})


def test_bomb_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit applies to the decoded size."""
    monkeypatch.setattr(browser_cache, "MAX_BODY_BYTES", 1 << 20)
    repository = chromium_of(tmp_path, gzip.compress(bytes(1 << 22)), b"gzip")
    with pytest.raises(FailedError) as caught:
        asyncio.run(repository.get("http://a.com/"))
    assert caught.value.kind == "too-large"


def test_missing_folder_is_unreachable(tmp_path: Path) -> None:
    """A later query succeeds once the folder exists."""
    position = tmp_path / "later"
    repository = HarClient(Archive("mine", "Mine", ArchiveKind.HAR, folder=str(position), deep=False))
    with pytest.raises(FailedError) as caught:
        asyncio.run(list_prefixes(repository, "http://a.com"))
    assert caught.value.kind == "unreachable"
    position.mkdir()
    (position / "a.har").write_bytes(har_text(har_entry("http://a.com/")))
    assert len(asyncio.run(list_prefixes(repository, "http://a.com"))) == 1


@pytest.mark.parametrize("text", [b"a page, and no HAR file", b"{}", b'{"log": {"entries": [{"request": 1}]}}'])
def test_unreadable_folder_is_not_an_empty_result(tmp_path: Path, text: bytes) -> None:
    """A wrong path raises an error instead of an empty listing."""
    (tmp_path / "a.har").write_bytes(text)
    repository = HarClient(Archive("mine", "Mine", ArchiveKind.HAR, folder=str(tmp_path / "a.har"), deep=False))
    with pytest.raises(FailedError, match="nothing in it could be read") as caught:
        asyncio.run(repository.get("http://a.com/"))
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize(
    ("make", "kind", "holds"),
    [
        (HarClient, ArchiveKind.HAR, "responses in HAR files"),
        (ChromiumCacheClient, ArchiveKind.CHROMIUM, "entries of Chromium's cache"),
        (FirefoxCacheClient, ArchiveKind.FIREFOX, "entries of Firefox's cache"),
    ],
)
def test_folder_without_cache_is_not_an_empty_result(
    tmp_path: Path, make: Callable[[Archive], ArchiveClient], kind: ArchiveKind, holds: str
) -> None:
    """The error names the expected content."""
    (tmp_path / "letter.txt").write_text("something else")
    with pytest.raises(FailedError, match=f"expected {holds}, found none") as caught:
        asyncio.run(make(Archive("mine", "Mine", kind, folder=str(tmp_path), deep=False)).get("http://a.com/"))
    assert caught.value.kind == "malformed"


def test_archive_without_folder_is_rejected() -> None:
    """The error is raised on creation."""
    with pytest.raises(UsageError, match="folder"):
        HarClient(Archive("mine", "Mine", ArchiveKind.HAR))


def test_too_many_urls_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read URLs are listed, then an error is raised; missing URLs are not reported as not held."""
    monkeypatch.setattr(browser_cache, "MAX_ENTRIES", 2)
    repository = har_of(tmp_path, *(har_entry(f"http://a.com/{number}") for number in range(3)))

    async def query() -> None:
        results: list[Capture] = []
        listing = repository.list_prefix("http://a.com")
        results += [await anext(listing), await anext(listing)]
        with pytest.raises(ListCutError):
            await anext(listing)
        with pytest.raises(ListCutError):
            await repository.get("http://a.com/2")
        assert uris(results) == ["http://a.com/0", "http://a.com/1"]

    asyncio.run(query())


def test_cancelling_all_callers_stops_the_scan(tmp_path: Path) -> None:
    """The next caller starts a new scan."""
    start, go_on = threading.Event(), threading.Event()
    read: list[str] = []

    def responses(position: Path, problems: Problems, left_out: Counter[str]) -> Generator[CachedResponse, None, None]:
        for response in har.read_har_responses(position, problems, left_out):
            read.append(response.uri)
            yield response
            start.set()
            assert go_on.wait(30)

    entries = [har_entry(f"http://a.com/{number}") for number in range(5)]
    archive = har_of(tmp_path, *entries).archive

    async def query(*, has_waiter: bool) -> int:
        start.clear()
        go_on.clear()
        read.clear()
        repository = browser_cache.CachedResponseClient(
            archive, lambda position: position, responses, har.open_har_content
        )
        gives_up = asyncio.create_task(repository.last_capture_date("http://a.com/4"))
        await asyncio.to_thread(start.wait, 30)
        stays = asyncio.create_task(repository.last_capture_date("http://a.com/4")) if has_waiter else None
        await asyncio.sleep(0)
        gives_up.cancel()
        await asyncio.wait([gives_up])
        go_on.set()
        if stays is not None:
            assert await stays is not None
        await asyncio.get_running_loop().shutdown_default_executor()
        return len(read)

    assert asyncio.run(query(has_waiter=True)) == 5
    assert asyncio.run(query(has_waiter=False)) == 2


def test_folder_is_scanned_once(tmp_path: Path) -> None:
    """Concurrent callers share one scan; later changes are not noticed."""
    repository = har_of(tmp_path, har_entry("http://a.com/"), {})

    async def query() -> None:
        await asyncio.gather(*(repository.last_capture_date("http://a.com/") for _ in range(10)))
        (tmp_path / "b.har").write_bytes(har_text(har_entry("http://b.com/")))
        assert await repository.last_capture_date("http://b.com/") is None

    asyncio.run(query())
    assert repository.problems.counts == {"bad-entry": 1}
