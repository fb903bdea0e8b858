"""Rate-limit states: shared by processes, changed atomically, and complete after kills."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from tests.http.rate_limits.limit_processes import ARCHIVE, LIMIT, QUOTA, add_one
from tests.http.rate_limits.windows import most_within
from unlost.errors import InputError
from unlost.http import FileLimitStore, LimitStore, MemoryLimitStore, RateLimitState, limit_store

ROOT = Path(__file__).parents[3]


def start(*arguments: str | Path) -> subprocess.Popen[bytes]:
    """Start a process that uses a folder of limits."""
    command = [sys.executable, "-m", "tests.http.rate_limits.limit_processes", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)


def result(process: subprocess.Popen[bytes]) -> list[float]:
    """Return the output of a process."""
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    found: list[float] = json.loads(output)
    return found


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> LimitStore:
    """Return a store of each kind."""
    return MemoryLimitStore() if request.param == "memory" else FileLimitStore(tmp_path / "new" / "limits")


def test_change_is_visible_to_the_next_one(store: LimitStore) -> None:
    """A state starts empty, and belongs to one archive."""
    assert store.update("a", lambda ledger: (RateLimitState(waits=2), ledger)) == RateLimitState()
    assert store.update("a", lambda ledger: (ledger, ledger)) == RateLimitState(waits=2)
    assert store.update("A", lambda ledger: (ledger, ledger)) == RateLimitState()


def test_state_without_entries_is_known_empty(store: LimitStore) -> None:
    """Also after entries are removed; not with entries, and not if it is unreadable."""
    store.update("b", lambda ledger: (ledger, None))
    assert store.is_known_empty("a")
    store.update("a", lambda _: (RateLimitState(wait_until=7.0), None))
    assert (store.is_known_empty("a"), store.is_known_empty("b")) == (False, True)
    store.update("a", lambda _: (RateLimitState(), None))
    assert store.is_known_empty("a")


def test_state_changed_meanwhile_is_not_known_empty(tmp_path: Path) -> None:
    """A reader must not send without an entry that another thread is writing."""
    store = FileLimitStore(tmp_path)

    def record_wait(_: RateLimitState) -> tuple[RateLimitState, bool]:
        return RateLimitState(wait_until=7.0), store.is_known_empty("a")

    assert store.update("a", record_wait)
    assert not store.is_known_empty("a")


def test_unwritable_state_is_not_known_empty(tmp_path: Path) -> None:
    """The error is reported, and nothing is sent."""
    (tmp_path / "limits").write_text("no folder")
    assert not FileLimitStore(tmp_path / "limits").is_known_empty("a")


def test_change_that_raises_changes_nothing(store: LimitStore) -> None:
    """The state is unchanged, and the lock is released."""

    def broken(_: RateLimitState) -> tuple[RateLimitState, None]:
        raise KeyError

    store.update("a", add_one)
    with pytest.raises(KeyError):
        store.update("a", broken)
    assert store.update("a", add_one) == 2


def test_threads_are_serialized(store: LimitStore) -> None:
    """No change is lost."""
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: store.update("a", add_one), range(200)))
    assert store.update("a", add_one) == 201


@pytest.mark.parametrize("archive", ["../../a", "", ".", "a\x00b", "ü" * 200, "x" * 5000, "a\udc80"])
def test_any_id_is_a_file_in_the_folder(tmp_path: Path, archive: str) -> None:
    """Ids cannot escape the folder, or be too long for a file name."""
    store = FileLimitStore(tmp_path / "limits")
    assert (store.update(archive, add_one), store.update(archive, add_one)) == (1, 2)
    assert [each.name for each in tmp_path.iterdir()] == ["limits"]
    assert store.path_of(archive).parent == tmp_path / "limits"


def test_processes_share_a_limit(tmp_path: Path) -> None:
    """Four processes together never send more in any window than one may."""
    processes = [start("index", tmp_path, "40") for _ in range(4)]
    times = sorted(time for process in processes for time in result(process))
    assert len(times) == 160
    assert most_within(times, LIMIT.seconds) <= LIMIT.requests * 0.8


def test_processes_share_a_quota(tmp_path: Path) -> None:
    """Of 4 times 100 requests on a day with a quota of 160, exactly 160 are sent."""
    processes = [start("replay", tmp_path, "100") for _ in range(4)]
    assert sum(len(result(process)) for process in processes) == QUOTA.requests * 0.8
    counted = FileLimitStore(tmp_path).update(ARCHIVE.id, lambda ledger: (ledger, ledger.counted))
    assert [count for _, count in counted.values()] == [160]


def test_killed_process_leaves_a_complete_file(tmp_path: Path) -> None:
    """Changes are killed at 60 lines: the state is that before or after, and not locked."""
    killed, *output = result(start("kill", tmp_path, "60"))
    assert killed == 60
    # A change has some forty lines: a process that is killed early made none, a later one one or two.
    grown = [after - before for before, after in pairwise([0, *output])]
    assert set(grown) <= {0, 1, 2}, grown
    assert {0, 1} <= set(grown)
    assert {each.name for each in tmp_path.iterdir()} <= {"a.json", "a.lock", "a.json.part"}


@pytest.mark.parametrize(
    "damage",
    [lambda _: b"", lambda data: data[:-20], lambda data: b"\xff" + data, lambda _: b"[" * 100_000, lambda _: b"{}"],
    ids=["empty", "cut", "not-text", "deep", "another"],
)
def test_damaged_file_is_renamed_and_counts_as_exhausted(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """The warning says what to do."""
    output: list[str] = []
    store = FileLimitStore(tmp_path, output.append)
    store.update("a", add_one)
    damaged = damage(store.path_of("a").read_bytes())
    store.path_of("a").write_bytes(damaged)
    assert store.update("a", lambda ledger: (ledger, ledger)) == RateLimitState(lost=True)
    assert FileLimitStore(tmp_path).update("a", lambda ledger: (ledger, ledger)) == RateLimitState(lost=True)
    assert (tmp_path / "a.damaged").read_bytes() == damaged
    assert len(output) == 1
    assert str(store.path_of("a")) in output[0]
    assert "delete" in output[0]


def test_file_of_a_newer_version_is_unchanged(tmp_path: Path) -> None:
    """It is an error, not damage: the newer version still uses it."""
    store = FileLimitStore(tmp_path)
    store.path_of("a").write_text('{"unlost-limits": 2}')
    with pytest.raises(InputError, match="version 2"):
        store.update("a", add_one)
    assert store.path_of("a").read_text() == '{"unlost-limits": 2}'


def test_lock_that_is_never_released_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suspended process does not make others hang."""
    monkeypatch.setattr(limit_store, "_LOCK_TIMEOUT", 0.05)
    store = FileLimitStore(tmp_path)
    store.update("a", add_one)
    descriptor = os.open(tmp_path / "a.lock", os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="locked"):
            store.update("a", add_one)
    finally:
        os.close(descriptor)
    assert store.update("a", add_one) == 2


def test_other_users_cannot_hold_the_lock(tmp_path: Path) -> None:
    """They cannot open the lock file; permissions of a shared folder are unchanged."""
    FileLimitStore(tmp_path / "own").update("a", lambda ledger: (ledger, None))
    assert (tmp_path / "own").stat().st_mode & 0o077 == 0
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    FileLimitStore(shared).update("a", lambda ledger: (ledger, None))
    assert shared.stat().st_mode & 0o777 == 0o777


def test_unwritable_folder_raises(tmp_path: Path) -> None:
    """Nothing is sent."""
    (tmp_path / "limits").write_text("a file")
    with pytest.raises(OSError, match="limits"):
        FileLimitStore(tmp_path / "limits").update("a", add_one)
