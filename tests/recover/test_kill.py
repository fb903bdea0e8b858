"""Killed at any moment, a recovery loses nothing, asks again for no copy that it has, and ends as it must."""

import random
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.archives.sampling.killable import Commands, commands
from tests.process_killer import ProcessKiller
from tests.recover.assertions import assert_recovered
from tests.recover.command import Command
from tests.recover.expected import Run
from tests.recover.reading import Kept, files, kept
from tests.recover.site import ROOT
from tests.recover.village import Village, running, village

POINTS = 50
ROUNDS = 10
CONNECTIONS = 4
SITE = village()


@pytest.fixture(scope="module")
def lost() -> Iterator[Village]:
    """Run the archives of the small site."""
    with running(SITE) as found:
        yield found


@pytest.fixture(scope="module")
def starting() -> Iterator[Commands]:
    """Be ready to start commands."""
    with commands("unlost.cli.recover", "unlost.archives.cdx_client") as ready:
        yield ready


class RequestKiller(ProcessKiller):
    """Kills a command at a point: when a request comes, or some time after it was answered.

    after: how many requests. size: how many bytes must be kept, too. delay: seconds.
    """

    def __init__(self, lost: Village, folder: Path, after: int, size: int, delay: float | None) -> None:
        super().__init__()
        self._folder, self._size, self._delay = folder, size, delay
        self._end = len(lost.asked) + after
        self._is_done = False
        lost.watch = self._watch

    def finish(self) -> None:
        """Stop watching requests after the process has ended."""
        self._is_done = True
        self.cancel()

    def _watch(self, count: int) -> None:
        if self._is_done or count < self._end or _size(self._folder) < self._size:
            return
        self._is_done = True
        self.kill(self._delay)


def _size(folder: Path) -> int:
    total = 0
    for path in files(folder):
        with suppress(FileNotFoundError):  # renamed just now
            total += path.stat().st_size
    return total


def copies(folder: Path) -> dict[tuple[str, str], Kept]:
    """Return what is kept so far, by address and date."""
    return {(each.uri, each.date): each for each in kept(folder, may_be_torn=True).values()}


def asked_again(asked: list[tuple[str, str]], have: dict[tuple[str, str], Kept]) -> list[str]:
    """Return the requests for what was kept already."""
    return [path for _, path in asked if any(path.endswith(f"/{date}id_/{uri}") for uri, date in have)]


@pytest.fixture(scope="module")
def needed(lost: Village, starting: Commands, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, int]:
    """Recover it once without any harm: how many requests for copies that takes, and how many bytes it is."""
    place = tmp_path_factory.mktemp("undisturbed")
    command = Command(lost.registry(place), place / "village.recovery", place / "home")
    lost.watch = None
    lost.asked.clear()
    starting.start(command.home, command.arguments(ROOT, "--connections", str(CONNECTIONS)))
    assert starting.ended() == 0
    assert_recovered(SITE, Run(), command.folder, command.summary)
    return len(lost.replays()), _size(command.folder)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_killed_at_any_point_it_goes_on(
    round_: int, lost: Village, starting: Commands, needed: tuple[int, int], tmp_path: Path
) -> None:
    """The outcome is the undisturbed one; at most what was on its way is asked for again; no WARC is broken."""
    random_ = random.Random(round_)  # noqa: S311
    command = Command(lost.registry(tmp_path), tmp_path / "village.recovery", tmp_path / "home")
    have: dict[tuple[str, str], Kept] = {}
    replays = kills = 0
    while kills < POINTS // ROUNDS:
        arguments = command.arguments(ROOT, "--connections", str(CONNECTIONS))
        # In the middle of a request, while its answer is kept, or once so much is kept.
        after = random_.choice([1, 2, 3, 4])
        size = random_.choice([0, 0, random_.randrange(needed[1] * (kills + 1) // 10)])
        delay = random_.choice([None, None, random_.uniform(0, 0.005)])
        print(f"round {round_}, kill {kills}: request {after}, {size} bytes kept, {delay} s later")
        lost.asked.clear()
        killer = RequestKiller(lost, command.folder, after, size, delay)
        killer.set_process(starting.start(command.home, arguments))
        code = starting.ended()
        killer.finish()
        assert asked_again(lost.asked, have) == []
        if code == 0:  # on a busy machine a kill may come so late that little is left: then it was done before the next
            assert_recovered(SITE, Run(), command.folder, command.summary)
            command = replace(command, folder=command.folder.with_name(f"again-{kills}.recovery"))
            assert not command.folder.exists(), "no kill has come since it was begun anew"
            have, replays = {}, 0
            continue
        assert code == -signal.SIGKILL
        kills += 1
        replays += len(lost.replays())
        now = copies(command.folder)
        assert have.items() <= now.items(), "something that was kept is gone"
        have = now
    lost.watch = None
    lost.asked.clear()
    starting.start(command.home, arguments)
    assert starting.ended() == 0
    assert asked_again(lost.asked, have) == []
    assert_recovered(SITE, Run(), command.folder, command.summary)
    # Those that are on their way, and those that have come and are not kept yet.
    on_their_way = POINTS // ROUNDS * (CONNECTIONS + CONNECTIONS // 4) * len(lost.archives)
    assert needed[0] <= replays + len(lost.replays()) <= needed[0] + on_their_way
    names = {path.name for path in command.folder.iterdir()}
    assert {name for name in names if not name.startswith("state.")} == {"warc"}
    assert [path.name for path in files(command.folder) if path.name.endswith(".open")] == []


def test_killed_before_it_has_anything(lost: Village, starting: Commands, tmp_path: Path) -> None:
    """Killed while it asks for the first list, it leaves a folder that the same command goes on with."""
    command = Command(lost.registry(tmp_path), tmp_path / "village.recovery", tmp_path / "home")
    arguments = command.arguments(ROOT)
    killer = RequestKiller(lost, command.folder, 1, 0, None)
    killer.set_process(starting.start(command.home, arguments))
    assert starting.ended() == -signal.SIGKILL
    killer.finish()
    lost.watch = None
    starting.start(command.home, arguments)
    assert starting.ended() == 0
    assert_recovered(SITE, Run(), command.folder, command.summary)


def test_two_at_once_do_not_write_the_same_folder(lost: Village, tmp_path: Path) -> None:
    """While one command recovers into a folder, another is refused, and the first goes on unharmed."""
    command = Command(lost.registry(tmp_path), tmp_path / "village.recovery", tmp_path / "home")
    second = Command(command.registry, command.folder, tmp_path / "home-2")
    refused = []
    at_work, may_go_on = threading.Event(), threading.Event()

    def act() -> None:
        at_work.set()
        may_go_on.wait(60)

    lost.when(4, act)
    first = command.start(ROOT, "--connections", "1")
    try:
        assert at_work.wait(60)
        lost.watch = None
        before = first.poll()
        # The archives stand still meanwhile: whoever is refused asks none.
        refused.append(second.run(ROOT))
    finally:
        may_go_on.set()
        first.communicate(timeout=60)
    assert before is None
    assert refused[0].code in (2, 3)
    assert str(command.folder.name) in refused[0].said
    assert first.returncode == 0
    assert_recovered(SITE, Run(), command.folder, command.summary)
