"""`unlost check` and `unlost watch`, killed at any point: they resume and repeat only requests in flight."""

import json
import os
import random
import signal
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.archives.sampling.killable import Commands, commands
from tests.cli.run import UNLOST, unlost
from tests.crawl.live_site import Page, html, serve_live_site
from tests.external.local_server import serve_handler
from tests.external.wayback_cdx import FakeWayback, StoredCapture
from tests.process_killer import RequestKiller
from tests.recovery.background_server import run_in_background
from tests.recovery.registry import registry
from unlost.registry import Archive, ArchiveKind

ROUNDS, POINTS = 10, 5
"""Fifty points for each command."""

PAGES = 30  # so many that no kill comes too late
TEXT = "<p>" + "The harbour was opened again after long years of work. " * 10


@dataclass
class Servers:
    """A site, an archive that lists its captures, and an archive that is queried for each page.

    Attributes:
        requests: All requests to any of them, in order.
    """

    site: str = ""
    lister: FakeWayback = field(default_factory=lambda: FakeWayback([]))
    single: FakeWayback = field(default_factory=lambda: FakeWayback([]))
    requests: list[str] = field(default_factory=list)

    def archives(self) -> tuple[Archive, ...]:
        """Return the entries of a registry."""
        single = Archive("single", "Single", ArchiveKind.MEMENTO, timemap=f"{self.single.base}/web/timemap/link/")
        return self.lister.archive(), single


def _pages() -> dict[str, Page]:
    pages = {"/": html(*(f"/{number}" for number in range(PAGES)), more=TEXT)}
    for number in range(PAGES):
        pages[f"/{number}"] = html(f"/{(number + 5) % PAGES}", f"/gone{number % 3}", more=f"{TEXT} page {number}")
    pages["/robots.txt"] = Page(b"User-agent: *\nDisallow: /7", 200, {"content-type": "text/plain"})
    return pages


@asynccontextmanager
async def run_servers(killer: RequestKiller) -> AsyncIterator[Servers]:
    """Run the servers and record every request."""
    pages, found = _pages(), Servers()

    def page(path: str) -> Page | None:
        found.requests.append(f"site {path}")
        killer.count_request()
        return pages.get(path)

    def counted(name: str, server: FakeWayback) -> Any:  # noqa: ANN401  a handler
        async def handle(request: web.BaseRequest) -> web.Response:
            found.requests.append(f"{name} {request.raw_path}")
            killer.count_request()
            return await server.handle(request)

        return handle

    async with (
        serve_live_site(page) as site,
        serve_handler(counted("lister", found.lister)) as found.lister.base,
        serve_handler(counted("single", found.single)) as found.single.base,
    ):
        found.site = site.url
        body = TEXT.encode()
        found.lister.captures += [StoredCapture(f"{site.url}/{number}", "20240101000000", body) for number in range(4)]
        found.lister.captures += [StoredCapture(f"{site.url}/gone1", "20230101000000", body)]
        found.single.captures += [
            StoredCapture(f"{site.url}/{number}", "20240201000000", body) for number in range(3, 8)
        ]
        yield found


@pytest.fixture(scope="module")
def killer() -> RequestKiller:
    """Prepare to kill processes."""
    return RequestKiller()


@pytest.fixture(scope="module")
def servers(killer: RequestKiller) -> Iterator[Servers]:
    """Run the servers."""
    with run_in_background(run_servers(killer)) as found:
        yield found


@pytest.fixture(scope="module")
def command_starter() -> Iterator[Commands]:
    """Prepare to start commands."""
    with commands("unlost.cli.check", "unlost.cli.watch", "unlost.archives.memento") as ready:
        yield ready


def prepare(folder: Path, servers: Servers) -> Path:
    """Make a home and a registry; return the registry."""
    (folder / "home").mkdir(parents=True)
    servers.requests.clear()
    return registry(folder / "archives.toml", *servers.archives())


