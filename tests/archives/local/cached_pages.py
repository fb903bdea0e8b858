"""Common checks for archives of browser pages, based on a visit to the lost site."""

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.external.lost_site import HOME, NOT_PAGES, PAGES
from unlost.archives import ArchiveClient, CachedResponseClient
from unlost.capture import Capture
from unlost.errors import ArchiveError
from unlost.registry import Archive, ArchiveKind

HOSTS = ("*.example", "http://localhost")
Make = Callable[[Archive], CachedResponseClient]


def entry(kind: ArchiveKind, folder: Path) -> Archive:
    """Return a local archive."""
    return Archive("mine", "Mine", kind, folder=str(folder), deep=False)


async def list_prefixes(repository: ArchiveClient, *prefixes: str) -> list[Capture]:
    """Return everything below some prefixes."""
    return [capture for prefix in prefixes for capture in [each async for each in repository.list_prefix(prefix)]]


def check_pages(repository: CachedResponseClient, without: frozenset[str] = frozenset()) -> dict[str, Capture]:
    """Compare every page of the lost site with the archive, byte by byte; return the listed captures."""

    async def compare() -> dict[str, Capture]:
        results = {capture.uri: capture for capture in await list_prefixes(repository, *HOSTS)}
        assert set(PAGES) - without - set(results) == set()
        assert not NOT_PAGES & set(results)
        for uri, page in PAGES.items():
            if uri in without:
                continue
            capture = results[uri]
            assert (capture.status, capture.mime) == (page.status, page.mime.partition(";")[0])
            assert capture.datetime >= "2024"
            fetched = await repository.fetch(capture)
            assert fetched is not None
            with fetched.body as body:
                assert body.read() == (b"" if page.location else page.body), uri
            assert fetched.header("content-type") == page.mime
            assert fetched.capture == capture
            assert [each async for each in repository.captures(uri)] == [capture]
            assert await repository.last_capture_date(uri) == capture.datetime
        return results

    results = asyncio.run(compare())
    assert repository.problems.total == 0
    return results


def check_damage(make: Make, kind: ArchiveKind, folder: Path, work: Path, seed: int, *, has_checksums: bool) -> None:
    """Change real files at random positions; only archive errors are raised.

    has_checksums: whether the format has body checksums; then no changed page may be returned.
    """
    rng = random.Random(seed)  # noqa: S311  the same every time
    files = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size]

    async def query(repository: CachedResponseClient) -> None:
        try:
            captures = await list_prefixes(repository, *HOSTS)
        except ArchiveError:
            return
        for capture in captures:
            try:
                fetched = await repository.fetch(capture)
            except ArchiveError:
                continue
            if fetched is not None:
                with fetched.body as body:
                    page = PAGES.get(capture.uri)
                    if has_checksums and page is not None:
                        assert body.read() == (b"" if page.location else page.body)

    for number in range(30):
        fetched = work / str(number)
        shutil.copytree(folder, fetched)
        for path in rng.sample(files, min(6, len(files))):
            position = fetched / path.relative_to(folder)
            position.write_bytes(_changed(bytearray(position.read_bytes()), rng))
        asyncio.run(query(make(entry(kind, fetched))))
        shutil.rmtree(fetched)


def _changed(data: bytearray, chance: random.Random) -> bytes:
    """Return bytes with random changes, perhaps truncated."""
    for _ in range(chance.choice((1, 1, 20))):
        # The ends contain structures, the middle mostly bodies.
        at = chance.choice((chance.randrange(len(data)), chance.randrange(min(len(data), 700))))
        data[chance.choice((at, len(data) - 1 - at))] = chance.choice((0, 255, 128, chance.randrange(256)))
    return bytes(data[: chance.randrange(len(data))] if chance.random() < 0.2 else data)


def check_deletion_after_listing(repository: CachedResponseClient, folder: Path) -> None:
    """Delete everything after listing; captures are then missing, without an error."""

    async def query() -> None:
        capture = next(each for each in await list_prefixes(repository, *HOSTS) if each.uri == HOME)
        shutil.rmtree(folder)
        assert await repository.fetch(capture) is None
        assert await repository.get(HOME) is None

    asyncio.run(query())
