"""Common Crawl: listings over all crawls, and captures by byte range."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.archives.archive_files import body_of
from tests.archives.clients.common_crawl import HOME, UNCOLLECTED, ask, data_port, warcs
from tests.archives.helpers import collect_captures, collect_until_error
from tests.external.common_crawl import CommonCrawl as FakeCommonCrawl
from unlost.archives import CommonCrawlClient
from unlost.errors import FailedError, ListCutError, UsageError
from unlost.registry import Archive, ArchiveKind

__all__ = ["ask", "data_port", "warcs"]
pytestmark = UNCOLLECTED


def test_captures_of_a_page(ask: Callable[..., Any]) -> None:
    """All crawls are queried, newest first, with one request each; the list of crawls is requested once."""

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        for _ in range(2):
            results = await collect_captures(client.captures("https://www.example.com"))
            assert [(c.datetime, c.status, c.revisit, c.archive) for c in results] == [
                ("20160505000000", 200, False, "cc"),
                ("20160506000000", 304, True, "cc"),
                ("20140210000001", 200, False, "cc"),
            ]
            assert results[0].filename == "crawl-data/new.warc.gz"
        assert [path.partition("?")[0] for path in fake.requests] == [
            "/collinfo.json",
            *["/CC-MAIN-2016-22-index", "/CC-MAIN-2014-10-index"] * 2,
        ]
        assert await collect_captures(client.captures("http://nowhere.example/")) == []
        assert client.problems.total == 0

    ask(scenario)


def test_prefix_is_listed_over_all_pages(ask: Callable[..., Any]) -> None:
    """Folders, hosts and domains are listed; crawls outside the period are not queried."""

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        fake.page_rows = 2
        folder = [c.uri async for c in client.list_prefix("http://example.com/a/", "2014", "2014")]
        assert folder == ["http://example.com/a/", "http://example.com/a/b"]
        fake.is_loose = True
        assert [c.uri async for c in client.list_prefix("http://example.com/a/", "2014", "2014")] == folder, "each once"
        assert not [path for path in fake.requests if "2016-22" in path]
        assert len([c async for c in client.list_prefix("http://example.com")]) == 8
        domain = [c.uri async for c in client.list_prefix("*.example.com", last="201402")]
        assert len(domain) == 5
        assert domain[-1] == "http://shop.example.com/"
        assert [c async for c in client.list_prefix("http://example.com", "2015", "2015")] == []

    ask(scenario)


def test_captures_are_fetched_by_range(ask: Callable[..., Any]) -> None:
    """One record is read from the WARC and decoded; truncation is marked, a missing record is None."""

    async def scenario(client: CommonCrawlClient, _fake: FakeCommonCrawl) -> None:
        assert body_of(await client.get(HOME)) == b"second"
        assert body_of(await client.get(HOME, "2014")) == b"first"
        assert body_of(await client.get("http://example.com/a/b")) == b"packed"
        cut = await client.get("http://example.com/ab")
        assert cut is not None
        assert (cut.truncated, cut.capture.archive, cut.capture.status) == ("length", "cc", 200)
        cut.body.close()
        gone = await client.get("http://example.com/gone")
        assert gone is not None
        assert gone.capture.status == 404
        gone.body.close()
        assert await client.get("http://nowhere.example/") is None
        capture = (await collect_captures(client.captures(HOME)))[0]
        assert await client.fetch(replace(capture, filename="crawl-data/lost.warc.gz")) is None
        assert body_of(await client.fetch(replace(capture, filename=None))) == b"second"

    ask(scenario)


def test_closest_crawl_is_queried_first(ask: Callable[..., Any]) -> None:
    """Crawls that cannot have a closer capture are not queried."""

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        body_of(await client.get(HOME, "20140210"))
        assert await client.last_capture_date("http://example.com/gone") == "20160505000001"
        assert await client.last_capture_date(HOME) == "20160506000000", "a revisit is a visit"
        assert [path.partition("?")[0] for path in fake.requests] == [
            "/collinfo.json",
            "/CC-MAIN-2014-10-index",
            "/CC-MAIN-2016-22-index",
            "/CC-MAIN-2016-22-index",
        ]
        assert await client.last_capture_date("http://nowhere.example/") is None

    ask(scenario)


def test_revisit_has_body_of_named_record(ask: Callable[..., Any]) -> None:
    """A revisit that names no record raises an error."""

    async def scenario(client: CommonCrawlClient, _fake: FakeCommonCrawl) -> None:
        _, again, _ = await collect_captures(client.captures(HOME))
        fetched = await client.fetch(again)
        assert fetched is not None
        assert (fetched.capture.datetime, fetched.capture.status) == ("20160506000000", 200)
        assert fetched.capture.revisit_of == (HOME, "20140210000001")
        assert body_of(fetched) == b"first"
        other = (await collect_captures(client.captures("http://example.com/a/")))[0]
        with pytest.raises(FailedError, match="as before"):
            await client.fetch(other)
        assert body_of(await client.get("http://example.com/a/")) == b"folder", "revisits are not chosen"

    ask(scenario)


def test_max_crawls_limits_the_crawls(ask: Callable[..., Any]) -> None:
    """A limited listing raises at its end."""

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        results, error = await collect_until_error(client.captures(HOME))
        assert isinstance(error, ListCutError)
        assert "1 of 2 crawls" in str(error)
        assert len(results) == 2
        assert not [path for path in fake.requests if "2014" in path]
        assert len([c async for c in client.list_prefix("http://example.com", "2014", "2014")]) == 4, (
            "there is but one then"
        )

    ask(scenario, crawls=1)


def test_registry_entry_without_urls_is_rejected() -> None:
    """The URLs of the list of crawls and of the data are required."""
    entry = Archive("cc", "Common Crawl", ArchiveKind.COMMON_CRAWL, cdx="http://127.0.0.1/collinfo.json")

    class UnusedHttpClient:
        async def send(self, *_: object) -> Any:  # noqa: ANN401  never called
            raise AssertionError

    with pytest.raises(UsageError, match="filename"):
        CommonCrawlClient(entry, UnusedHttpClient())
