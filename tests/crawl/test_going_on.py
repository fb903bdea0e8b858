"""Crawls that were stopped, are done, or are others: what the same call does."""

import asyncio
from pathlib import Path

import pytest

from tests.crawl.site import SMALL, living, visited
from unlost.crawl.state import read_resources
from unlost.errors import InputError, UriError, UsageError


def test_somebody_may_stop_it_and_the_same_call_goes_on(tmp_path: Path) -> None:
    """In order between two visits, or by cancelling: at most what was on its way is asked for again."""

    async def run() -> None:
        async with living(SMALL) as site:
            result = await site.crawl(tmp_path / "crawl", should_stop=lambda: len(site.paths) >= 2)
            assert (result.is_stopped, result.is_done) == (True, False)
            task: asyncio.Task[object] = asyncio.create_task(
                site.crawl(tmp_path / "crawl", on_event=lambda *_: bool(task.cancel()))
            )
            with pytest.raises(asyncio.CancelledError):
                await task
            await site.crawl(tmp_path / "crawl")
            assert set(site.paths) == {"/", "/a", "/b.html?x=1", "/deep/er/", "/deep/est", "/i.png"}
            assert len(site.paths) <= 7
            assert site.server.paths.count("/robots.txt") == site.server.paths.count("/sitemap.xml") == 1

    asyncio.run(run())


def test_a_finished_crawl_is_not_begun_again(tmp_path: Path) -> None:
    """The same call asks for nothing, and says the same."""

    async def run() -> None:
        async with living(SMALL) as site:
            first = await site.crawl(tmp_path / "crawl")
            count = len(site.server.paths)
            assert await site.crawl(tmp_path / "crawl") == first
            assert site.server.paths[count:] == []

    asyncio.run(run())


def test_another_plan_is_refused(tmp_path: Path) -> None:
    """A folder has one crawl; a plan or an address that is none is refused before anything is asked for."""

    async def run() -> None:
        async with living(SMALL) as site:
            await site.crawl(tmp_path / "crawl")
            with pytest.raises(UsageError, match="another plan"):
                await site.crawl(tmp_path / "crawl", links=False)
            with pytest.raises(UsageError, match="no regular expression"):
                await site.crawl(tmp_path / "other", include=("(",))
            with pytest.raises(UriError):
                await site.crawl(tmp_path / "other", extra=("mailto:me@example.org",))
            assert not (tmp_path / "other").exists()

    asyncio.run(run())


def test_the_state_of_something_else_is_refused(tmp_path: Path) -> None:
    """A recovery's file of the same name, or a folder without any, is no crawl."""
    from unlost.recover.state.store import RecoveryState

    with RecoveryState(tmp_path) as state:
        state.set_fact("a", "b")
    with pytest.raises(InputError, match="crawl"):
        next(read_resources(tmp_path))
    with pytest.raises(InputError, match="crawl"):
        visited(SMALL, tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="expected the folder of a crawl"):
        next(read_resources(tmp_path / "empty"))
