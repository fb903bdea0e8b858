"""`unlost watch`: visits, losses, reports and interruptions."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.check_environment import WEB, Completed, Home, archives, base, captures, home
from tests.cli.run import UNLOST
from tests.external.nginx import serve_site as served
from tests.external.wayback_cdx import FakeWayback
from tests.recovery.registry import registry
from tests.virtual_clock import VirtualClock
from tests.waiting import wait_until
from unlost.cli import WatchRun
from unlost.cli.watch import command
from unlost.registry import Archive, ArchiveKind, RateLimit, RequestKind

__all__ = ["base", "home"]
DAY = 86_400


def test_visits_are_stored_and_reported(home: Home, base: str, tmp_path: Path) -> None:
    """Two visits by `--once`, and the report as text, JSON and page."""
    file, page = tmp_path / "history.sqlite", tmp_path / "page.html"

    async def run() -> list[Completed]:
        async with archives(home, captures(base)):
            history = ["--history", str(file)]
            first = await home.run("watch", base, "--once", *history)
            second = await home.run("watch", base, "--once", "--json", *history)
            report = await home.run("watch", base, "--report", "--html", str(page), *history)
            return [first, second, report, await home.run("watch", base, "--report", "--json", *history)]

    first, second, report, objects = asyncio.run(run())
    html = sum(path.endswith(".html") for path in WEB.files(0))
    assert first.returncode == 0, first.stderr
    assert f"online. If the site were lost now, {html} of {WEB.total(0)} resources" in first.stdout.decode()
    visit = json.loads(second.stdout)
    assert (visit["look"], visit["states"]["replicated"], visit["lost"]) == ("fine", html, None)
    assert "2 visits." in report.stdout.decode()
    assert "all archives, HTML" in report.stdout.decode()
    assert "Watch report" in page.read_text()
    found = json.loads(objects.stdout)
    assert [each["look"] for each in found["visits"]] == ["fine", "fine"]
    assert found["lives"][0]["resources"] == WEB.total(0)
    assert found["lives"][0]["held"] == html
    assert sorted(each.name for each in tmp_path.iterdir()) == ["history.sqlite", "home", "page.html", "web", "work"]


def test_loss_is_reported_and_runs_the_hook(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unresponsive site is lost at the second visit."""
    monkeypatch.setenv("UNLOST_HOME", str(home.folder))
    registry(home.registry, Archive("files", "Files", ArchiveKind.FILES, folder=str(tmp_path / "none")))
    for name in ("web", "work", "none"):
        (tmp_path / name).mkdir()
    WEB.write(tmp_path / "web", 0)
    out = tmp_path / "out"
    clock = VirtualClock()
    lost = []

    def visit(serve_site: str) -> None:
        arguments = [serve_site, "--history", str(tmp_path / "history.sqlite"), "--archives", str(home.registry)]
        arguments += ["--delay", "0", "--on-loss", f'sh -c \'printf "%s %s" "$1" "$2" >> {out}\' name']
        with command.make_context("watch", arguments, help_option_names=["-h", "--help"]) as context:
            lost.append(WatchRun(context.params, clock).once()[0])
        clock.advance(DAY)

    with served(tmp_path / "web", tmp_path / "work") as serve_site:
        visit(serve_site)
        visit(serve_site)
    for _ in range(3):
        visit(serve_site)
    assert lost == [False, False, False, True, True]
    assert out.read_text() == f"{serve_site} unresponsive"
    assert "lost since" in capsys.readouterr().err


def test_dry_run_estimates_requests(home: Home, tmp_path: Path) -> None:
    """No request is sent; an archive whose quota is exceeded is reported."""
    sites = tmp_path / "sites.txt"
    sites.write_text("http://a.example/\nhttp://b.example/\n")
    lister = FakeWayback([], base="http://127.0.0.1:9").archive(rows_per_page=1_000)
    quota = (RateLimit(100, DAY, (RequestKind.INDEX,), "a test"),)
    single = Archive("single", "Single", ArchiveKind.MEMENTO, timemap="http://127.0.0.1:9/", quotas=quota)
    registry(home.registry, lister, single)

    async def run(*more: str) -> Completed:
        return await home.run("watch", str(sites), "--dry-run", "--limit", "500", "--every", "12h", *more)

    done = asyncio.run(run("--json"))
    rows = {each["archive"]: each for each in map(json.loads, done.stdout.splitlines())}
    assert rows["fake.wayback"]["questions_per_day"] == 2 * 2 * 2, "two sites, two pages of a list, two visits"
    assert rows["single"]["questions_per_day"] == 2 * 200 * 2
    assert b"single: 800 questions a day are more than the" in done.stderr
    assert b"about 808 questions a day to archives, and 2,000 requests a day to the sites" in done.stderr
    assert not list(tmp_path.glob("*.sqlite"))


@pytest.fixture
def watch_process(home: Home, base: str, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Start a continuous watch."""
    (tmp_path / "none").mkdir()
    registry(home.registry, Archive("files", "Files", ArchiveKind.FILES, folder=str(tmp_path / "none")))
    arguments = ["watch", base, "--archives", str(home.registry), "--delay", "0", "--history", "history.sqlite"]
    process = subprocess.Popen(
        [UNLOST, *arguments], cwd=tmp_path, env=home.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield process, tmp_path / "history.sqlite"
    finally:
        process.kill()
        process.wait()


def test_interrupted_watch_exits_with_130(watch_process: tuple[subprocess.Popen[bytes], Path], home: Home) -> None:
    """While it waits, other processes can read the history."""
    process, file = watch_process
    assert process.stdout is not None
    assert b": online. " in process.stdout.readline()
    report = ["watch", "http://127.0.0.1:1/", "--report", "--history", str(file), "--archives", str(home.registry)]

    def is_free() -> bool:
        done = subprocess.run([UNLOST, *report], env=home.environment, capture_output=True, check=False)
        return b"was not visited yet" in done.stderr

    wait_until(is_free)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert stderr.decode().strip().endswith("unlost: interrupted")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("http://a.example/", "--once", "--report"), 2, "three different things"),
        (("http://a.example/", "--every", "1"), 0, ""),
        (("http://a.example/", "--every", "5s"), 2, "expected 10m to 366d"),
        (("http://a.example/", "--every", "soon"), 2, "such as 12h"),
        (("http://a.example/", "--on-loss", "'"), 2, "not a command"),
        (("http://a.example/", "--report", "--history", "/no/such"), 3, "nothing was watched into it yet"),
        (("no address at all:",), 2, "unlost: "),
    ],
)
def test_invalid_arguments_are_rejected(
    home: Home, tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    """Before any request."""
    (tmp_path / "none").mkdir()
    registry(home.registry, Archive("files", "Files", ArchiveKind.FILES, folder=str(tmp_path / "none")))
    more = () if {"--once", "--report"} & set(arguments) else ("--dry-run",)
    done = asyncio.run(home.run("watch", *arguments, *more))
    assert done.returncode == code, done.stderr
    assert message in done.stderr.decode()
