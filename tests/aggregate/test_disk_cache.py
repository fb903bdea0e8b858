"""The disk cache: sharing between processes, size and lifetimes."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.aggregate.disk_caches import cached_results, open_disk_cache, to_cached_result
from tests.aggregate.results import make_result
from tests.aggregate.stubs import PAGE, Archives, make_aggregator, make_archive, until
from tests.virtual_clock import VirtualClock
from unlost.aggregate import (
    DISK_RECHECK_SECONDS,
    AggregateResult,
    ArchiveReport,
    CacheControl,
    CacheDatabase,
    CacheRow,
    ConcurrencyLimits,
    DiskCache,
    RoutingOptions,
    cache_scope,
    disk_cache,
)
from unlost.errors import BusyError, FailedError, InputError
from unlost.http import HttpRequest
from unlost.memento import Mementos, MementoTuple

ROOT = Path(__file__).parents[2]


def test_written_result_is_read_by_another_process(tmp_path: Path) -> None:
    """With mementos, reports, passed-over archives and expiry; only for the same options."""

    async def work() -> None:
        wishes = [
            RoutingOptions(),
            RoutingOptions(frozenset({"b", "a"})),
            RoutingOptions(broadcast=True),
            RoutingOptions(top_k=2),
        ]
        responses = [make_result(f"{PAGE}/{size}", size) for size in (0, 1, 500)]
        async with open_disk_cache(tmp_path) as disk:
            for number, options in enumerate(wishes):
                disk.put(options, replace(responses[2], passed_over=(str(number),)))
            for response in responses[:2]:
                disk.put(RoutingOptions(), response)
        assert (disk.written, disk.unwritten) == (6, 0)
        assert await cached_results(tmp_path, f"{PAGE}/0", f"{PAGE}/1") == [
            to_cached_result(each) for each in responses[:2]
        ]
        async with open_disk_cache(tmp_path) as disk:
            for number, options in enumerate(wishes):
                found = await disk.get(f"{PAGE}/500", options)
                assert found == to_cached_result(replace(responses[2], passed_over=(str(number),)))
                assert found is not None
                assert len(found.mementos) == 500
            assert await disk.get(f"{PAGE}/500", RoutingOptions(top_k=3)) is None

    asyncio.run(work())
    assert (tmp_path / "cache" / "answers.sqlite").stat().st_mode & 0o777 == 0o600


@settings(max_examples=100)
@given(
    st.text(max_size=50),
    st.lists(st.tuples(st.sampled_from(["20140210000001", "20150210000001"]), st.integers(0, 9)), max_size=8),
    st.text(max_size=400),
    st.sets(st.text(max_size=5), max_size=3),
)
def test_serialized_result_round_trips(uri: str, rows: list[tuple[str, int]], message: str, ids: set[str]) -> None:
    """For any text, and for no other request."""
    mementos = Mementos(MementoTuple(timestamp, "a", f"http://a/{number}") for timestamp, number in rows)
    found = AggregateResult(
        uri, mementos, (ArchiveReport("a", "routed", "incomplete", 3, 0.0, message),), tuple(ids), 1.0, 2.0
    )
    data = disk_cache.serialize_result("s", RoutingOptions(frozenset(ids)), found)
    again = disk_cache.deserialize_result("s", uri, RoutingOptions(frozenset(ids)), data, 1.0, 2.0)
    assert again == replace(found, from_cache=True)
    for scope, other, options in [
        ("t", uri, RoutingOptions(frozenset(ids))),
        ("s", uri + "a", RoutingOptions(frozenset(ids))),
        ("s", uri, RoutingOptions()),
    ]:
        with pytest.raises(InputError):
            disk_cache.deserialize_result(scope, other, options, data, 1.0, 2.0)


def test_stale_result_is_not_returned(tmp_path: Path) -> None:
    """Although it is in the file; an older result does not replace a newer one."""

    async def work() -> None:
        clock = VirtualClock()
        async with open_disk_cache(tmp_path, clock=clock) as disk:
            disk.put(RoutingOptions(), make_result(PAGE, 5, lifetime=100))
            disk.put(RoutingOptions(), make_result(f"{PAGE}/2", 5))
            await disk.flush()
            disk.put(RoutingOptions(), make_result(f"{PAGE}/2", 1, made=clock.now() - 50))
            await disk.flush()
            newer = await disk.get(f"{PAGE}/2", RoutingOptions())
            assert newer is not None
            assert len(newer.mementos) == 5
            clock.advance(101)
            assert await disk.get(PAGE, RoutingOptions()) is None

    asyncio.run(work())


def test_file_size_is_limited(tmp_path: Path) -> None:
    """With several times the limit written; those that expire first are evicted first."""
    max_active = 1 << 18

    async def work() -> None:
        async with open_disk_cache(tmp_path, max_bytes=max_active) as disk:
            for number in range(2_000):
                disk.put(RoutingOptions(), make_result(f"{PAGE}/{number}", number % 60, lifetime=1000 + number))
                if number % 200 == 199:
                    await disk.flush()
            assert (disk.written, disk.unwritten) == (2_000, 0)
            entries, taken = disk._write_database.total()
            assert 0.7 * max_active < taken <= max_active
            assert await disk.get(f"{PAGE}/1999", RoutingOptions()) is not None
            assert await disk.get(f"{PAGE}/0", RoutingOptions()) is None
        sizes = {path.name: path.stat().st_size for path in (tmp_path / "cache").iterdir()}
        print(f"{entries} entries, {taken} bytes by count, {sizes}")
        assert sum(sizes.values()) < 1.3 * max_active

    asyncio.run(work())


def test_results_beyond_the_queue_are_dropped_and_counted(tmp_path: Path) -> None:
    """Nothing waits for the disk."""

    async def work() -> None:
        large = make_result(PAGE, 20_000)
        async with open_disk_cache(tmp_path) as disk:
            for number in range(100):
                disk.put(RoutingOptions(top_k=number), large)
            assert disk.unwritten > 0
            await disk.flush()
            assert disk.written + disk.unwritten == 100
            assert disk.written > 0

    asyncio.run(work())


def test_processes_share_the_file(tmp_path: Path) -> None:
    """Three write at once, each reads the results of all, and the count is right."""
    command = [sys.executable, "-m", "tests.aggregate.write_until_killed", str(tmp_path / "cache" / "answers.sqlite")]
    processes = [
        subprocess.Popen([*command, str(seed), "200"], cwd=ROOT, stdout=subprocess.PIPE, text=True) for seed in range(3)
    ]
    for process in processes:
        with process:
            process.communicate()
    assert [process.returncode for process in processes] == [0, 0, 0]

    async def work() -> None:
        async with open_disk_cache(tmp_path) as disk:
            for seed in range(3):
                for number in range(0, 200, 37):
                    assert await disk.get(f"http://example.com/{seed}/{number}", RoutingOptions()) is not None
            entries, taken = disk._write_database.total()
            assert entries == 600
        database = sqlite3.connect(tmp_path / "cache" / "answers.sqlite")
        assert database.execute("SELECT sum(size) FROM answer").fetchone() == (taken,)
        database.close()

    asyncio.run(work())


def test_new_files_opened_at_the_same_moment_are_never_locked(tmp_path: Path) -> None:
    """Several connections create one file, write to it and close it: none fails, and every row is stored."""
    connections, files = 6, 50
    barrier = threading.Barrier(connections)

    def write(connection: int) -> None:
        for number in range(files):
            barrier.wait(timeout=60)
            file = CacheDatabase(tmp_path / f"{number}.sqlite", 1 << 20, print)
            file.put([CacheRow(b"%d" % connection, 1.0, 2.0, b"data")])
            file.close()

    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(write, range(connections)))
    for number in range(files):
        file = CacheDatabase(tmp_path / f"{number}.sqlite", 1 << 20, print)
        assert file.total()[0] == connections
        file.close()


def test_restarted_aggregator_uses_the_disk_cache(tmp_path: Path) -> None:
    """No archive is queried for cached pages; partial results are not on disk."""

    async def work() -> None:
        archives = Archives(a=["20140210000001"], b=[])
        async with make_aggregator(archives, disk=open_disk_cache(tmp_path)) as aggregator:
            first = await aggregator.find(PAGE)
            archives.behaviours["a"] = []
            await aggregator.find(f"{PAGE}/miss")
            archives.behaviours["a"] = FailedError("broken", "a", "reset")
            await aggregator.find(f"{PAGE}/failed")
        archives.queried.clear()
        async with make_aggregator(archives, disk=open_disk_cache(tmp_path)) as aggregator:
            again = await aggregator.find(PAGE, cache_control=CacheControl(only_if_cached=True))
            assert (again.from_cache, again.mementos, again.digest) == (True, first.mementos, first.digest)
            assert (again.created_at, again.expires_at) == (first.created_at, first.expires_at)
            assert (await aggregator.find(f"{PAGE}/miss")).from_cache
            assert archives.queried == []
            assert aggregator.get_cached(PAGE) is not None
            assert not (await aggregator.find(f"{PAGE}/failed")).from_cache
            assert sorted(archives.queried) == ["a", "b"]
            archives.queried.clear()
            assert not (await aggregator.find(PAGE, cache_control=CacheControl(no_cache=True))).from_cache
            assert sorted(archives.queried) == ["a", "b"]

    asyncio.run(work())


def test_newer_result_of_another_process_is_used(tmp_path: Path) -> None:
    """The disk is checked once a minute, and no archive is queried if there is nothing newer."""

    async def work() -> None:
        clock, archives = VirtualClock(), Archives(a=["20140210000001"])
        disks = [open_disk_cache(tmp_path, clock=clock) for _ in range(2)]
        async with (
            make_aggregator(archives, clock, disk=disks[0]) as one,
            make_aggregator(archives, clock, disk=disks[1]) as other,
        ):
            for page in (PAGE, f"{PAGE}/alone"):
                await one.find(page)
            await disks[0].flush()
            assert (await other.find(PAGE)).from_cache
            clock.advance(1)
            archives.behaviours["a"] = ["20140210000001", "20150210000001"]
            assert len((await one.find(PAGE, cache_control=CacheControl(no_cache=True))).mementos) == 2
            await disks[0].flush()
            disks[0]._write_database.remove([disk_cache.cache_key("", f"{PAGE}/alone", RoutingOptions())])
            archives.queried.clear()
            clock.advance(DISK_RECHECK_SECONDS - 2)
            assert len((await other.find(PAGE)).mementos) == 1
            clock.advance(1)
            assert other.get_cached(PAGE) is None
            found = await other.find(PAGE)
            assert (len(found.mementos), found.from_cache) == (2, True)
            assert other.get_cached(PAGE) is not None
            clock.advance(DISK_RECHECK_SECONDS)
            assert one.get_cached(f"{PAGE}/alone") is None
            assert (await one.find(f"{PAGE}/alone")).from_cache
            assert one.get_cached(f"{PAGE}/alone") is not None
            assert archives.queried == []

    asyncio.run(work())


def test_busy_aggregator_serves_results_from_memory(tmp_path: Path) -> None:
    """Without checking the disk."""

    async def work() -> None:
        clock, go = VirtualClock(), asyncio.Event()
        archives = Archives(a=["20140210000001"])

        async def slow(_: HttpRequest) -> list[str]:
            await go.wait()
            return []

        bounds = ConcurrencyLimits(max_active=1, max_waiting=0)
        async with make_aggregator(
            archives, clock, disk=open_disk_cache(tmp_path, clock=clock), limits=bounds
        ) as aggregator:
            await aggregator.find(PAGE)
            clock.advance(DISK_RECHECK_SECONDS)
            archives.behaviours["a"] = slow
            other = asyncio.create_task(aggregator.find(f"{PAGE}/other"))
            await until(lambda: archives.active == 1)
            assert aggregator.get_cached(PAGE) is None
            assert (await aggregator.find(PAGE)).from_cache
            with pytest.raises(BusyError):
                await aggregator.find(PAGE, cache_control=CacheControl(no_cache=True))
            go.set()
            await other

    asyncio.run(work())


def test_partial_result_on_disk_does_not_replace_a_complete_one(tmp_path: Path) -> None:
    """A complete result in memory is served for its lifetime."""

    async def work() -> None:
        clock, archives = VirtualClock(), Archives(a=["20140210000001"])
        disk = open_disk_cache(tmp_path, clock=clock)
        async with make_aggregator(archives, clock, disk=disk) as aggregator:
            whole = await aggregator.find(PAGE)
            clock.advance(DISK_RECHECK_SECONDS)
            failed = ArchiveReport("a", "broadcast", "timeout", 0, 1.0)
            disk.put(RoutingOptions(), replace(whole, reports=(failed,), mementos=Mementos([]), created_at=clock.now()))
            await disk.flush()
            for _ in range(2):
                assert (await aggregator.find(PAGE)).mementos == whole.mementos
                assert aggregator.get_cached(PAGE) is not None

    asyncio.run(work())


def test_results_of_another_registry_are_not_used(tmp_path: Path) -> None:
    """The scope changes with the registry."""
    one, two = [make_archive("a")], [make_archive("a"), make_archive("b")]
    assert cache_scope(one) == cache_scope([make_archive("a", hit_rate=None)])
    assert cache_scope(two) == cache_scope(reversed(two))
    assert cache_scope(one) != cache_scope([make_archive("a", replay="http://b.example/{filename}")])
    assert len({cache_scope(one), cache_scope(two), cache_scope([make_archive("a", timemap="http://b.example/")])}) == 3

    async def work() -> None:
        file = tmp_path / "a.sqlite"
        async with DiskCache(file, VirtualClock(), cache_scope(one)) as disk:
            disk.put(RoutingOptions(), make_result(PAGE))
        async with DiskCache(file, VirtualClock(), cache_scope(two)) as disk:
            assert await disk.get(PAGE, RoutingOptions()) is None

    asyncio.run(work())


def test_result_dated_in_the_future_is_replaced(tmp_path: Path) -> None:
    """It is never returned, and does not prevent current results from being stored."""

    async def work() -> None:
        clock = VirtualClock()
        async with open_disk_cache(tmp_path, clock=clock) as disk:
            disk.put(RoutingOptions(), make_result(PAGE, 3, made=clock.now() + 365 * 86_400))
            await disk.flush()
            assert await disk.get(PAGE, RoutingOptions()) is None
            disk.put(RoutingOptions(), make_result(PAGE, 1, made=clock.now()))
            await disk.flush()
            found = await disk.get(PAGE, RoutingOptions())
            assert found is not None
            assert len(found.mementos) == 1

    asyncio.run(work())
