"""The upstream log: complete lines on full disks, rotation and kills."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.virtual_clock import VirtualClock
from unlost.aggregate import UpstreamLog
from unlost.logs import UpstreamLogEntry, format_log_entry, read_upstream_log
from unlost.problems import Problems


def entries(count: int, first: int = 0) -> list[UpstreamLogEntry]:
    """Return `count` entries."""
    return [
        UpstreamLogEntry("2026-01-31T12:00:00.250Z", "a", f"http://example.com/{number}", "timemap", "miss", "routed")
        for number in range(first, first + count)
    ]


def read(path: Path) -> list[UpstreamLogEntry]:
    """Read a log without problems."""
    problems = Problems()
    found = list(read_upstream_log(path, problems))
    assert problems.total == 0
    return found


async def wait_for_entries(log: UpstreamLog, count: int) -> None:
    """Wait until `count` entries are written or lost."""
    while log.written + log.lost < count:
        await asyncio.sleep(0.001)


def test_closing_writes_all_entries(tmp_path: Path) -> None:
    """In order, appended to the file; the directory is created."""
    path = tmp_path / "logs" / "upstream.ndjson"

    async def run(first: int) -> UpstreamLog:
        async with UpstreamLog(path, VirtualClock()) as log:
            for entry in entries(2_500, first):
                log.append(entry)
                if entry.uri.endswith("99"):
                    await asyncio.sleep(0)
        return log

    for first in (0, 2_500):
        log = asyncio.run(run(first))
        assert (log.written, log.lost) == (2_500, 0)
    assert read(path) == entries(5_000)


def test_entries_are_written_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one write for each, in a thread."""
    writes = []
    write = os.write

    def counted(descriptor: int, data: bytes) -> int:
        writes.append(len(data))
        return write(descriptor, data)

    async def run() -> None:
        clock = VirtualClock()
        async with UpstreamLog(tmp_path / "log", clock) as log:
            for number in range(5):
                for entry in entries(100, 100 * number):
                    log.append(entry)
                await wait_for_entries(log, 100 * (number + 1))
        assert len(clock.slept) == 5

    with monkeypatch.context() as patch:
        # The event loop wakes itself by a socket, not by this.
        patch.setattr(os, "write", counted)
        asyncio.run(run())
    assert len(writes) == 5
    assert read(tmp_path / "log") == entries(500)


def test_log_rotation_loses_no_entries(tmp_path: Path) -> None:
    """Renamed as by logrotate, removed, or truncated."""
    path = tmp_path / "log"

    async def run() -> None:
        async with UpstreamLog(path, VirtualClock()) as log:
            for number in range(6):
                for entry in entries(10, 10 * number):
                    log.append(entry)
                await wait_for_entries(log, 10 * (number + 1))
                if number % 3 == 0:
                    path.rename(tmp_path / f"log.{number}")
                elif number == 1:
                    path.unlink()
                elif number == 2:
                    os.truncate(path, 0)
            assert log.lost == 0

    asyncio.run(run())
    assert read(tmp_path / "log.0") == entries(10)
    assert read(tmp_path / "log.3") == entries(10, 30)  # what came after the cut
    assert read(path) == entries(20, 40)


def test_entries_are_lost_on_a_full_disk(tmp_path: Path) -> None:
    """They are counted and reported once, also when it is over; no response waits."""
    path = tmp_path / "log"
    path.symlink_to("/dev/full")
    warnings: list[str] = []

    async def run() -> None:
        async with UpstreamLog(path, VirtualClock(), warn=warnings.append) as log:
            for number in range(3):
                for entry in entries(10, 10 * number):
                    log.append(entry)
                await wait_for_entries(log, 10 * (number + 1))
            assert (log.written, log.lost) == (0, 30)
            path.unlink()
            for entry in entries(5):
                log.append(entry)
            await wait_for_entries(log, 35)
            assert (log.written, log.lost) == (5, 30)

    asyncio.run(run())
    assert read(path) == entries(5)
    assert len(warnings) == 2
    assert "No space left" in warnings[0]
    assert "after 30 answers were lost" in warnings[1]


def test_partial_line_is_terminated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a full disk or a killed process."""
    path = tmp_path / "log"
    lines = [format_log_entry(entry) for entry in entries(30)]
    path.write_bytes(lines[0] + lines[1][:40])
    room = [len(b"".join(lines[2:5])) + 20]
    write = os.write

    def cramped(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        count = write(descriptor, data[: room[0]])
        room[0] -= count
        return count

    async def run() -> None:
        async with UpstreamLog(path, VirtualClock(), warn=lambda _: None) as log:
            with monkeypatch.context() as patch:
                patch.setattr(os, "write", cramped)
                for entry in entries(10, 2):
                    log.append(entry)
                await wait_for_entries(log, 10)
            assert (log.written, log.lost) == (3, 7)
            for entry in entries(10, 20):
                log.append(entry)

    asyncio.run(run())
    problems = Problems()
    found = list(read_upstream_log(path, problems))
    assert found == [*entries(1), *entries(3, 2), *entries(10, 20)]
    assert problems.counts == {"bad-json": 2}


def test_entries_beyond_the_queue_are_counted_as_lost(tmp_path: Path) -> None:
    """This is reported."""
    warnings: list[str] = []

    async def run() -> None:
        async with UpstreamLog(tmp_path / "log", VirtualClock(), capacity=100, warn=warnings.append) as log:
            for entry in entries(250):
                log.append(entry)  # the writer does not run
            assert log.lost == 150
            await wait_for_entries(log, 250)
            for entry in entries(10, 250):
                log.append(entry)
        assert (log.written, log.lost) == (110, 150)

    asyncio.run(run())
    assert read(tmp_path / "log") == [*entries(100), *entries(10, 250)]
    assert "too slowly" in warnings[0]


def test_pipe_without_reader_does_not_block(tmp_path: Path) -> None:
    """Entries are lost."""
    path = tmp_path / "pipe"
    os.mkfifo(path)

    async def run() -> None:
        async with UpstreamLog(path, VirtualClock(), warn=lambda _: None) as log:
            for entry in entries(5):
                log.append(entry)
        assert (log.written, log.lost) == (0, 5)

    asyncio.run(asyncio.wait_for(run(), 20))


def test_invalid_entry_is_skipped(tmp_path: Path) -> None:
    """The others of its batch are written, and it is counted."""
    warnings: list[str] = []
    invalid = UpstreamLogEntry("now", "a", "http://a.com/", "timemap", "hit", "routed")

    async def run() -> None:
        async with UpstreamLog(tmp_path / "log", VirtualClock(), warn=warnings.append) as log:
            for entry in [*entries(3), invalid, *entries(3, 3)]:
                log.append(entry)
        assert (log.written, log.lost) == (6, 1)

    asyncio.run(run())
    assert read(tmp_path / "log") == entries(6)
    assert "cannot be" in warnings[0]


def test_written_entries_survive_a_kill(tmp_path: Path) -> None:
    """All acknowledged lines are complete and in order."""
    path = tmp_path / "log"
    command = [sys.executable, "-m", "tests.aggregate.log_until_killed", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        known = 0
        while known < 1_000:
            known = int(process.stdout.readline())
        process.kill()
        known = int((process.stdout.read().split("\n")[:-1] or [str(known)])[-1])
    problems = Problems()
    found = list(read_upstream_log(path, problems))
    assert len(found) >= known
    assert [each.uri for each in found] == [each.uri for each in entries(len(found))]
    assert problems.total <= 1
