"""Resuming stopped, finished and foreign crawls."""

import asyncio
from pathlib import Path

import pytest

from tests.crawl.live_site import SMALL, crawl_pages, serve_live_site
from unlost.crawl import read_resources
from unlost.errors import InputError, UriError, UsageError


def test_stopped_crawl_is_resumed_by_the_same_call(tmp_path: Path) -> None:
    """After `should_stop` or cancellation, at most the request in flight is repeated."""

    async def run() -> None:
        async with serve_live_site(SMALL) as site:
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


def test_finished_crawl_fetches_nothing_again(tmp_path: Path) -> None:
    """The same call sends no request and returns the same result."""

    async def run() -> None:
        async with serve_live_site(SMALL) as site:
            first = await site.crawl(tmp_path / "crawl")
            count = len(site.server.paths)
            assert await site.crawl(tmp_path / "crawl") == first
            assert site.server.paths[count:] == []

    asyncio.run(run())


def test_changed_configuration_is_rejected(tmp_path: Path) -> None:
    """Another configuration or an invalid URL is rejected before the first request."""

    async def run() -> None:
        async with serve_live_site(SMALL) as site:
            await site.crawl(tmp_path / "crawl")
            with pytest.raises(UsageError, match="another plan"):
                await site.crawl(tmp_path / "crawl", links=False)
            with pytest.raises(UsageError, match="no regular expression"):
                await site.crawl(tmp_path / "other", include=("(",))
            with pytest.raises(UriError):
                await site.crawl(tmp_path / "other", extra=("mailto:me@example.org",))
            assert not (tmp_path / "other").exists()

    asyncio.run(run())


def test_foreign_state_is_rejected(tmp_path: Path) -> None:
    """A recovery's state and a folder without state are not crawls."""
    from unlost.recovery.state import RecoveryState

    with RecoveryState(tmp_path) as state:
        state.set_fact("a", "b")
    with pytest.raises(InputError, match="crawl"):
        next(read_resources(tmp_path))
    with pytest.raises(InputError, match="crawl"):
        crawl_pages(SMALL, tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="expected the folder of a crawl"):
        next(read_resources(tmp_path / "empty"))
