"""Recoveries that are killed at random points: nothing is lost or requested again."""

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
from tests.recovery.assertions import assert_recovered
from tests.recovery.command import Command
from tests.recovery.expected import Run
from tests.recovery.recovery_output import StoredRecord, read_warcs, warc_files
from tests.recovery.sample_site import SiteArchives, sample_site, serve_site
from tests.recovery.site import ROOT

POINTS = 50
ROUNDS = 10
CONNECTIONS = 4
SITE = sample_site()


@pytest.fixture(scope="module")
def site_archives() -> Iterator[SiteArchives]:
    """Run the archives of the sample site."""
    with serve_site(SITE) as found:
        yield found


@pytest.fixture(scope="module")
def commands_ready() -> Iterator[Commands]:
    """Return a process that starts commands."""
    with commands("unlost.cli.recover", "unlost.archives.cdx_client") as ready:
        yield ready


class RequestKiller(ProcessKiller):
    """Kills a command when a request arrives, or some time after the response.

    after: Number of requests. size: Number of bytes that must be stored, too. delay: Seconds.
    """

    def __init__(self, site_archives: SiteArchives, folder: Path, after: int, size: int, delay: float | None) -> None:
        super().__init__()
        self._folder, self._size, self._delay = folder, size, delay
        self._end = len(site_archives.requests) + after
        self._is_done = False
        site_archives.watch = self._watch

    def finish(self) -> None:
        """Mark the process as ended."""
        self._is_done = True
        self.cancel()

    def _watch(self, count: int) -> None:
        if self._is_done or count < self._end or _size(self._folder) < self._size:
            return
        self._is_done = True
        self.kill(self._delay)


def _size(folder: Path) -> int:
    total = 0
    for path in warc_files(folder):
        with suppress(FileNotFoundError):  # renamed just now
            total += path.stat().st_size
    return total


def stored_captures(folder: Path) -> dict[tuple[str, str], StoredRecord]:
    """Return the stored captures by URL and date."""
    return {(each.uri, each.date): each for each in read_warcs(folder, may_be_torn=True).values()}


def repeated_requests(requested: list[tuple[str, str]], stored: dict[tuple[str, str], StoredRecord]) -> list[str]:
    """Return the requests for captures that are already stored."""
    return [path for _, path in requested if any(path.endswith(f"/{date}id_/{uri}") for uri, date in stored)]


@pytest.fixture(scope="module")
def totals(
    site_archives: SiteArchives, commands_ready: Commands, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, int]:
    """Recover the site once without a kill; return the number of capture requests and of stored bytes."""
    place = tmp_path_factory.mktemp("undisturbed")
    command = Command(site_archives.registry(place), place / "sample.recovery", place / "home")
    site_archives.watch = None
    site_archives.requests.clear()
    commands_ready.start(command.home, command.arguments(ROOT, "--connections", str(CONNECTIONS)))
    assert commands_ready.ended() == 0
    assert_recovered(SITE, Run(), command.folder, command.summary)
    return len(site_archives.replays()), _size(command.folder)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_run_resumes_after_a_kill_at_any_point(
    round_: int, site_archives: SiteArchives, commands_ready: Commands, totals: tuple[int, int], tmp_path: Path
) -> None:
    """The outcome is unaffected; only requests in flight are repeated; no WARC is damaged."""
    random_ = random.Random(round_)  # noqa: S311
    command = Command(site_archives.registry(tmp_path), tmp_path / "sample.recovery", tmp_path / "home")
    stored: dict[tuple[str, str], StoredRecord] = {}
    replays = kills = 0
    while kills < POINTS // ROUNDS:
        arguments = command.arguments(ROOT, "--connections", str(CONNECTIONS))
        # During a request, while its response is stored, or once enough bytes are stored.
        after = random_.choice([1, 2, 3, 4])
        size = random_.choice([0, 0, random_.randrange(totals[1] * (kills + 1) // 10)])
        delay = random_.choice([None, None, random_.uniform(0, 0.005)])
        print(f"round {round_}, kill {kills}: request {after}, {size} bytes stored, {delay} s later")
        site_archives.requests.clear()
        killer = RequestKiller(site_archives, command.folder, after, size, delay)
        killer.set_process(commands_ready.start(command.home, arguments))
        code = commands_ready.ended()
        killer.finish()
        assert repeated_requests(site_archives.requests, stored) == []
        if code == 0:  # on a busy machine a kill may come so late that little is left: then it was done before the next
            assert_recovered(SITE, Run(), command.folder, command.summary)
            command = replace(command, folder=command.folder.with_name(f"again-{kills}.recovery"))
            assert not command.folder.exists(), "no kill has come since it was restarted"
            stored, replays = {}, 0
            continue
        assert code == -signal.SIGKILL
        kills += 1
        replays += len(site_archives.replays())
        now = stored_captures(command.folder)
        assert stored.items() <= now.items(), "a stored capture is lost"
        stored = now
    site_archives.watch = None
    site_archives.requests.clear()
    commands_ready.start(command.home, arguments)
    assert commands_ready.ended() == 0
    assert repeated_requests(site_archives.requests, stored) == []
    assert_recovered(SITE, Run(), command.folder, command.summary)
    # Requests in flight, and responses that are not stored yet.
    in_flight = POINTS // ROUNDS * (CONNECTIONS + CONNECTIONS // 4) * len(site_archives.archives)
    assert totals[0] <= replays + len(site_archives.replays()) <= totals[0] + in_flight
    names = {path.name for path in command.folder.iterdir()}
    assert {name for name in names if not name.startswith("state.")} == {"warc"}
    assert [path.name for path in warc_files(command.folder) if path.name.endswith(".open")] == []


def test_run_resumes_after_a_kill_during_the_first_listing(
    site_archives: SiteArchives, commands_ready: Commands, tmp_path: Path
) -> None:
    """Killed during its first request, the recovery is completed by the same command."""
    command = Command(site_archives.registry(tmp_path), tmp_path / "sample.recovery", tmp_path / "home")
    arguments = command.arguments(ROOT)
    killer = RequestKiller(site_archives, command.folder, 1, 0, None)
    killer.set_process(commands_ready.start(command.home, arguments))
    assert commands_ready.ended() == -signal.SIGKILL
    killer.finish()
    site_archives.watch = None
    commands_ready.start(command.home, arguments)
    assert commands_ready.ended() == 0
    assert_recovered(SITE, Run(), command.folder, command.summary)


def test_second_process_in_the_same_folder_is_refused(site_archives: SiteArchives, tmp_path: Path) -> None:
    """The second command is refused, and the first one is unaffected."""
    command = Command(site_archives.registry(tmp_path), tmp_path / "sample.recovery", tmp_path / "home")
    second = Command(command.registry, command.folder, tmp_path / "home-2")
    refused = []
    is_running, may_continue = threading.Event(), threading.Event()

    def act() -> None:
        is_running.set()
        may_continue.wait(60)

    site_archives.call_after(4, act)
    first = command.start(ROOT, "--connections", "1")
    try:
        assert is_running.wait(60)
        site_archives.watch = None
        before = first.poll()
        # The archives are blocked meanwhile: the refused command sends no request.
        refused.append(second.run(ROOT))
    finally:
        may_continue.set()
        first.communicate(timeout=60)
    assert before is None
    assert refused[0].code in (2, 3)
    assert str(command.folder.name) in refused[0].stderr
    assert first.returncode == 0
    assert_recovered(SITE, Run(), command.folder, command.summary)
