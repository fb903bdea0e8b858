"""What every archive of a browser's pages must hold to, asked of one that has the lost site."""

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.neighbours.lost_site import HOME, NOT_PAGES, PAGES
from unlost.archives import ArchiveClient, CachedResponseClient
from unlost.capture import Capture
from unlost.errors import ArchiveError
from unlost.registry import Archive, ArchiveKind

HOSTS = ("*.example", "http://localhost")
Make = Callable[[Archive], CachedResponseClient]


def entry(kind: ArchiveKind, folder: Path) -> Archive:
    """Return an archive on this machine."""
    return Archive("mine", "Mine", kind, folder=str(folder), deep=False)


async def listed(repository: ArchiveClient, *prefixes: str) -> list[Capture]:
    """Return everything below some prefixes."""
    return [capture for prefix in prefixes for capture in [each async for each in repository.list_prefix(prefix)]]


def check_pages(repository: CachedResponseClient, without: frozenset[str] = frozenset()) -> dict[str, Capture]:
    """Compare every page of the lost site with what the repository has of it, byte by byte; return what it lists."""

    async def compare() -> dict[str, Capture]:
        found = {capture.uri: capture for capture in await listed(repository, *HOSTS)}
        assert set(PAGES) - without - set(found) == set()
        assert not NOT_PAGES & set(found)
        for uri, page in PAGES.items():
            if uri in without:
                continue
            capture = found[uri]
            assert (capture.status, capture.mime) == (page.status, page.mime.partition(";")[0])
            assert capture.datetime >= "2024"
            copy = await repository.fetch(capture)
            assert copy is not None
            with copy.body as body:
                assert body.read() == (b"" if page.location else page.body), uri
            assert copy.header("content-type") == page.mime
            assert copy.capture == capture
            assert [each async for each in repository.captures(uri)] == [capture]
            assert await repository.last_capture_date(uri) == capture.datetime
        return found

    found = asyncio.run(compare())
    assert repository.problems.total == 0
    return found


def check_damage(make: Make, kind: ArchiveKind, folder: Path, work: Path, seed: int, *, has_checksums: bool) -> None:
    """Change real files in random places: nothing is raised but errors of archives.

    has_checksums: whether the format has them for bodies: then no page may come back changed.
    """
    chance = random.Random(seed)  # noqa: S311  the same every time
    files = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size]

    async def ask(repository: CachedResponseClient) -> None:
        try:
            captures = await listed(repository, *HOSTS)
        except ArchiveError:
            return
        for capture in captures:
            try:
                copy = await repository.fetch(capture)
            except ArchiveError:
                continue
            if copy is not None:
                with copy.body as body:
                    page = PAGES.get(capture.uri)
                    if has_checksums and page is not None:
                        assert body.read() == (b"" if page.location else page.body)

    for number in range(30):
        copy = work / str(number)
        shutil.copytree(folder, copy)
        for path in chance.sample(files, min(6, len(files))):
            place = copy / path.relative_to(folder)
            place.write_bytes(_changed(bytearray(place.read_bytes()), chance))
        asyncio.run(ask(make(entry(kind, copy))))
        shutil.rmtree(copy)


def _changed(data: bytearray, chance: random.Random) -> bytes:
    """Return some bytes with one or some of them changed, and perhaps without their end."""
    for _ in range(chance.choice((1, 1, 20))):
        # Near the ends are the structures; in the middle mostly bodies.
        at = chance.choice((chance.randrange(len(data)), chance.randrange(min(len(data), 700))))
        data[chance.choice((at, len(data) - 1 - at))] = chance.choice((0, 255, 128, chance.randrange(256)))
    return bytes(data[: chance.randrange(len(data))] if chance.random() < 0.2 else data)


def check_vanishing(repository: CachedResponseClient, folder: Path) -> None:
    """Delete everything once it was listed: it is not there then, and that is no error."""

    async def ask() -> None:
        capture = next(each for each in await listed(repository, *HOSTS) if each.uri == HOME)
        shutil.rmtree(folder)
        assert await repository.fetch(capture) is None
        assert await repository.get(HOME) is None

    asyncio.run(ask())
