"""Maps and filters from URLs: conditional requests, and downloads that persist across restarts."""

import asyncio
import gzip
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.aggregate.holdings_setup import OTHER, PAGE, ROWS, HoldingsSetup, replace_file
from tests.aggregate.maps import archive, filter_of_pages
from tests.archives.stubs import StubHttpClient, reply
from tests.external.local_server import serve_handler
from tests.external.nginx import serve_folder
from tests.virtual_clock import VirtualClock
from unlost.clock import SystemClock
from unlost.http import ArchiveHttpClient, MemoryLimitStore


def run_with_downloads(
    tmp_path: Path,
    url: str,
    work: Callable[[HoldingsSetup], Awaitable[None]],
    *,
    filters: tuple[str, ...] = (),
    **options: Any,  # noqa: ANN401
) -> None:
    """Run a test with a store that downloads these files."""

    async def run() -> None:
        async with ArchiveHttpClient(MemoryLimitStore(), SystemClock(), contact="me@example.com") as client:
            subject = archive("a", mementomap=url, filters=filters)
            await work(HoldingsSetup(tmp_path, subject, courier=client, **options))

    asyncio.run(run())


async def statuses(work: Path, count: int) -> list[int]:
    """Return the status codes of at least `count` responses of nginx; it logs them later."""
    found: list[int] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            await asyncio.sleep(0.005)
            lines = (work / "access.log").read_text().splitlines()
            found = [int(line.split('"')[2].split()[0]) for line in lines if "/ready" not in line]
    return found


def test_conditional_requests_to_nginx(tmp_path: Path) -> None:
    """An unchanged map is not sent again; a new one is used; a broken one is rejected and not downloaded again."""
    folder, work = tmp_path / "served", tmp_path / "nginx"
    folder.mkdir()
    work.mkdir()
    file = folder / "a.ukvs"
    file.write_text(ROWS)
    os.utime(file, (1_600_000_000, 1_600_000_000))
    pages_ = folder / "a.filter"
    pages_.write_bytes(Path(filter_of_pages(tmp_path, PAGE, "http://other.org/").path).read_bytes())

    async def steps(setup: HoldingsSetup) -> None:
        await setup.store.refresh()
        assert (setup.should_query(), await statuses(work, 2)) == (True, [200, 200])
        for _ in range(2):
            await setup.store.refresh()
        assert (await statuses(work, 6))[2:] == [304] * 4
        assert setup.store.statuses()[0].unchanged == 4
        replace_file(file, OTHER)
        await setup.store.refresh()
        assert (setup.should_query(), (await statuses(work, 8))[6:]) == (False, [200, 304])
        replace_file(file, "<html>oops</html>\n")
        os.utime(file, (1_600_000_001, 1_600_000_001))
        for _ in range(3):
            await setup.store.refresh()
        assert (setup.should_query(), setup.should_query("http://other.org/")) == (False, True)
        assert (await statuses(work, 14))[8:] == [200, 304, 304, 304, 304, 304]
        assert "what is there now cannot be used" in setup.problems()[0]
        file.unlink()
        await setup.store.refresh()
        assert (setup.should_query("http://other.org/"), "status 404" in setup.problems()[0]) == (True, True)
        replace_file(file, ROWS)
        await setup.store.refresh()
        assert (setup.should_query("http://other.org/"), setup.problems()) == (False, ())
        assert len(setup.warnings) == 2

    with serve_folder(folder, work) as port:
        at = f"http://127.0.0.1:{port}"
        run_with_downloads(
            tmp_path, f"{at}/a.ukvs", steps, filters=(f"{at}/a.filter",), clock=VirtualClock(1_709_251_200)
        )
    cached = [path.name for path in (tmp_path / "cache").iterdir()]
    assert sum(name.endswith(".json") for name in cached) == 2
    assert not any(name.endswith(".part") for name in cached)


