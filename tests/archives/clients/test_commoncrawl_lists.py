"""Invalid, cut and overlong lists of captures and crawls of Common Crawl."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.archives.clients.common_crawl import HOME, UNCOLLECTED, ask, data_port, warcs
from tests.archives.helpers import collect_captures, collect_until_error
from tests.external.common_crawl import CommonCrawl as FakeCommonCrawl
from unlost.archives import CommonCrawlClient
from unlost.errors import FailedError, ListCutError, NotNowError

__all__ = ["ask", "data_port", "warcs"]
pytestmark = UNCOLLECTED


@pytest.mark.parametrize(
    ("instead", "kind"),
    [
        ((200, b"<html>" + b"garbage\n" * 650_000), "malformed"),
        ((200, b"\0" * 5_000_000), "malformed"),
        ((200, b"[" * 5_000_000), "malformed"),
        ((404, b"<html>no such page</html>"), "status"),
        ((404, b'{"message": "Collection not found: x"}'), "status"),
        ((403, b"Blocked"), "status"),
        ((400, b'{"message": "bad"}'), "status"),
    ],
)
def test_invalid_index_response_fails(ask: Callable[..., Any], instead: tuple[int, bytes], kind: str) -> None:
    """Garbage, foreign 404s and refusals are errors, not empty listings."""

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        fake.overrides["-index"] = instead
        for requested in (client.captures(HOME), client.list_prefix("http://example.com")):
            with pytest.raises(FailedError) as raised:
                await collect_captures(requested)
            assert raised.value.kind == kind
        with pytest.raises(FailedError):
            await client.get(HOME)

    ask(scenario)


def test_invalid_rows_are_skipped(ask: Callable[..., Any]) -> None:
    """Unreadable rows and rows of other pages are counted; the others are listed."""

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        good = json.dumps(fake.crawls[0].rows[0]).encode()
        half = b'{"url": "\\ud800", "urlkey": "com,example)/", "timestamp": "2014"}'
        rows = [
            b"{",
            b"[]",
            half,
            good,
            b"",
            good.replace(b"example", b"other"),
            good.replace(b'"2016', b'"x'),
            good.replace(b'"offset": "', b'"offset": "-'),
        ]
        fake.overrides["2016-22-index"] = (200, b"\n".join(rows))
        results = await collect_captures(client.captures(HOME))
        assert [capture.datetime[:4] for capture in results] == ["2016", "2014"]
        assert client.problems.counts == {"bad-json": 3, "other-page": 1, "bad-date": 1, "bad-number": 1}

    ask(scenario)


def test_repeated_page_cuts_the_list(ask: Callable[..., Any]) -> None:
    """Its rows are listed once, and the listing raises at its end."""

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        row = json.dumps(fake.crawls[0].rows[0]).encode()
        fake.overrides["2016-22-index?url=example.com&matchType=host&output=json&showNumPages"] = (
            200,
            b'{"pages": 1000000000, "pageSize": 5, "blocks": 1}',
        )
        fake.overrides["2016-22-index"] = (200, row)
        results, error = await collect_until_error(client.list_prefix("http://example.com"))
        assert isinstance(error, ListCutError)
        assert "repeats" in str(error)
        assert [capture.datetime[:4] for capture in results] == ["2016", *["2014"] * 4], "the other crawl is asked"
        assert len([path for path in fake.requests if "2016-22" in path]) == 3

    ask(scenario)


def test_server_without_paging_is_requested_once(ask: Callable[..., Any]) -> None:
    """A server that ignores `showNumPages` is requested for one page."""

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        row = json.dumps(fake.crawls[0].rows[0]).encode()
        fake.overrides["2016-22-index"] = (200, row)
        assert len(await collect_captures(client.list_prefix("http://example.com", "2016"))) == 1

    ask(scenario)


@pytest.mark.parametrize(
    "response", [b'{"pages": -1}', b'{"pages": "many"}', b'{"pages": true}', b"<html>", b"{}", b"[[1]]"]
)
def test_invalid_number_of_pages_fails(ask: Callable[..., Any], response: bytes) -> None:
    """It is an error, not an empty listing."""

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        fake.overrides["showNumPages"] = (200, response)
        with pytest.raises(FailedError) as raised:
            await collect_captures(client.list_prefix("http://example.com"))
        assert raised.value.kind == "malformed"

    ask(scenario)


def test_more_pages_than_the_limit_cut_the_list(ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The listing raises at its end."""
    monkeypatch.setattr("unlost.archives.common_crawl.MAX_INDEX_PAGES", 1)

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        fake.page_rows = 2
        results, error = await collect_until_error(client.list_prefix("http://example.com", "2014", "2014"))
        assert isinstance(error, ListCutError)
        assert "of which 1" in str(error)
        assert len(results) == 2

    ask(scenario)


def test_full_first_page_has_a_second_one(ask: Callable[..., Any]) -> None:
    """All captures of a URL are listed."""

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        row = fake.crawls[0].rows[0]
        fake.crawls[0].rows = [
            {**row, "timestamp": f"2016050500{number // 60:02d}{number % 60:02d}"} for number in range(2400)
        ]
        fake.page_rows = 1000
        assert len({c.datetime for c in await collect_captures(client.captures(HOME)) if c.datetime > "2016"}) == 2400

    ask(scenario)


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        ((200, b"<html>"), "malformed"),
        ((200, b"{}"), "malformed"),
        ((200, b"[" * 100_000), "malformed"),
        ((404, b""), "status"),
    ],
)
def test_invalid_list_of_crawls_fails(ask: Callable[..., Any], response: tuple[int, bytes], kind: str) -> None:
    """The next query requests it again."""

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        fake.overrides["collinfo"] = response
        with pytest.raises(FailedError) as raised:
            await collect_captures(client.captures(HOME))
        assert raised.value.kind == kind
        fake.overrides.clear()
        assert len(await collect_captures(client.captures(HOME))) == 3

    ask(scenario)


def test_crawls_on_other_hosts_are_skipped(ask: Callable[..., Any]) -> None:
    """Index servers of foreign hosts are counted and not queried."""

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        entries = [
            {"id": "CC-MAIN-2016-22", "cdx-api": f"{fake.url}/CC-MAIN-2016-22-index"},
            {"id": "CC-MAIN-2014-10", "cdx-api": "http://10.0.0.1/CC-MAIN-2014-10-index"},
            {"id": "CC-MAIN-2014-10", "cdx-api": "file:///etc/passwd"},
            {"id": 7},
            "text",
        ]
        fake.overrides["collinfo"] = (200, json.dumps(entries).encode())
        assert len(await collect_captures(client.captures(HOME))) == 2
        assert client.problems.counts == {"bad-crawl": 4}

    ask(scenario)


def test_slow_down_is_obeyed(ask: Callable[..., Any]) -> None:
    """After 503 no request is sent before the given time; without patience an error is raised."""

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        fake.overrides["-index"] = (503, b"slow down")
        with pytest.raises(NotNowError):
            await collect_captures(client.captures(HOME))
        assert len([path for path in fake.requests if "-index" in path]) == 1

    ask(scenario, max_wait=0.5)
