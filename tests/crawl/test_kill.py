"""A crawl killed at any moment loses nothing and can be resumed."""

import random
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.crawl.crawl_process import CrawlProcesses, crawl_processes
from tests.crawl.links import read_links
from tests.crawl.live_site import LiveSite, Page, html, redirect_to, serve_live_site, sitemap
from tests.crawl.test_warc_store import records
from tests.process_killer import RequestKiller
from tests.recovery.background_server import run_in_background
from tests.recovery.recovery_output import _members
from unlost.crawl import CrawlOutcome, read_resources

POINTS = 60
ROUNDS = 12

Known = dict[str, tuple[object, ...]]


def _site() -> dict[str, Page]:
    """Return pages with images, small and large, redirects, a sitemap, and a disallowed page."""
    noise = random.Random(7)  # noqa: S311
    pages = {"/": html(*(f"/{number}" for number in range(12)), "/moved"), "/moved": redirect_to("/3")}
    for number in range(12):
        size = 200_000 if number % 4 == 0 else 20_000
        pages[f"/{number}"] = html(f"/{(number + 5) % 12}", f"/missing{number % 3}", more=f'<img src="/{number}.png">')
        pages[f"/{number}.png"] = Page(noise.randbytes(size), 200, {"content-type": "image/png"})
    pages["/robots.txt"] = Page(b"User-agent: *\nDisallow: /7", 200, {"content-type": "text/plain"})
    pages["/sitemap.xml"] = sitemap("{base}/listed", "{base}/3")
    pages["/listed"] = html("/0")
    return pages


@contextmanager
def serve_counted(pages: Mapping[str, Page], killer: RequestKiller) -> Iterator[LiveSite]:
    """Run a site whose requests are counted."""

    def page(path: str) -> Page | None:
        killer.count_request()
        return pages.get(path)

    with run_in_background(serve_live_site(page)) as found:
        yield found


@pytest.fixture(scope="module")
def killer() -> RequestKiller:
    """Return a process killer."""
    return RequestKiller()


@pytest.fixture(scope="module")
def site(killer: RequestKiller) -> Iterator[LiveSite]:
    """Run the site with counted requests."""
    with serve_counted(_site(), killer) as found:
        yield found


@pytest.fixture(scope="module")
def crawl_starter() -> Iterator[CrawlProcesses]:
    """Run the process that forks crawls."""
    with crawl_processes() as ready:
        yield ready


def crawl_state(folder: Path) -> Known:
    """Return what a crawl knows, without dates and WARC locations."""
    return {
        each.uri: (each.outcome, each.status, each.digest, each.length, each.hops, each.linked_from, each.is_in_sitemap,
                   each.redirect, each.reason)
        for each in read_resources(folder)
    }  # fmt: skip


@pytest.fixture(scope="module")
def uninterrupted_crawl(
    site: LiveSite, crawl_starter: CrawlProcesses, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Known, int]:
    """Return the state after an undisturbed crawl, and its number of requests."""
    folder = tmp_path_factory.mktemp("undisturbed") / "crawl"
    site.server.requests.clear()
    crawl_starter.begin(folder, f"{site.url}/")
    assert crawl_starter.ended() == 0
    assert len(crawl_state(folder)) == 30
    return crawl_state(folder), len(site.server.requests)


def fetched_digests(folder: Path) -> dict[str, str | None]:
    """Return the fetched URLs with digests; empty if the crawl was killed before its first commit."""
    if not (folder / "state.sqlite").exists() or (folder / "state.sqlite").stat().st_size == 0:
        return {}
    return {each.uri: each.digest for each in read_resources(folder) if each.outcome is CrawlOutcome.FETCHED}


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_run_resumes_after_a_kill_at_any_point(
    round_: int,
    site: LiveSite,
    crawl_starter: CrawlProcesses,
    killer: RequestKiller,
    uninterrupted_crawl: tuple[Known, int],
    tmp_path: Path,
) -> None:
    """The result equals that of an undisturbed crawl, at most requests in flight are repeated, no WARC is damaged."""
    random_ = random.Random(round_)  # noqa: S311
    folder = tmp_path / "crawl"
    site.server.requests.clear()
    fetched_before: dict[str, str | None] = {}
    for point in range(POINTS // ROUNDS):
        after = random_.randint(1, 5)
        delay = random_.choice([None, random_.uniform(0, 0.004), random_.uniform(0, 0.012)])
        print(f"round {round_}, point {point}: request {after}, {delay} s later")
        killer.plan(after, delay)
        killer.set_process(crawl_starter.begin(folder, f"{site.url}/"))
        code = crawl_starter.ended()
        killer.finish()
        if code == 0 and point:
            break  # on a busy machine a kill may come so late that all is done before it, or before the next
        assert code == -signal.SIGKILL
        now = fetched_digests(folder)
        assert fetched_before.items() <= now.items(), "a fetched resource is lost"
        fetched_before = now
        for path in sorted((folder / "warc").glob("*.gz")):  # closed files are complete
            assert all(text is not None for _, text in _members(path.read_bytes()))
    crawl_starter.begin(folder, f"{site.url}/")
    assert crawl_starter.ended() == 0
    assert crawl_state(folder) == uninterrupted_crawl[0]
    stored = records(folder)
    responses = [uri for kind, uri, _ in stored if kind == "response"]
    assert sorted(responses) == sorted(fetched_digests(folder)), "each response is stored once"
    assert [kind for kind, _, _ in stored].count("request") == len(responses)
    assert not list((folder / "warc").glob("*.open"))
    # One request is in flight at a time; robots.txt is stored with the first page.
    assert len(site.server.requests) <= uninterrupted_crawl[1] + 2 * (POINTS // ROUNDS)
    assert len(list(read_links(folder))) > 30
