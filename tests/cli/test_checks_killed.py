"""`unlost check` and `unlost watch`, killed at any moment: nothing is lost, and next to nothing is asked twice."""

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
from tests.neighbours.listening import listening
from tests.neighbours.wayback_cdx import FakeWayback, Stored
from tests.process_killer import RequestKiller
from tests.recover.background_server import run_in_background
from tests.recover.registry import registry
from unlost.registry import Archive, ArchiveKind

ROUNDS, POINTS = 10, 5
"""Fifty points for each command."""

PAGES = 30  # so many that no kill comes too late
TEXT = "<p>" + "The harbour was opened again after long years of work. " * 10


@dataclass
class World:
    """A site, an archive that lists what it has, and one that has to be asked page by page.

    asked: everything that was asked of any of them, in order.
    """

    site: str = ""
    lister: FakeWayback = field(default_factory=lambda: FakeWayback([]))
    single: FakeWayback = field(default_factory=lambda: FakeWayback([]))
    asked: list[str] = field(default_factory=list)

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
async def world(killer: RequestKiller) -> AsyncIterator[World]:
    """Run it, and let every request be counted."""
    pages, found = _pages(), World()

    def page(path: str) -> Page | None:
        found.asked.append(f"site {path}")
        killer.count_request()
        return pages.get(path)

    def counted(name: str, server: FakeWayback) -> Any:  # noqa: ANN401  a handler
        async def handle(request: web.BaseRequest) -> web.Response:
            found.asked.append(f"{name} {request.raw_path}")
            killer.count_request()
            return await server.handle(request)

        return handle

    async with (
        serve_live_site(page) as site,
        listening(counted("lister", found.lister)) as found.lister.base,
        listening(counted("single", found.single)) as found.single.base,
    ):
        found.site = site.url
        body = TEXT.encode()
        found.lister.stored += [Stored(f"{site.url}/{number}", "20240101000000", body) for number in range(4)]
        found.lister.stored += [Stored(f"{site.url}/gone1", "20230101000000", body)]
        found.single.stored += [Stored(f"{site.url}/{number}", "20240201000000", body) for number in range(3, 8)]
        yield found


@pytest.fixture(scope="module")
def killer() -> RequestKiller:
    """Be ready to kill."""
    return RequestKiller()


@pytest.fixture(scope="module")
def running(killer: RequestKiller) -> Iterator[World]:
    """Run the world."""
    with run_in_background(world(killer)) as found:
        yield found


@pytest.fixture(scope="module")
def starting() -> Iterator[Commands]:
    """Be ready to start commands."""
    with commands("unlost.cli.check", "unlost.cli.watch", "unlost.archives.memento") as ready:
        yield ready


def prepared(folder: Path, running: World) -> Path:
    """Make somebody's folder; return the registry."""
    (folder / "home").mkdir(parents=True)
    running.asked.clear()
    return registry(folder / "archives.toml", *running.archives())


def check(running: World, folder: Path, *more: str) -> list[str]:
    """Return a check of the site, as words."""
    return [
        "check", f"{running.site}/", "--archives", str(folder / "archives.toml"), "--delay", "0", "--judge", "3", *more,
    ]  # fmt: skip


def watch(running: World, folder: Path, *more: str) -> list[str]:
    """Return a visit of the site, as words."""
    return [
        "watch", f"{running.site}/", "--once", "--archives", str(folder / "archives.toml"), "--delay", "0",
        "--history", str(folder / "h.sqlite"), *more,
    ]  # fmt: skip


