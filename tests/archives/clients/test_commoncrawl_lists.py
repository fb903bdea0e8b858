"""Lists of Common Crawl, of captures and of crawls, that are wrong, cut or too long."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.archives.clients.common_crawl import HOME, UNCOLLECTED, ask, data_port, warcs
from tests.archives.helpers import collected, listed
from tests.neighbours.common_crawl import CommonCrawl as FakeCommonCrawl
from unlost.archives import CommonCrawlClient
from unlost.errors import FailedError, ListCutError, NotNowError

__all__ = ["ask", "data_port", "warcs"]
pytestmark = UNCOLLECTED


@pytest.mark.parametrize(
    ("instead", "kind"),
    [
        ((200, b"<html>" + b"rubbish\n" * 650_000), "malformed"),
        ((200, b"\0" * 5_000_000), "malformed"),
        ((200, b"[" * 5_000_000), "malformed"),
        ((404, b"<html>no such page</html>"), "status"),
        ((404, b'{"message": "Collection not found: x"}'), "status"),
        ((403, b"Blocked"), "status"),
        ((400, b'{"message": "bad"}'), "status"),
    ],
)
def test_invalid_index_response_fails(ask: Callable[..., Any], instead: tuple[int, bytes], kind: str) -> None:
    """Rubbish, other people's 404s and refusals are errors, not empty lists."""

    async def question(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        fake.instead["-index"] = instead
        for asked in (client.captures(HOME), client.list_prefix("http://example.com")):
            with pytest.raises(FailedError) as raised:
                await listed(asked)
            assert raised.value.kind == kind
        with pytest.raises(FailedError):
            await client.get(HOME)

    ask(question)


def test_invalid_rows_are_skipped(ask: Callable[..., Any]) -> None:
    """Rows that cannot be read, or of pages that were not asked for, are counted; the others are listed."""

    async def question(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
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
        fake.instead["2016-22-index"] = (200, b"\n".join(rows))
        found = await listed(client.captures(HOME))
        assert [capture.datetime[:4] for capture in found] == ["2016", "2014"]
        assert client.problems.counts == {"bad-json": 3, "other-page": 1, "bad-date": 1, "bad-number": 1}

    ask(question)


def test_repeated_page_cuts_the_list(ask: Callable[..., Any]) -> None:
    """It is not followed, its rows are listed once, and the list says at its end that it is cut."""

    async def question(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        row = json.dumps(fake.crawls[0].rows[0]).encode()
        fake.instead["2016-22-index?url=example.com&matchType=host&output=json&showNumPages"] = (
            200,
            b'{"pages": 1000000000, "pageSize": 5, "blocks": 1}',
        )
        fake.instead["2016-22-index"] = (200, row)
        found, error = await collected(client.list_prefix("http://example.com"))
        assert isinstance(error, ListCutError)
        assert "repeats" in str(error)
        assert [capture.datetime[:4] for capture in found] == ["2016", *["2014"] * 4], "the other crawl is asked"
        assert len([path for path in fake.asked if "2016-22" in path]) == 3

    ask(question)


def test_server_without_paging(ask: Callable[..., Any]) -> None:
    """A server that answers the question for pages with rows is asked for one page."""

    async def question(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        row = json.dumps(fake.crawls[0].rows[0]).encode()
        fake.instead["2016-22-index"] = (200, row)
        assert len(await listed(client.list_prefix("http://example.com", "2016"))) == 1

    ask(question)


@pytest.mark.parametrize(
    "answer", [b'{"pages": -1}', b'{"pages": "many"}', b'{"pages": true}', b"<html>", b"{}", b"[[1]]"]
)
def test_invalid_number_of_pages_fails(ask: Callable[..., Any], answer: bytes) -> None:
    """It is an error, not an empty list."""

    async def question(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        fake.instead["showNumPages"] = (200, answer)
        with pytest.raises(FailedError) as raised:
            await listed(client.list_prefix("http://example.com"))
        assert raised.value.kind == "malformed"

    ask(question)


def test_more_pages_than_the_limit_cut_the_list(ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that is longer than anybody reads says so at its end."""
    monkeypatch.setattr("unlost.archives.common_crawl.MAX_INDEX_PAGES", 1)

    async def question(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        fake.page_rows = 2
        found, error = await collected(client.list_prefix("http://example.com", "2014", "2014"))
        assert isinstance(error, ListCutError)
        assert "of which 1" in str(error)
        assert len(found) == 2

    ask(question)


def test_full_first_page_has_a_second_one(ask: Callable[..., Any]) -> None:
    """Captures of one address are listed to their end, however many there are."""

    async def question(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        row = fake.crawls[0].rows[0]
        fake.crawls[0].rows = [
            {**row, "timestamp": f"2016050500{number // 60:02d}{number % 60:02d}"} for number in range(2400)
        ]
        fake.page_rows = 1000
        assert len({c.datetime for c in await listed(client.captures(HOME)) if c.datetime > "2016"}) == 2400

    ask(question)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((200, b"<html>"), "malformed"),
        ((200, b"{}"), "malformed"),
        ((200, b"[" * 100_000), "malformed"),
        ((404, b""), "status"),
    ],
)
def test_invalid_list_of_crawls_fails(ask: Callable[..., Any], answer: tuple[int, bytes], kind: str) -> None:
    """It is an error, and asked for again by the next question."""

    async def question(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        fake.instead["collinfo"] = answer
        with pytest.raises(FailedError) as raised:
            await listed(client.captures(HOME))
        assert raised.value.kind == kind
        fake.instead.clear()
        assert len(await listed(client.captures(HOME))) == 3

    ask(question)


def test_crawls_on_other_hosts_are_skipped(ask: Callable[..., Any]) -> None:
    """An index server of another host than the list's is not asked, and counted."""

    async def question(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        entries = [
            {"id": "CC-MAIN-2016-22", "cdx-api": f"{fake.url}/CC-MAIN-2016-22-index"},
            {"id": "CC-MAIN-2014-10", "cdx-api": "http://10.0.0.1/CC-MAIN-2014-10-index"},
            {"id": "CC-MAIN-2014-10", "cdx-api": "file:///etc/passwd"},
            {"id": 7},
            "text",
        ]
        fake.instead["collinfo"] = (200, json.dumps(entries).encode())
        assert len(await listed(client.captures(HOME))) == 2
        assert client.problems.counts == {"bad-crawl": 4}

    ask(question)


def test_slow_down_is_obeyed(ask: Callable[..., Any]) -> None:
    """After 503 nothing is asked again before it is time; whoever does not want to wait so long is told."""

    async def question(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        fake.instead["-index"] = (503, b"slow down")
        with pytest.raises(NotNowError):
            await listed(client.captures(HOME))
        assert len([path for path in fake.asked if "-index" in path]) == 1

    ask(question, max_wait=0.5)
