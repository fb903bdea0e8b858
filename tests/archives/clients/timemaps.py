"""A scripted archive of one page: TimeMaps, a TimeGate, and mementos."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from tests.archives.helpers import make_http_client
from tests.external.scripted_server import ScriptedResponse, ScriptedServer, scripted_server
from unlost.http import ArchiveHttpClient
from unlost.registry import Archive, ArchiveKind

PAGE = "http://example.com/page"
MAP = f"/map/{PAGE}"
GATE = f"/gate/{PAGE}"
OLD, NEW = "20140210000001", "20160210000001"
DATES = {OLD: "Mon, 10 Feb 2014 00:00:01 GMT", NEW: "Wed, 10 Feb 2016 00:00:01 GMT"}
COPIES = {
    f"/{date}/{PAGE}": ScriptedResponse(200, {"Memento-Datetime": DATES[date], "Content-Type": "text/html"}, date)
    for date in DATES
}


def memento(date: str, position: str = "{base}", rel: str = "memento") -> str:
    """Return the link to a memento."""
    return f'<{position}/{date}/{PAGE}>; rel="{rel}"; datetime="{DATES[date]}"'


def timemap(*entries: str) -> ScriptedResponse:
    """Return a TimeMap of the page."""
    text = ",\n".join([f'<{PAGE}>; rel="original"', *entries])
    return ScriptedResponse(200, {"Content-Type": "application/link-format"}, text)


def next_page(path: str, begin: str = OLD, more: str = "") -> str:
    """Return the link to another page of a TimeMap."""
    return f'<{path}>; rel="timemap"; from="{DATES[begin]}"{more}'


def with_archive(
    responses: Mapping[str, ScriptedResponse],
    scenario: Callable[[ScriptedServer, Archive, ArchiveHttpClient], Awaitable[None]],
) -> None:
    """Run a scenario against an archive with a TimeMap and a TimeGate, without raw mementos."""

    async def run() -> None:
        async with scripted_server(responses) as server, make_http_client() as http_client:
            archive = Archive(
                "a", "A", ArchiveKind.MEMENTO, timemap=f"{server.base}/map/", timegate=f"{server.base}/gate/",
                migrated=("text/html",),
            )  # fmt: skip
            await scenario(server, archive, http_client)

    asyncio.run(run())
