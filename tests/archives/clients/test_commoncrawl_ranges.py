"""Records of Common Crawl by range, and all that may come in their place."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.archives.archive_files import body_of
from tests.archives.clients.common_crawl import HOME, UNCOLLECTED, ask, data_port, warcs
from tests.archives.helpers import listed
from tests.neighbours.common_crawl import CommonCrawl as FakeCommonCrawl
from tests.neighbours.faults import Talk, faulty
from unlost.archives import CommonCrawlClient
from unlost.errors import FailedError

__all__ = ["ask", "data_port", "warcs"]
pytestmark = UNCOLLECTED


def test_server_that_ignores_ranges(ask: Callable[..., Any]) -> None:
    """From a WARC that comes as a whole, if it is small, the record is taken out."""

    async def question(client: CommonCrawlClient, _fake: FakeCommonCrawl) -> None:
        assert body_of(await client.get("http://example.com/a/b")) == b"packed"

    ask(question, data="/whole/{filename}")


def _ranges(answer: Callable[[Talk, bytes, int, int], Coroutine[Any, Any, None]], warcs: Path) -> Callable[[Talk], Any]:
    """Return what answers ranges of the old WARC wrongly."""
    data = (warcs / "crawl-data" / "old.warc.gz").read_bytes()

    async def answering(talk: Talk) -> None:
        first, _, last = talk.headers["range"].removeprefix("bytes=").partition("-")
        await answer(talk, data, int(first), int(last))

    return answering


async def _another_range(talk: Talk, data: bytes, first: int, last: int) -> None:
    await talk.answer(206, data[: last - first + 1], content_range=f"bytes 0-{last - first}/{len(data)}")


async def _no_range_said(talk: Talk, data: bytes, first: int, last: int) -> None:
    await talk.answer(206, data[first : last + 1])


async def _a_lie(talk: Talk, data: bytes, first: int, last: int) -> None:
    await talk.answer(206, data[: last - first + 1], content_range=f"bytes {first}-{last}/{len(data)}")


async def _less_than_said(talk: Talk, data: bytes, first: int, last: int) -> None:
    await talk.answer(206, data[first:last], content_range=f"bytes {first}-{last}/{len(data)}")


async def _rubbish(talk: Talk, data: bytes, first: int, last: int) -> None:
    await talk.answer(206, b"x" * (last - first + 1), content_range=f"bytes {first}-{last}/{len(data)}")


async def _a_page(talk: Talk, _data: bytes, _first: int, _last: int) -> None:
    await talk.answer(200, b"<html>welcome</html>")


async def _not_there(talk: Talk, _data: bytes, _first: int, _last: int) -> None:
    await talk.answer(416, b"")


async def _forbidden(talk: Talk, _data: bytes, _first: int, _last: int) -> None:
    await talk.answer(403, b"<Error>AccessDenied</Error>")


async def _endless(talk: Talk, data: bytes, _first: int, _last: int) -> None:
    await talk.answer(200, data + bytes(9 << 20))


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (_another_range, "malformed"),
        (_no_range_said, "malformed"),
        (_a_lie, "foreign"),
        (_less_than_said, "reset"),
        (_rubbish, "malformed"),
        (_a_page, "malformed"),
        (_not_there, "status"),
        (_forbidden, "status"),
        (_endless, "too-large"),
    ],
)
def test_wrong_ranges_fail(
    ask: Callable[..., Any], warcs: Path, fault: Callable[..., Coroutine[Any, Any, None]], kind: str
) -> None:
    """Whatever comes in the place of the record is never handed out."""

    async def question(client: CommonCrawlClient, fake: FakeCommonCrawl) -> None:
        async with faulty(_ranges(fault, warcs)) as faults:
            archive = replace(client.archive, replay=f"{faults.url}/{{filename}}")
            client = CommonCrawlClient(archive, client._client)
            capture = (await listed(client.captures("http://example.com/a/b")))[0]
            with pytest.raises(FailedError) as raised:
                await client.fetch(capture)
            assert raised.value.kind == kind
            assert len(faults.paths) == 1
        del fake

    ask(question)


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
    """A record of another page, date or place than its row said is never handed out, and no name leads elsewhere."""

    async def question(client: CommonCrawlClient, _fake: FakeCommonCrawl) -> None:
        capture = (await listed(client.captures("http://example.com/a/b")))[0]
        with pytest.raises(FailedError) as raised:
            await client.fetch(replace(capture, **change))
        assert raised.value.kind == kind

    ask(question)


def test_truncated_member(ask: Callable[..., Any]) -> None:
    """A row whose length is too short gives what is there, and says that it is damaged; or nothing that is a record."""

    async def question(client: CommonCrawlClient, _fake: FakeCommonCrawl) -> None:
        capture = (await listed(client.captures(HOME)))[0]
        copy = await client.fetch(replace(capture, length=(capture.length or 0) - 12))
        assert copy is not None
        assert copy.truncated == "damage"
        copy.body.close()
        with pytest.raises(FailedError) as raised:
            await client.fetch(replace(capture, length=12))
        assert raised.value.kind == "malformed"

    ask(question)
