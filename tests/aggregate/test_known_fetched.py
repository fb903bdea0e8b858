"""Maps and filters that come from an address: fetched when they have changed, and kept for the next process."""

import asyncio
import gzip
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.aggregate.maps import archive, pages
from tests.aggregate.scene import OTHER, PAGE, ROWS, Scene, replace
from tests.archives.stubs import Answers, reply
from tests.neighbours.listening import listening
from tests.neighbours.nginx import serving
from tests.virtual_clock import VirtualClock
from unlost.clock import SystemClock
from unlost.http import ArchiveHttpClient, MemoryLimitStore


def fetching(
    tmp_path: Path,
    address: str,
    work: Callable[[Scene], Awaitable[None]],
    *,
    filters: tuple[str, ...] = (),
    **options: Any,  # noqa: ANN401
) -> None:
    """Do something with who knows what is at an address."""

    async def run() -> None:
        async with ArchiveHttpClient(MemoryLimitStore(), SystemClock(), contact="me@example.com") as courier:
            subject = archive("a", mementomap=address, filters=filters)
            await work(Scene(tmp_path, subject, courier=courier, **options))

    asyncio.run(run())


async def statuses(work: Path, count: int) -> list[int]:
    """Return the statuses that nginx gave, but for its readiness, once there are so many: it notes them afterwards."""
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
    pages_.write_bytes(Path(pages(tmp_path, PAGE, "http://other.org/").path).read_bytes())

    async def steps(scene: Scene) -> None:
        await scene.known.refresh()
        assert (scene.says(), await statuses(work, 2)) == (True, [200, 200])
        for _ in range(2):
            await scene.known.refresh()
        assert (await statuses(work, 6))[2:] == [304] * 4
        assert scene.known.statuses()[0].unchanged == 4
        replace(file, OTHER)
        await scene.known.refresh()
        assert (scene.says(), (await statuses(work, 8))[6:]) == (False, [200, 304])
        replace(file, "<html>oops</html>\n")
        os.utime(file, (1_600_000_001, 1_600_000_001))
        for _ in range(3):
            await scene.known.refresh()
        assert (scene.says(), scene.says("http://other.org/")) == (False, True)
        assert (await statuses(work, 14))[8:] == [200, 304, 304, 304, 304, 304]
        assert "what is there now cannot be used" in scene.problems()[0]
        file.unlink()
        await scene.known.refresh()
        assert (scene.says("http://other.org/"), "status 404" in scene.problems()[0]) == (True, True)
        replace(file, ROWS)
        await scene.known.refresh()
        assert (scene.says("http://other.org/"), scene.problems()) == (False, ())
        assert len(scene.told) == 2

    with serving(folder, work) as port:
        at = f"http://127.0.0.1:{port}"
        fetching(tmp_path, f"{at}/a.ukvs", steps, filters=(f"{at}/a.filter",), clock=VirtualClock(1_709_251_200))
    kept = [path.name for path in (tmp_path / "cache").iterdir()]
    assert sum(name.endswith(".json") for name in kept) == 2
    assert not any(name.endswith(".part") for name in kept)


def test_cached_download_is_used_after_a_restart(tmp_path: Path) -> None:
    """Also if the server is down; the request is conditional."""
    folder, work = tmp_path / "served", tmp_path / "nginx"
    folder.mkdir()
    work.mkdir()
    (folder / "a.ukvs.gz").write_bytes(gzip.compress(ROWS.encode()))

    async def first(scene: Scene) -> None:
        await scene.known.load()
        assert scene.says() is None
        await scene.known.refresh()
        assert scene.says() is True

    async def second(scene: Scene) -> None:
        await scene.known.load()
        assert scene.says() is True
        await scene.known.refresh()
        assert await statuses(work, 2) == [200, 304]

    async def third(scene: Scene) -> None:
        await scene.known.refresh()
        assert scene.says() is True
        assert "refused" in scene.problems()[0]

    async def damaged(scene: Scene) -> None:
        (copy,) = (path for path in (tmp_path / "cache").iterdir() if path.suffix != ".json")
        copy.write_bytes(b"rubbish that is no map at all")
        await scene.known.load()
        assert (scene.says(), "the copy that was kept" in scene.problems()[0]) == (None, True)

    with serving(folder, work) as port:
        address = f"http://127.0.0.1:{port}/a.ukvs.gz"
        fetching(tmp_path, address, first)
        fetching(tmp_path, address, second)
    fetching(tmp_path, address, third)
    fetching(tmp_path, address, damaged)


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
            listening(handle) as address,
            ArchiveHttpClient(MemoryLimitStore(), SystemClock(), contact="me@example.com") as courier,
        ):
            subject = archive("a", mementomap=f"{address}/map")
            scene = Scene(tmp_path, subject, courier=courier, max_bytes=1 << 20)
            said = []
            for _ in scripted:
                await scene.known.refresh()
                said.append((scene.says(), " ".join(scene.problems())))
            assert [each for each, _ in said] == [True, True, True, True, False, False]
            assert [bool(problem) for _, problem in said] == [False, False, True, True, False, False]
            assert "1048576 bytes" in said[2][1]
            assert "status 403" in said[3][1]

    asyncio.run(run())
    assert seen[:5] == [{}] * 5
    assert seen[5] == {"If-None-Match": 'W/"weak"', "If-Modified-Since": "Sat, 10 Feb 2024 00:00:01 GMT"}


def test_full_disk_does_not_replace_the_loaded_map(tmp_path: Path) -> None:
    """It is reported, and the next refresh may succeed."""
    address = "http://a.example/map"
    courier = Answers(reply(address, ROWS.encode()))
    scene = Scene(tmp_path, archive("a", mementomap=address), courier=courier)
    (tmp_path / "cache").write_text("a file where the folder should be")

    async def run() -> None:
        await scene.known.refresh()
        assert (scene.says(), "cache" in scene.problems()[0]) == (None, True)

    asyncio.run(run())
