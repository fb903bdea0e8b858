"""The disk cache with a damaged, full, hanging or foreign file."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.aggregate.disk_caches import cached_results, open_disk_cache, to_cached_result
from tests.aggregate.results import make_result
from tests.aggregate.stubs import PAGE, Archives, make_aggregator
from tests.small_disk import limit_file_size
from tests.virtual_clock import VirtualClock
from unlost.aggregate import RoutingOptions, disk_cache
from unlost.errors import InputError


@pytest.mark.parametrize("size", [0, 50])
def test_damaged_entries_are_detected(size: int) -> None:
    """Whichever bit is flipped, and wherever they are truncated."""
    data = disk_cache.serialize_result("", RoutingOptions(), make_result(PAGE, size))
    for place in range(len(data)):
        wrong = data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :]
        for each in (wrong, data[:place]):
            with pytest.raises(InputError):
                disk_cache.deserialize_result("", PAGE, RoutingOptions(), each, 1.0, 2.0)


def test_damaged_entry_is_removed_and_reported(tmp_path: Path) -> None:
    """Others stay."""
    warnings: list[str] = []

    async def work() -> None:
        async with open_disk_cache(tmp_path) as disk:
            disk.put(RoutingOptions(), make_result(f"{PAGE}/1", 3))
            disk.put(RoutingOptions(), make_result(f"{PAGE}/2", 3))
        file = tmp_path / "cache" / "answers.sqlite"
        with sqlite3.connect(file) as database:
            database.execute("UPDATE answer SET data = zeroblob(9) WHERE number = 1")
        database.close()
        async with open_disk_cache(tmp_path, warnings) as disk:
            assert await disk.get(f"{PAGE}/1", RoutingOptions()) is None
            assert await disk.get(f"{PAGE}/2", RoutingOptions()) is not None
            assert await disk.get(f"{PAGE}/1", RoutingOptions()) is None
            assert disk.unreadable == 1

    asyncio.run(work())
    assert len(warnings) == 1


def test_full_disk_is_reported_once(tmp_path: Path) -> None:
    """The memory cache still works, nothing is raised, and the disk is used again when there is space."""
    warnings: list[str] = []

    async def work() -> None:
        clock = VirtualClock()
        disk = open_disk_cache(tmp_path, warnings, clock)
        async with make_aggregator(Archives(a=["20140210000001"]), clock, disk=disk) as aggregator:
            await aggregator.find(f"{PAGE}/before")
            await disk.flush()
            with limit_file_size(80_000):
                for number in range(5):
                    for page in range(40):
                        disk.put(RoutingOptions(), make_result(f"{PAGE}/{number}/{page}", 200, made=clock.now()))
                    await aggregator.find(f"{PAGE}/{number}")
                    await disk.flush()
                    clock.advance(61)
            assert len(warnings) == 1, warnings
            assert disk.unwritten > 0
            assert (await aggregator.find(f"{PAGE}/4")).from_cache
            await aggregator.find(f"{PAGE}/after")
            await disk.flush()
        assert (await cached_results(tmp_path, f"{PAGE}/after", f"{PAGE}/before", clock=clock)).count(None) == 0

    asyncio.run(work())


def test_hanging_disk_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported once, and archives are queried instead."""
    warnings: list[str] = []
    monkeypatch.setattr("unlost.aggregate.disk_cache._READ_TIMEOUT", 0.1)
    release = threading.Event()

    async def work() -> None:
        disk = open_disk_cache(tmp_path, warnings)
        monkeypatch.setattr(disk._read_database, "get", lambda keys: (release.wait(10), [None] * len(keys))[1])
        async with make_aggregator(Archives(a=["20140210000001"]), disk=disk) as aggregator:
            for number in range(5):
                assert len((await aggregator.find(f"{PAGE}/{number}")).mementos) == 1
            release.set()
            assert disk.written + disk.unwritten <= 5

    asyncio.run(work())
    assert len(warnings) == 1


def overwrite_pages(file: Path) -> None:
    """Overwrite some pages in the middle."""
    data = bytearray(file.read_bytes())
    for begin in range(4096, len(data), 8192):
        data[begin : begin + 100] = b"\xff" * 100
    file.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "other text": lambda file: file.write_bytes(b"this is no database" * 500),
    "half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "scribbled": overwrite_pages,
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_replaced_and_reported(tmp_path: Path, damage: str) -> None:
    """Whenever the damage is noticed, no wrong result is returned."""
    warnings: list[str] = []
    file = tmp_path / "cache" / "answers.sqlite"

    async def work() -> None:
        async with open_disk_cache(tmp_path) as disk:
            for number in range(300):
                disk.put(RoutingOptions(), make_result(f"{PAGE}/{number}", 30))
        DAMAGES[damage](file)
        async with open_disk_cache(tmp_path, warnings) as disk:
            for number in range(300):
                found = await disk.get(f"{PAGE}/{number}", RoutingOptions())
                assert found is None or found == to_cached_result(make_result(f"{PAGE}/{number}", 30))
            for number in range(300):
                disk.put(RoutingOptions(), make_result(f"{PAGE}/{number}", 20))
            await disk.flush()
            assert disk.unwritten == 0
        for number, found in enumerate(await cached_results(tmp_path, *(f"{PAGE}/{number}" for number in range(300)))):
            assert found == to_cached_result(make_result(f"{PAGE}/{number}", 20))

    asyncio.run(work())
    assert len(warnings) == 1
    assert (tmp_path / "cache" / "answers.sqlite.damaged").exists()


@pytest.mark.parametrize("version", [2, None])
def test_foreign_file_is_not_modified(tmp_path: Path, version: int | None) -> None:
    """A later version or another program's file is reported, and nothing is cached on disk."""
    warnings: list[str] = []
    file = tmp_path / "cache" / "answers.sqlite"

    async def work() -> None:
        if version is None:
            file.parent.mkdir()
        else:
            async with open_disk_cache(tmp_path) as disk:
                disk.put(RoutingOptions(), make_result(PAGE))
        database = sqlite3.connect(file)
        database.execute("CREATE TABLE theirs (a)" if version is None else f"PRAGMA user_version = {version}")
        database.close()
        before = file.read_bytes()
        async with open_disk_cache(tmp_path, warnings) as disk:
            assert await disk.get(PAGE, RoutingOptions()) is None
            disk.put(RoutingOptions(), make_result(PAGE))
        assert file.read_bytes() == before

    asyncio.run(work())
    assert len(warnings) == 1


def test_removed_file_is_created_again(tmp_path: Path) -> None:
    """While it is in use."""

    async def work() -> None:
        async with open_disk_cache(tmp_path) as disk:
            disk.put(RoutingOptions(), make_result(f"{PAGE}/1"))
            await disk.flush()
            assert await disk.get(f"{PAGE}/1", RoutingOptions()) is not None
            for path in (tmp_path / "cache").iterdir():
                path.unlink()
            assert await disk.get(f"{PAGE}/1", RoutingOptions()) is None
            disk.put(RoutingOptions(), make_result(f"{PAGE}/2"))
            await disk.flush()
            assert await disk.get(f"{PAGE}/2", RoutingOptions()) is not None

    asyncio.run(work())
