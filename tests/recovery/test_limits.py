"""What interrupts a recovery: rate limits, failing archives, a stop file, Ctrl-C and a full disk."""

import re
import shutil
import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.recovery.assertions import assert_recovered, format_expected, format_line, lines_by_name
from tests.recovery.command import Command, parse_result
from tests.recovery.expected import Run, outcome
from tests.recovery.recovery_output import read_warcs
from tests.recovery.sample_site import PAGES, SiteArchives, sample_site, serve_site
from tests.recovery.site import ROOT

SITE = sample_site()
OF_A = sum(held.archive == "a" for _, held in SITE.captures())
OF_B = sum(held.archive == "b" for _, held in SITE.captures())
# The rest is linked from pages of the other archive only.
REACHED_IN_A = 1 + sum(1 + (number // 2 % 2 == 0) for number in range(0, PAGES, 2))
REACHED_IN_B = sum(1 + (number // 2 % 2 == 1) for number in range(1, PAGES, 2))
QUOTA = 10
SENT = 8  # four fifths of the quota


@pytest.fixture
def site_archives() -> Iterator[SiteArchives]:
    """Run the archives of the sample site."""
    with serve_site(SITE) as found:
        yield found


@pytest.fixture
def command(site_archives: SiteArchives, tmp_path: Path) -> Command:
    """Return a new recovery of it."""
    return Command(site_archives.registry(tmp_path), tmp_path / "sample.recovery", tmp_path / "home")


def assert_partly_recovered(command: Command) -> int:
    """Assert that everything recovered so far is as expected; return how many resources."""
    expected, found = outcome(SITE, Run()), lines_by_name(SITE, Run(), command.summary)
    recovered = {name: line for name, line in found.items() if not line.is_missing}
    assert {name: format_line(line) for name, line in recovered.items()} == {
        name: format_expected(expected[name]) for name in recovered
    }
    read_warcs(command.folder)
    return len(recovered)


def midnight() -> datetime:
    """Return the start of the next day in UTC."""
    now = datetime.now(UTC)
    return (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)


def parse_until(value: object) -> datetime:
    """Return the time in an event: ISO, 14 digits or seconds."""
    if isinstance(value, int):
        return datetime.fromtimestamp(value, UTC).replace(second=0)
    text = str(value)
    if re.fullmatch(r"\d{14}", text):
        return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return datetime.fromisoformat(text)


@pytest.mark.usefixtures("far_from_midnight")
def test_daily_limit_suspends_only_its_archive(site_archives: SiteArchives, tmp_path: Path) -> None:
    """Other archives are unaffected; exit code 4, an event and a message say when to continue."""
    command = Command(site_archives.registry(tmp_path, quota=QUOTA), tmp_path / "sample.recovery", tmp_path / "home")
    last = midnight()
    done = command.run(ROOT)
    assert done.code == 4, done.stderr
    requested = [name for name, _ in site_archives.replays()]
    assert (requested.count("a"), requested.count("b")) == (SENT, OF_B)
    assert assert_partly_recovered(command) == SENT + OF_B
    (event,) = done.events_of("waiting")
    assert event["archive"] == "a"
    assert "quota" in event["reason"]
    assert parse_until(event["until"]) in (last, midnight())  # the day may end in the middle of the test
    assert "a" in done.stderr
    assert any(f"{each.astimezone():%Y-%m-%d}" in done.stderr for each in (last, midnight()))
    assert done.events[-1]["queued"] == OF_A - SENT

    site_archives.requests.clear()
    assert command.run(ROOT).code == 4
    assert site_archives.replays() == []

    # The next day: nothing was counted on it yet.
    shutil.rmtree(command.home)
    done = command.run(ROOT)
    assert done.code == 0, done.stderr
    assert len(site_archives.replays()) == OF_A - SENT
    assert_recovered(SITE, Run(), command.folder, command.summary)


@pytest.mark.usefixtures("far_from_midnight")
def test_pages_precede_images_under_a_limit(site_archives: SiteArchives, tmp_path: Path) -> None:
    """Under a limit, the home page and its links are recovered before images."""
    command = Command(site_archives.registry(tmp_path, quota=QUOTA), tmp_path / "sample.recovery", tmp_path / "home")
    assert command.run(ROOT, "--only", "a", "--connections", "1").code == 4
    paths = [path for _, path in site_archives.replays()]
    assert paths[0].endswith(ROOT)
    # Requisites may come with their page, but not before other pages.
    assert sum(path.endswith(".html") for path in paths) >= (SENT - 1) // 2


def test_failing_archive_does_not_affect_others(site_archives: SiteArchives, command: Command) -> None:
    """The rest is recovered once the archive is back, and nothing is requested twice."""

    def die() -> None:
        site_archives.archives["a"].is_dead = True

    # The lists, the front page and some more.
    site_archives.call_after(6, die)
    done = command.run(ROOT, "--connections", "2")
    assert done.code == 4, done.stderr
    part = assert_partly_recovered(command)
    assert REACHED_IN_B <= part < OF_A + OF_B
    stored = {(each.uri, each.date) for each in read_warcs(command.folder).values()}

    site_archives.archives["a"].is_dead = False
    site_archives.run_task(site_archives.archives["a"].open())
    site_archives.watch = None
    site_archives.requests.clear()
    done = command.run(ROOT)
    assert done.code == 0, done.stderr
    assert not [
        path for _, path in site_archives.replays() if any(path.endswith(f"/{date}id_/{uri}") for uri, date in stored)
    ]
    assert_recovered(SITE, Run(), command.folder, command.summary)


def test_unreachable_archive_is_not_waited_for(site_archives: SiteArchives, command: Command) -> None:
    """The captures of the other archive are recovered, and nothing is reported as missing."""
    site_archives.run_task(site_archives.archives["b"].stop_listening())
    done = command.run(ROOT)
    assert done.code == 4, done.stderr
    assert {event["archive"]: event["outcome"] for event in done.events_of("listed")} == {"a": "done", "b": "failed"}
    assert assert_partly_recovered(command) == REACHED_IN_A
    found = lines_by_name(SITE, Run(), command.summary)
    assert [name for name, line in found.items() if line.is_missing] == []
    site_archives.run_task(site_archives.archives["b"].open())
    done = command.run(ROOT)
    assert done.code == 0, done.stderr
    assert_recovered(SITE, Run(), command.folder, command.summary)


@pytest.mark.long
def test_hanging_archive_is_abandoned(site_archives: SiteArchives, command: Command) -> None:
    """The run ends within minutes, and other archives are unaffected."""

    def hang() -> None:
        site_archives.archives["a"].hangs = True

    site_archives.call_after(6, hang)
    done = command.run(ROOT, "--connections", "2", timeout=600)
    assert done.code == 4, done.stderr
    assert assert_partly_recovered(command) >= REACHED_IN_B
    site_archives.archives["a"].hangs = False
    site_archives.watch = None
    assert command.run(ROOT).code == 0
    assert_recovered(SITE, Run(), command.folder, command.summary)


def test_stop_file_ends_the_run_gracefully(site_archives: SiteArchives, command: Command) -> None:
    """Responses in flight are stored, no more requests are sent, and the exit code is 4."""
    stop = command.folder.parent / "stop"
    site_archives.call_after(7, stop.touch)
    done = command.run(ROOT, "--connections", "2", "--stop-file", str(stop))
    assert done.code == 4, done.stderr
    assert len(site_archives.requests) <= 7 + 2 * 2
    assert assert_partly_recovered(command) == len(site_archives.replays())
    assert done.events[-1]["event"] == "done"

    stop.unlink()
    site_archives.watch = None
    done = command.run(ROOT, "--stop-file", str(stop))
    assert done.code == 0, done.stderr
    assert_recovered(SITE, Run(), command.folder, command.summary)


@pytest.mark.parametrize("after", [1, 2, 4, 9, 17])
def test_interrupted_run_is_resumed(after: int, site_archives: SiteArchives, command: Command) -> None:
    """After SIGINT the exit code is 130, the WARC is valid, and the same command resumes."""
    interrupted = threading.Event()
    # The archives are blocked until then, so that a fast command is not done.
    reached = site_archives.call_after(after, lambda: interrupted.wait(60))
    process = command.start(ROOT, "--connections", "2")
    try:
        assert reached.wait(60)
        process.send_signal(signal.SIGINT)
        interrupted.set()
        out, stderr = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    done = parse_result(process.returncode, out, stderr)
    assert done.code == 130, done.stderr
    stored = read_warcs(command.folder) if command.folder.exists() else {}
    site_archives.watch = None
    site_archives.requests.clear()
    done = command.run(ROOT)
    assert done.code == 0, done.stderr
    again = [
        path
        for _, path in site_archives.replays()
        if any(path.endswith(f"/{each.date}id_/{each.uri}") for each in stored.values())
    ]
    assert again == []
    assert_recovered(SITE, Run(), command.folder, command.summary)


@pytest.mark.parametrize("size", [4_096, 60_000, 200_000])
def test_run_resumes_after_a_full_disk(size: int, site_archives: SiteArchives, command: Command) -> None:
    """If no file can grow, the exit code is 3; with space again the run resumes, and no WARC is damaged.

    The smallest size has no space for the state, the largest only for the state.
    """
    done = command.run(ROOT, before=("prlimit", f"--fsize={size}", "--"))
    assert done.code == 3, done.stderr
    assert re.search(r"space|large|room|disk|full", done.stderr), done.stderr
    stored = read_warcs(command.folder) if command.folder.exists() else {}
    site_archives.requests.clear()
    done = command.run(ROOT)
    assert done.code == 0, done.stderr
    again = [
        path
        for _, path in site_archives.replays()
        if any(path.endswith(f"/{each.date}id_/{each.uri}") for each in stored.values())
    ]
    assert again == []
    assert_recovered(SITE, Run(), command.folder, command.summary)


def test_new_capture_is_recovered_by_next_run(site_archives: SiteArchives, command: Command) -> None:
    """A missing page is recovered once an archive has it."""
    last = site_archives.archives["a"].fake.captures.pop()
    done = command.run(ROOT)
    assert done.code == 0, done.stderr
    assert assert_partly_recovered(command) == OF_A + OF_B - 1
    site_archives.archives["a"].fake.captures.append(last)
    site_archives.requests.clear()
    done = command.run(ROOT)
    assert done.code == 0, done.stderr
    assert len(site_archives.replays()) == 1
    assert_recovered(SITE, Run(), command.folder, command.summary)


def test_sample_site_exceeds_the_quota() -> None:
    """Both archives hold more captures than the quota of these tests."""
    assert SENT < OF_A <= 2 * SENT
    assert OF_A + OF_B == 1 + 2 * PAGES
