"""What becomes of answers on a disk that is damaged, full or hanging, or has the file of somebody else."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.aggregate.answers import an_answer
from tests.aggregate.disks import a_disk, kept, timeless
from tests.aggregate.stubs import PAGE, Archives, aggregator
from tests.small_disk import small_files
from tests.virtual_clock import VirtualClock
from unlost.aggregate import RoutingOptions, disk_cache
from unlost.errors import InputError


@pytest.mark.parametrize("size", [0, 50])
def test_damaged_entries_are_detected(size: int) -> None:
    """Whichever bit is flipped, and wherever they are truncated."""
    data = disk_cache.serialize_result("", RoutingOptions(), an_answer(PAGE, size))
    for place in range(len(data)):
        wrong = data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :]
        for each in (wrong, data[:place]):
            with pytest.raises(InputError):
                disk_cache.deserialize_result("", PAGE, RoutingOptions(), each, 1.0, 2.0)


def test_damaged_entry_is_removed_and_reported(tmp_path: Path) -> None:
    """It costs itself."""
    told: list[str] = []

    async def work() -> None:
        async with a_disk(tmp_path) as disk:
            disk.put(RoutingOptions(), an_answer(f"{PAGE}/1", 3))
            disk.put(RoutingOptions(), an_answer(f"{PAGE}/2", 3))
        file = tmp_path / "cache" / "answers.sqlite"
        with sqlite3.connect(file) as database:
            database.execute("UPDATE answer SET data = zeroblob(9) WHERE number = 1")
        database.close()
        async with a_disk(tmp_path, told) as disk:
            assert await disk.get(f"{PAGE}/1", RoutingOptions()) is None
            assert await disk.get(f"{PAGE}/2", RoutingOptions()) is not None
            assert await disk.get(f"{PAGE}/1", RoutingOptions()) is None
            assert disk.unreadable == 1

    asyncio.run(work())
    assert len(told) == 1


def test_full_disk_is_reported_once(tmp_path: Path) -> None:
    """The memory cache still works, nothing is raised, and the disk is used again when there is space."""
    told: list[str] = []

    async def work() -> None:
        clock = VirtualClock()
        disk = a_disk(tmp_path, told, clock)
        async with aggregator(Archives(a=["20140210000001"]), clock, disk=disk) as it:
            await it.find(f"{PAGE}/before")
            await disk.flush()
            with small_files(80_000):
                for number in range(5):
                    for page in range(40):
                        disk.put(RoutingOptions(), an_answer(f"{PAGE}/{number}/{page}", 200, made=clock.now()))
                    await it.find(f"{PAGE}/{number}")
                    await disk.flush()
                    clock.advance(61)
            assert len(told) == 1, told
            assert disk.unwritten > 0
            assert (await it.find(f"{PAGE}/4")).from_cache
            await it.find(f"{PAGE}/after")
            await disk.flush()
        assert (await kept(tmp_path, f"{PAGE}/after", f"{PAGE}/before", clock=clock)).count(None) == 0

    asyncio.run(work())


def test_hanging_disk_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported once, and archives are queried instead."""
    told: list[str] = []
    monkeypatch.setattr("unlost.aggregate.disk_cache._READ_TIMEOUT", 0.1)
    release = threading.Event()

    async def work() -> None:
        disk = a_disk(tmp_path, told)
        monkeypatch.setattr(disk._read_database, "get", lambda keys: (release.wait(10), [None] * len(keys))[1])
        async with aggregator(Archives(a=["20140210000001"]), disk=disk) as it:
            for number in range(5):
                assert len((await it.find(f"{PAGE}/{number}")).mementos) == 1
            release.set()
            assert disk.written + disk.unwritten <= 5

    asyncio.run(work())
    assert len(told) == 1


def scribbled(file: Path) -> None:
    """Write over some pages in the middle."""
    data = bytearray(file.read_bytes())
    for begin in range(4096, len(data), 8192):
        data[begin : begin + 100] = b"\xff" * 100
    file.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "other text": lambda file: file.write_bytes(b"this is no database" * 500),
    "half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "scribbled": scribbled,
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_replaced_and_reported(tmp_path: Path, damage: str) -> None:
    """Whenever the damage is noticed, no wrong result is returned."""
    told: list[str] = []
    file = tmp_path / "cache" / "answers.sqlite"

    async def work() -> None:
        async with a_disk(tmp_path) as disk:
            for number in range(300):
                disk.put(RoutingOptions(), an_answer(f"{PAGE}/{number}", 30))
        DAMAGES[damage](file)
        async with a_disk(tmp_path, told) as disk:
            for number in range(300):
                found = await disk.get(f"{PAGE}/{number}", RoutingOptions())
                assert found is None or found == timeless(an_answer(f"{PAGE}/{number}", 30))
            for number in range(300):
                disk.put(RoutingOptions(), an_answer(f"{PAGE}/{number}", 20))
            await disk.flush()
            assert disk.unwritten == 0
        for number, found in enumerate(await kept(tmp_path, *(f"{PAGE}/{number}" for number in range(300)))):
            assert found == timeless(an_answer(f"{PAGE}/{number}", 20))

    asyncio.run(work())
    assert len(told) == 1
    assert (tmp_path / "cache" / "answers.sqlite.damaged").exists()


@pytest.mark.parametrize("version", [2, None])
def test_foreign_file_is_not_modified(tmp_path: Path, version: int | None) -> None:
    """A later version or another program's file is reported, and nothing is cached on disk."""
    told: list[str] = []
    file = tmp_path / "cache" / "answers.sqlite"

    async def work() -> None:
        if version is None:
            file.parent.mkdir()
        else:
            async with a_disk(tmp_path) as disk:
                disk.put(RoutingOptions(), an_answer(PAGE))
        database = sqlite3.connect(file)
        database.execute("CREATE TABLE theirs (a)" if version is None else f"PRAGMA user_version = {version}")
        database.close()
        before = file.read_bytes()
        async with a_disk(tmp_path, told) as disk:
            assert await disk.get(PAGE, RoutingOptions()) is None
            disk.put(RoutingOptions(), an_answer(PAGE))
        assert file.read_bytes() == before

    asyncio.run(work())
    assert len(told) == 1


def test_removed_file_is_created_again(tmp_path: Path) -> None:
    """Somebody cleans up while it is used."""

    async def work() -> None:
        async with a_disk(tmp_path) as disk:
            disk.put(RoutingOptions(), an_answer(f"{PAGE}/1"))
            await disk.flush()
            assert await disk.get(f"{PAGE}/1", RoutingOptions()) is not None
            for path in (tmp_path / "cache").iterdir():
                path.unlink()
            assert await disk.get(f"{PAGE}/1", RoutingOptions()) is None
            disk.put(RoutingOptions(), an_answer(f"{PAGE}/2"))
            await disk.flush()
            assert await disk.get(f"{PAGE}/2", RoutingOptions()) is not None

    asyncio.run(work())
