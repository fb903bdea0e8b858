"""Common Crawl records by byte range, and invalid responses."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.archives.archive_files import body_of
from tests.archives.clients.common_crawl import HOME, UNCOLLECTED, ask, data_port, warcs
from tests.archives.helpers import collect_captures
from tests.external.common_crawl import CommonCrawl as FakeCommonCrawl
from tests.external.fault_server import Exchange, run_fault_server
from unlost.archives import CommonCrawlClient
from unlost.errors import FailedError

__all__ = ["ask", "data_port", "warcs"]
pytestmark = UNCOLLECTED


def test_record_is_read_from_full_response(ask: Callable[..., Any]) -> None:
    """A small WARC sent completely is accepted."""

    async def scenario(client: CommonCrawlClient, _fake: FakeCommonCrawl) -> None:
        assert body_of(await client.get("http://example.com/a/b")) == b"packed"

    ask(scenario, data="/whole/{filename}")


def serve_ranges(
    response: Callable[[Exchange, bytes, int, int], Coroutine[Any, Any, None]], warcs: Path
) -> Callable[[Exchange], Any]:
    """Return a handler with wrong range responses for the older WARC."""
    data = (warcs / "crawl-data" / "old.warc.gz").read_bytes()

    async def answering(exchange: Exchange) -> None:
        first, _, last = exchange.headers["range"].removeprefix("bytes=").partition("-")
        await response(exchange, data, int(first), int(last))

    return answering


async def _another_range(exchange: Exchange, data: bytes, first: int, last: int) -> None:
    await exchange.respond(206, data[: last - first + 1], content_range=f"bytes 0-{last - first}/{len(data)}")


async def _no_range_header(exchange: Exchange, data: bytes, first: int, last: int) -> None:
    await exchange.respond(206, data[first : last + 1])


async def _wrong_range_header(exchange: Exchange, data: bytes, first: int, last: int) -> None:
    await exchange.respond(206, data[: last - first + 1], content_range=f"bytes {first}-{last}/{len(data)}")


async def _short_body(exchange: Exchange, data: bytes, first: int, last: int) -> None:
    await exchange.respond(206, data[first:last], content_range=f"bytes {first}-{last}/{len(data)}")


async def _garbage(exchange: Exchange, data: bytes, first: int, last: int) -> None:
    await exchange.respond(206, b"x" * (last - first + 1), content_range=f"bytes {first}-{last}/{len(data)}")


async def _a_page(exchange: Exchange, _data: bytes, _first: int, _last: int) -> None:
    await exchange.respond(200, b"<html>welcome</html>")


async def _not_there(exchange: Exchange, _data: bytes, _first: int, _last: int) -> None:
    await exchange.respond(416, b"")


async def _forbidden(exchange: Exchange, _data: bytes, _first: int, _last: int) -> None:
    await exchange.respond(403, b"<Error>AccessDenied</Error>")


async def _endless(exchange: Exchange, data: bytes, _first: int, _last: int) -> None:
    await exchange.respond(200, data + bytes(9 << 20))


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (_another_range, "malformed"),
        (_no_range_header, "malformed"),
        (_wrong_range_header, "foreign"),
        (_short_body, "reset"),
        (_garbage, "malformed"),
        (_a_page, "malformed"),
        (_not_there, "status"),
        (_forbidden, "status"),
        (_endless, "too-large"),
    ],
)
def test_wrong_range_response_fails(
    ask: Callable[..., Any], warcs: Path, fault: Callable[..., Coroutine[Any, Any, None]], kind: str
) -> None:
    """No other content is returned in place of the record."""

    async def scenario(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        async with run_fault_server(serve_ranges(fault, warcs)) as faults:
            archive = replace(client.archive, replay=f"{faults.url}/{{filename}}")
            client = CommonCrawlClient(archive, client._client)
            capture = (await collect_captures(client.captures("http://example.com/a/b")))[0]
            with pytest.raises(FailedError) as raised:
                await client.fetch(capture)
            assert raised.value.kind == kind
            assert len(faults.paths) == 1
        del fake

    ask(scenario)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"offset": 0}, "foreign"),
        ({"datetime": "20140210000009"}, "foreign"),
        ({"uri": "http://example.com/x", "key": "com,example)/x"}, "foreign"),
        ({"offset": 1 << 40}, "status"),
        ({"length": 1 << 40}, "too-large"),
        ({"length": 0}, "malformed"),
        ({"filename": "../../etc/passwd"}, "malformed"),
        ({"filename": "/etc/passwd"}, "malformed"),
        ({"filename": "a?b"}, "malformed"),
        ({"filename": "http://elsewhere.example/a.warc.gz"}, "malformed"),
    ],
)
def test_rows_with_wrong_locations_fail(ask: Callable[..., Any], change: dict[str, Any], kind: str) -> None:
    """A record of another page, date or position is not returned, and file names cannot leave the host."""

    async def scenario(client: CommonCrawlClient, _fake: FakeCommonCrawl) -> None:
        capture = (await collect_captures(client.captures("http://example.com/a/b")))[0]
        with pytest.raises(FailedError) as raised:
            await client.fetch(replace(capture, **change))
        assert raised.value.kind == kind

    ask(scenario)


def test_truncated_range_is_reported_as_damage(ask: Callable[..., Any]) -> None:
    """A row with too small a length yields a damaged body or no record."""

    async def scenario(client: CommonCrawlClient, _fake: FakeCommonCrawl) -> None:
        capture = (await collect_captures(client.captures(HOME)))[0]
        fetched = await client.fetch(replace(capture, length=(capture.length or 0) - 12))
        assert fetched is not None
        assert fetched.truncated == "damage"
        fetched.body.close()
        with pytest.raises(FailedError) as raised:
            await client.fetch(replace(capture, length=12))
        assert raised.value.kind == "malformed"

    ask(scenario)