def check(servers: Servers, folder: Path, *more: str) -> list[str]:
    """Return the arguments of a check of the site."""
    return [
        "check", f"{servers.site}/", "--archives", str(folder / "archives.toml"), "--delay", "0", "--judge", "3", *more,
    ]  # fmt: skip


def watch(servers: Servers, folder: Path, *more: str) -> list[str]:
    """Return the arguments of a visit of the site."""
    return [
        "watch", f"{servers.site}/", "--once", "--archives", str(folder / "archives.toml"), "--delay", "0",
        "--history", str(folder / "h.sqlite"), *more,
    ]  # fmt: skip


def run_to_end(folder: Path, words: list[str]) -> list[dict[str, Any]]:
    """Run a command to its end; return its JSON output without times."""
    done = unlost(
        *words, "--json", env={"UNLOST_HOME": str(folder / "home"), "UNLOST_CONTACT": "me@example.org"}
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for each in found:
        each.pop("at", None)
    return found


def kill_repeatedly(
    round_: int,
    words: list[str],
    folder: Path,
    command_starter: Commands,
    killer: RequestKiller,
    servers: Servers,
    first: int = 5,
) -> bool:
    """Start a command and kill it, `POINTS` times; return whether it has unfinished work.

    Args:
        first: Latest request at which the first process is killed.
    """
    random_ = random.Random(round_)  # noqa: S311  not for secrets
    for point in range(POINTS):
        after = random_.randint(1, 5 if point else first)
        delay = random_.choice([None, random_.uniform(0, 0.004), random_.uniform(0, 0.012)])
        print(f"round {round_}, point {point}: request {after}, {delay} s later, of {len(servers.requests)}")
        killer.plan(after, delay)
        killer.set_process(command_starter.start(folder / "home", words))
        code = command_starter.ended()
        killer.finish()
        if code == 0 and point:
            return False  # on a busy machine a kill may come so late that all is done before it
        assert code == -signal.SIGKILL
    return True


def repeated_requests(requests: list[str]) -> int:
    """Return the number of requests that were sent before."""
    return len(requests) - len(set(requests))


@pytest.fixture(scope="module")
def check_undisturbed(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[dict[str, Any]], list[str]]:
    """Run a check without a kill; return its output and its requests."""
    folder = tmp_path_factory.mktemp("check")
    prepare(folder, servers)
    found = run_to_end(folder, check(servers, folder))
    assert found[-1]["states"] == {
        "replicated": 8, "endangered": 1, "vulnerable": 23, "unrecoverable": 2, "unknown": 0,
    }  # fmt: skip
    assert found[-1]["judged"]["of"] == 3
    return found, list(servers.requests)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_killed_check_resumes(
    round_: int,
    servers: Servers,
    command_starter: Commands,
    killer: RequestKiller,
    check_undisturbed: tuple[list[dict[str, Any]], list[str]],
    tmp_path: Path,
) -> None:
    """The result is that of an undisturbed check; only requests in flight are repeated."""
    prepare(tmp_path, servers)
    is_left = kill_repeatedly(round_, check(servers, tmp_path), tmp_path, command_starter, killer, servers)
    before = [] if is_left else list(servers.requests)  # a finished check is removed, and the next starts from scratch
    servers.requests[: len(before)] = []
    assert run_to_end(tmp_path, check(servers, tmp_path)) == check_undisturbed[0]
    # Requests to the site, to both archives and for captures from one of them are sent one at a time, or a few.
    for requests in filter(None, (before, servers.requests)):
        assert repeated_requests(requests) <= repeated_requests(check_undisturbed[1]) + 4 * POINTS
    assert set(servers.requests) == set(check_undisturbed[1])
    assert not list((tmp_path / "home" / "state" / "checks").iterdir())


def stored_visits(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return the stored visits without their times."""
    columns = {
        "visit": "stage, look, before, fresh, replicated, endangered, vulnerable, unrecoverable, unknown",
        "resource": "key, uri, mime, first_live, downloads, changes, digest",
        "live": "uri, outcome, status, mime, length, digest, hops, linked_from, is_in_sitemap, is_drawn",
        "held": "archive, copies, first, last, digest, migrated",
        "asked": "archive, has_answered",
        "listed": "archive, prefix, is_whole, rows, beside",
        "live_span": "first, last, is_live",
        "held_span": "archive, first, last, is_held",
        "page": "uri, digest, text",
        "loss": "kind, reason",
    }
    with closing(sqlite3.connect(folder / "h.sqlite")) as data:
        return {
            table: sorted(data.execute(f"SELECT {names} FROM {table}").fetchall(), key=repr)  # noqa: S608
            for table, names in columns.items()
        }


@pytest.fixture(scope="module")
def watch_undisturbed(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, list[tuple[object, ...]]], list[str]]:
    """Visit the site twice without a kill; return the stored visits and the requests."""
    folder = tmp_path_factory.mktemp("watch")
    prepare(folder, servers)
    for _ in range(2):
        run_to_end(folder, watch(servers, folder))
    found = stored_visits(folder)
    assert [row[4:9] for row in found["visit"]] == [(8, 1, 23, 2, 0)] * 2
    return found, list(servers.requests)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_killed_visit_resumes(
    round_: int,
    servers: Servers,
    command_starter: Commands,
    killer: RequestKiller,
    watch_undisturbed: tuple[dict[str, list[tuple[object, ...]]], list[str]],
    tmp_path: Path,
) -> None:
    """The history is that of two undisturbed visits, whichever was killed; no files are left over."""
    prepare(tmp_path, servers)
    if round_ % 2:  # the second one visits known pages first
        run_to_end(tmp_path, watch(servers, tmp_path))
    if kill_repeatedly(round_, watch(servers, tmp_path), tmp_path, command_starter, killer, servers, first=25):
        run_to_end(tmp_path, watch(servers, tmp_path))
    if not round_ % 2:
        run_to_end(tmp_path, watch(servers, tmp_path))
    assert stored_visits(tmp_path) == watch_undisturbed[0]
    # An interrupted visit of the site (robots.txt and up to nine pages) is repeated from the start.
    assert len(servers.requests) <= len(watch_undisturbed[1]) + (10 + 4) * POINTS
    is_looked_at = len(servers.requests) <= len(watch_undisturbed[1]) + 4 * POINTS
    print("nothing but what was on its way was asked again" if is_looked_at else "a look was made again")
    assert set(servers.requests) == set(watch_undisturbed[1])
    assert [each.name for each in tmp_path.glob("h.sqlite*")] == ["h.sqlite"]


@pytest.mark.parametrize("after", [5, 50])
def test_interrupted_check_resumes(
    after: int,
    servers: Servers,
    killer: RequestKiller,
    check_undisturbed: tuple[list[dict[str, Any]], list[str]],
    tmp_path: Path,
) -> None:
    """The exit code is 130, no result is printed, and the same command resumes."""
    prepare(tmp_path, servers)
    environment = {
        "PATH": os.environ["PATH"], "UNLOST_HOME": str(tmp_path / "home"), "UNLOST_CONTACT": "me@example.org",
    }  # fmt: skip
    killer.plan(after, None, signal.SIGINT)
    command = [str(UNLOST), *check(servers, tmp_path, "--save", str(tmp_path / "list.txt"))]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        killer.set_process(process.pid)
        output, errors = process.communicate(timeout=60)
    killer.finish()
    assert (process.returncode, output) == (130, b"")
    assert errors.strip().endswith(b"unlost: interrupted")
    assert not (tmp_path / "list.txt").exists()
    assert run_to_end(tmp_path, check(servers, tmp_path)) == check_undisturbed[0]
    assert repeated_requests(servers.requests) <= repeated_requests(check_undisturbed[1]) + 4
