"""What keeps a recovery from going on: an archive's limits and its death, a stop file, Ctrl-C, a full disk."""

import re
import shutil
import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.recover.assertions import assert_recovered, format_expected, format_line, lines_by_name
from tests.recover.command import Command, ended
from tests.recover.expected import Run, outcome
from tests.recover.reading import kept
from tests.recover.site import ROOT
from tests.recover.village import PAGES, Village, running, village

SITE = village()
OF_A = sum(held.archive == "a" for _, held in SITE.captures())
OF_B = sum(held.archive == "b" for _, held in SITE.captures())
# The rest is linked from pages of the other archive only.
REACHED_IN_A = 1 + sum(1 + (number // 2 % 2 == 0) for number in range(0, PAGES, 2))
REACHED_IN_B = sum(1 + (number // 2 % 2 == 1) for number in range(1, PAGES, 2))
QUOTA = 10
SENT = 8  # four fifths of the quota


@pytest.fixture
def lost() -> Iterator[Village]:
    """Run the archives of the small site."""
    with running(SITE) as found:
        yield found


@pytest.fixture
def command(lost: Village, tmp_path: Path) -> Command:
    """Return a new recovery of it."""
    return Command(lost.registry(tmp_path), tmp_path / "village.recovery", tmp_path / "home")


def check_part(command: Command) -> int:
    """Check that all that was recovered so far is as it must be; return how much that is."""
    expected, found = outcome(SITE, Run()), lines_by_name(SITE, Run(), command.summary)
    recovered = {name: line for name, line in found.items() if not line.is_missing}
    assert {name: format_line(line) for name, line in recovered.items()} == {
        name: format_expected(expected[name]) for name in recovered
    }
    kept(command.folder)
    return len(recovered)


def midnight() -> datetime:
    """Return when the next day of UTC begins."""
    now = datetime.now(UTC)
    return (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)


def until(told_until: object) -> datetime:
    """Return the moment that an event names: ISO, or 14 digits."""
    if isinstance(told_until, int):
        return datetime.fromtimestamp(told_until, UTC).replace(second=0)
    text = str(told_until)
    if re.fullmatch(r"\d{14}", text):
        return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return datetime.fromisoformat(text)


@pytest.mark.usefixtures("far_from_midnight")
def test_a_daily_limit_stops_only_its_archive(lost: Village, tmp_path: Path) -> None:
    """All that others hold comes; then it ends with 4, and an event and a message say from when there will be more."""
    command = Command(lost.registry(tmp_path, quota=QUOTA), tmp_path / "village.recovery", tmp_path / "home")
    last = midnight()
    done = command.run(ROOT)
    assert done.code == 4, done.said
    asked = [name for name, _ in lost.replays()]
    assert (asked.count("a"), asked.count("b")) == (SENT, OF_B)
    assert check_part(command) == SENT + OF_B
    (event,) = done.of("waiting")
    assert event["archive"] == "a"
    assert "quota" in event["reason"]
    assert until(event["until"]) in (last, midnight())  # the day may end in the middle of the test
    assert "a" in done.said
    assert any(f"{each.astimezone():%Y-%m-%d}" in done.said for each in (last, midnight()))
    assert done.events[-1]["queued"] == OF_A - SENT

    lost.asked.clear()
    assert command.run(ROOT).code == 4
    assert lost.replays() == []

    # The next day: nothing was counted on it yet.
    shutil.rmtree(command.home)
    done = command.run(ROOT)
    assert done.code == 0, done.said
    assert len(lost.replays()) == OF_A - SENT
    assert_recovered(SITE, Run(), command.folder, command.summary)


@pytest.mark.usefixtures("far_from_midnight")
def test_the_most_valuable_comes_first(lost: Village, tmp_path: Path) -> None:
    """Under a limit, the front page and the pages that it links to come before their images."""
    command = Command(lost.registry(tmp_path, quota=QUOTA), tmp_path / "village.recovery", tmp_path / "home")
    assert command.run(ROOT, "--only", "a", "--connections", "1").code == 4
    paths = [path for _, path in lost.replays()]
    assert paths[0].endswith(ROOT)
    # Requisites may come with their page: what may not is that images come while the pages wait.
    assert sum(path.endswith(".html") for path in paths) >= (SENT - 1) // 2


def test_an_archive_that_dies_stops_only_itself(lost: Village, command: Command) -> None:
    """What others hold comes; the rest comes once it is back, and nothing is asked for twice."""

    def die() -> None:
        lost.archives["a"].is_dead = True

    # The lists, the front page and some more.
    lost.when(6, die)
    done = command.run(ROOT, "--connections", "2")
    assert done.code == 4, done.said
    part = check_part(command)
    assert REACHED_IN_B <= part < OF_A + OF_B
    have = {(each.uri, each.date) for each in kept(command.folder).values()}

    lost.archives["a"].is_dead = False
    lost.do(lost.archives["a"].open())
    lost.watch = None
    lost.asked.clear()
    done = command.run(ROOT)
    assert done.code == 0, done.said
    assert not [path for _, path in lost.replays() if any(path.endswith(f"/{date}id_/{uri}") for uri, date in have)]
    assert_recovered(SITE, Run(), command.folder, command.summary)


def test_an_archive_that_is_not_there_is_not_waited_for(lost: Village, command: Command) -> None:
    """With one of two archives down from the beginning, the other's part comes, and nothing is called missing."""
    lost.do(lost.archives["b"].shut())
    done = command.run(ROOT)
    assert done.code == 4, done.said
    assert {event["archive"]: event["outcome"] for event in done.of("listed")} == {"a": "done", "b": "failed"}
    assert check_part(command) == REACHED_IN_A
    found = lines_by_name(SITE, Run(), command.summary)
    assert [name for name, line in found.items() if line.is_missing] == []
    lost.do(lost.archives["b"].open())
    done = command.run(ROOT)
    assert done.code == 0, done.said
    assert_recovered(SITE, Run(), command.folder, command.summary)


@pytest.mark.long
def test_an_archive_that_hangs_is_given_up(lost: Village, command: Command) -> None:
    """One that never answers ends in an end, within some minutes, and others are not waited for by it."""

    def hang() -> None:
        lost.archives["a"].hangs = True

    lost.when(6, hang)
    done = command.run(ROOT, "--connections", "2", timeout=600)
    assert done.code == 4, done.said
    assert check_part(command) >= REACHED_IN_B
    lost.archives["a"].hangs = False
    lost.watch = None
    assert command.run(ROOT).code == 0
    assert_recovered(SITE, Run(), command.folder, command.summary)


def test_a_stop_file_stops_it_cleanly(lost: Village, command: Command) -> None:
    """When the file appears, what is on its way is kept, nothing more is asked, and it ends with 4."""
    stop = command.folder.parent / "stop"
    lost.when(7, stop.touch)
    done = command.run(ROOT, "--connections", "2", "--stop-file", str(stop))
    assert done.code == 4, done.said
    assert len(lost.asked) <= 7 + 2 * 2
    assert check_part(command) == len(lost.replays())
    assert done.events[-1]["event"] == "done"

    stop.unlink()
    lost.watch = None
    done = command.run(ROOT, "--stop-file", str(stop))
    assert done.code == 0, done.said
    assert_recovered(SITE, Run(), command.folder, command.summary)


@pytest.mark.parametrize("after", [1, 2, 4, 9, 17])
def test_ctrl_c_loses_nothing(after: int, lost: Village, command: Command) -> None:
    """Interrupted, it ends with 130 and a whole WARC, and the same command goes on."""
    interrupted = threading.Event()
    # The archives stand still until then, or a fast command would be done.
    reached = lost.when(after, lambda: interrupted.wait(60))
    process = command.start(ROOT, "--connections", "2")
    try:
        assert reached.wait(60)
        process.send_signal(signal.SIGINT)
        interrupted.set()
        out, said = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    done = ended(process.returncode, out, said)
    assert done.code == 130, done.said
    have = kept(command.folder) if command.folder.exists() else {}
    lost.watch = None
    lost.asked.clear()
    done = command.run(ROOT)
    assert done.code == 0, done.said
    again = [
        path
        for _, path in lost.replays()
        if any(path.endswith(f"/{each.date}id_/{each.uri}") for each in have.values())
    ]
    assert again == []
    assert_recovered(SITE, Run(), command.folder, command.summary)


@pytest.mark.parametrize("size", [4_096, 60_000, 200_000])
def test_a_full_disk_breaks_nothing(size: int, lost: Village, command: Command) -> None:
    """Where no file can grow, it ends with 3 and says so; with room again it goes on, and no WARC is broken.

    First there is no room for the state, at last only for the state.
    """
    done = command.run(ROOT, before=("prlimit", f"--fsize={size}", "--"))
    assert done.code == 3, done.said
    assert re.search(r"space|large|room|disk|full", done.said), done.said
    have = kept(command.folder) if command.folder.exists() else {}
    lost.asked.clear()
    done = command.run(ROOT)
    assert done.code == 0, done.said
    again = [
        path
        for _, path in lost.replays()
        if any(path.endswith(f"/{each.date}id_/{each.uri}") for each in have.values())
    ]
    assert again == []
    assert_recovered(SITE, Run(), command.folder, command.summary)


def test_what_archives_gain_is_added(lost: Village, command: Command) -> None:
    """A page that was missing and that an archive has by the next time is recovered then."""
    last = lost.archives["a"].fake.stored.pop()
    done = command.run(ROOT)
    assert done.code == 0, done.said
    assert check_part(command) == OF_A + OF_B - 1
    lost.archives["a"].fake.stored.append(last)
    lost.asked.clear()
    done = command.run(ROOT)
    assert done.code == 0, done.said
    assert len(lost.replays()) == 1
    assert_recovered(SITE, Run(), command.folder, command.summary)


def test_there_are_enough_pages() -> None:
    """Both archives hold more than the limit that is set in these tests."""
    assert SENT < OF_A <= 2 * SENT
    assert OF_A + OF_B == 1 + 2 * PAGES
