"""A fake Wayback Machine, and rows of its CDX server."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from tests.archives.helpers import make_http_client
from tests.external.wayback_cdx import FIELDS, FakeWayback, StoredCapture, fake_wayback
from unlost.http import ArchiveHttpClient

PAGE = "http://example.com/page"


def with_archive(
    stored: list[StoredCapture],
    scenario: Callable[[FakeWayback, ArchiveHttpClient], Awaitable[None]],
) -> None:
    """Run a scenario against an archive with stored captures."""

    async def run() -> None:
        async with fake_wayback(stored) as fake, make_http_client() as http_client:
            await scenario(fake, http_client)

    asyncio.run(run())


def array(*rows: object) -> bytes:
    """Return rows as a CDX JSON array, below their field names."""
    return json.dumps([list(FIELDS), *rows]).encode()


def row(original: str = PAGE, timestamp: str = "20140210000001") -> list[str]:
    """Return a valid row."""
    return ["com,example)/page", timestamp, original, "text/html", "200", "D", "100"]