def test_cached_download_is_used_after_a_restart(tmp_path: Path) -> None:
    """Also if the server is down; the request is conditional."""
    folder, work = tmp_path / "served", tmp_path / "nginx"
    folder.mkdir()
    work.mkdir()
    (folder / "a.ukvs.gz").write_bytes(gzip.compress(ROWS.encode()))

    async def first(setup: HoldingsSetup) -> None:
        await setup.store.load()
        assert setup.should_query() is None
        await setup.store.refresh()
        assert setup.should_query() is True

    async def second(setup: HoldingsSetup) -> None:
        await setup.store.load()
        assert setup.should_query() is True
        await setup.store.refresh()
        assert await statuses(work, 2) == [200, 304]

    async def third(setup: HoldingsSetup) -> None:
        await setup.store.refresh()
        assert setup.should_query() is True
        assert "refused" in setup.problems()[0]

    async def damaged(setup: HoldingsSetup) -> None:
        (memento,) = (path for path in (tmp_path / "cache").iterdir() if path.suffix != ".json")
        memento.write_bytes(b"rubbish that is no map at all")
        await setup.store.load()
        assert (setup.should_query(), "the copy that was kept" in setup.problems()[0]) == (None, True)

    with serve_folder(folder, work) as port:
        url = f"http://127.0.0.1:{port}/a.ukvs.gz"
        run_with_downloads(tmp_path, url, first)
        run_with_downloads(tmp_path, url, second)
    run_with_downloads(tmp_path, url, third)
    run_with_downloads(tmp_path, url, damaged)


def test_invalid_validators_and_large_bodies_are_rejected(tmp_path: Path) -> None:
    """A download after a server error is used."""
    from aiohttp import web

    seen: list[dict[str, str]] = []
    scripted = [
        web.Response(text=ROWS, headers={"ETag": "not quoted", "Last-Modified": "\u00e4gestern"}),
        web.Response(text=ROWS, headers={"ETag": '"' + "x" * 600 + '"'}),
        web.Response(body=b"com,a)/ 1\n" * 200_000),
        web.Response(status=403, text="no"),
        web.Response(text=OTHER, headers={"ETag": 'W/"weak"', "Last-Modified": "Sat, 10 Feb 2024 00:00:01 GMT"}),
        web.Response(status=304),
    ]

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        seen.append({name: value for name, value in request.headers.items() if name.startswith("If-")})
        return scripted[len(seen) - 1]

    async def run() -> None:
        async with (
            serve_handler(handle) as url,
            ArchiveHttpClient(MemoryLimitStore(), SystemClock(), contact="me@example.com") as client,
        ):
            subject = archive("a", mementomap=f"{url}/map")
            setup = HoldingsSetup(tmp_path, subject, courier=client, max_bytes=1 << 20)
            results = []
            for _ in scripted:
                await setup.store.refresh()
                results.append((setup.should_query(), " ".join(setup.problems())))
            assert [each for each, _ in results] == [True, True, True, True, False, False]
            assert [bool(problem) for _, problem in results] == [False, False, True, True, False, False]
            assert "1048576 bytes" in results[2][1]
            assert "status 403" in results[3][1]

    asyncio.run(run())
    assert seen[:5] == [{}] * 5
    assert seen[5] == {"If-None-Match": 'W/"weak"', "If-Modified-Since": "Sat, 10 Feb 2024 00:00:01 GMT"}


def test_full_disk_does_not_replace_the_loaded_map(tmp_path: Path) -> None:
    """It is reported, and the next refresh may succeed."""
    url = "http://a.example/map"
    client = StubHttpClient(reply(url, ROWS.encode()))
    setup = HoldingsSetup(tmp_path, archive("a", mementomap=url), courier=client)
    (tmp_path / "cache").write_text("a file where the folder should be")

    async def run() -> None:
        await setup.store.refresh()
        assert (setup.should_query(), "cache" in setup.problems()[0]) == (None, True)

    asyncio.run(run())