def ended(folder: Path, words: list[str]) -> list[dict[str, Any]]:
    """Run a command to its end; return what it says, without when."""
    done = unlost(
        *words, "--json", env={"UNLOST_HOME": str(folder / "home"), "UNLOST_CONTACT": "me@example.org"}
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for each in found:
        each.pop("at", None)
    return found


def kill_often(
    round_: int,
    words: list[str],
    folder: Path,
    starting: Commands,
    killer: RequestKiller,
    running: World,
    first: int = 5,
) -> bool:
    """Start a command and kill it, some times; return whether there is anything left to do.

    first: by which request at the latest for the first time.
    """
    dice = random.Random(round_)  # noqa: S311  not for secrets
    for point in range(POINTS):
        after = dice.randint(1, 5 if point else first)
        delay = dice.choice([None, dice.uniform(0, 0.004), dice.uniform(0, 0.012)])
        print(f"round {round_}, point {point}: request {after}, {delay} s later, of {len(running.asked)}")
        killer.plan(after, delay)
        killer.set_process(starting.start(folder / "home", words))
        code = starting.ended()
        killer.finish()
        if code == 0 and point:
            return False  # on a busy machine a kill may come so late that all is done before it
        assert code == -signal.SIGKILL
    return True


def asked_twice(asked: list[str]) -> int:
    """Return how many requests were made for what had been asked for before."""
    return len(asked) - len(set(asked))


@pytest.fixture(scope="module")
def check_undisturbed(
    running: World, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[dict[str, Any]], list[str]]:
    """Check it without any harm: what is said, and what is asked."""
    folder = tmp_path_factory.mktemp("check")
    prepared(folder, running)
    found = ended(folder, check(running, folder))
    assert found[-1]["states"] == {
        "replicated": 8, "endangered": 1, "vulnerable": 23, "unrecoverable": 2, "unknown": 0,
    }  # fmt: skip
    assert found[-1]["judged"]["of"] == 3
    return found, list(running.asked)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_killed_check_goes_on(
    round_: int,
    running: World,
    starting: Commands,
    killer: RequestKiller,
    check_undisturbed: tuple[list[dict[str, Any]], list[str]],
    tmp_path: Path,
) -> None:
    """It says what it says without a kill; of what was asked, only what was on its way is asked again."""
    prepared(tmp_path, running)
    is_left = kill_often(round_, check(running, tmp_path), tmp_path, starting, killer, running)
    before = [] if is_left else list(running.asked)  # one that was done is forgotten, and the next begins anew
    running.asked[: len(before)] = []
    assert ended(tmp_path, check(running, tmp_path)) == check_undisturbed[0]
    # To the site, to both archives, and to one of them for copies, there is one request at a time, or a few.
    for asked in filter(None, (before, running.asked)):
        assert asked_twice(asked) <= asked_twice(check_undisturbed[1]) + 4 * POINTS
    assert set(running.asked) == set(check_undisturbed[1])
    assert not list((tmp_path / "home" / "state" / "checks").iterdir())


def kept(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return what visits are kept, without when they were."""
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
    running: World, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, list[tuple[object, ...]]], list[str]]:
    """Visit it twice without any harm: what is kept, and what is asked."""
    folder = tmp_path_factory.mktemp("watch")
    prepared(folder, running)
    for _ in range(2):
        ended(folder, watch(running, folder))
    found = kept(folder)
    assert [row[4:9] for row in found["visit"]] == [(8, 1, 23, 2, 0)] * 2
    return found, list(running.asked)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_killed_visit_goes_on(
    round_: int,
    running: World,
    starting: Commands,
    killer: RequestKiller,
    watch_undisturbed: tuple[dict[str, list[tuple[object, ...]]], list[str]],
    tmp_path: Path,
) -> None:
    """Two visits keep what they keep without a kill, whichever of them was killed; nothing is left behind."""
    prepared(tmp_path, running)
    if round_ % 2:  # the second one looks at known pages first
        ended(tmp_path, watch(running, tmp_path))
    if kill_often(round_, watch(running, tmp_path), tmp_path, starting, killer, running, first=25):
        ended(tmp_path, watch(running, tmp_path))
    if not round_ % 2:
        ended(tmp_path, watch(running, tmp_path))
    assert kept(tmp_path) == watch_undisturbed[0]
    # A look at the site, robots.txt and up to nine pages, is of one moment: it is made again if it was interrupted.
    assert len(running.asked) <= len(watch_undisturbed[1]) + (10 + 4) * POINTS
    is_looked_at = len(running.asked) <= len(watch_undisturbed[1]) + 4 * POINTS
    print("nothing but what was on its way was asked again" if is_looked_at else "a look was made again")
    assert set(running.asked) == set(watch_undisturbed[1])
    assert [each.name for each in tmp_path.glob("h.sqlite*")] == ["h.sqlite"]


@pytest.mark.parametrize("after", [5, 50])
def test_ctrl_c_ends_a_check_in_order(
    after: int,
    running: World,
    killer: RequestKiller,
    check_undisturbed: tuple[list[dict[str, Any]], list[str]],
    tmp_path: Path,
) -> None:
    """The exit code is 130, nothing is printed as if it were done, and the same command goes on."""
    prepared(tmp_path, running)
    environment = {
        "PATH": os.environ["PATH"], "UNLOST_HOME": str(tmp_path / "home"), "UNLOST_CONTACT": "me@example.org",
    }  # fmt: skip
    killer.plan(after, None, signal.SIGINT)
    command = [str(UNLOST), *check(running, tmp_path, "--save", str(tmp_path / "list.txt"))]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        killer.set_process(process.pid)
        output, errors = process.communicate(timeout=60)
    killer.finish()
    assert (process.returncode, output) == (130, b"")
    assert errors.strip().endswith(b"unlost: interrupted")
    assert not (tmp_path / "list.txt").exists()
    assert ended(tmp_path, check(running, tmp_path)) == check_undisturbed[0]
    assert asked_twice(running.asked) <= asked_twice(check_undisturbed[1]) + 4
