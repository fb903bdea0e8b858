"""What is kept on disk: by whom it is seen, how much it is, and what becomes of it when things go wrong."""

import asyncio
import resource
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.aggregate.answers import an_answer
from tests.aggregate.stubs import PAGE, Archives, aggregator, an_archive
from tests.virtual_clock import VirtualClock
from unlost.aggregate import packing
from unlost.aggregate.disk_cache import DiskCache, scope_of
from unlost.aggregate.found import Found
from unlost.aggregate.report import Report
from unlost.aggregate.wish import Freshness, Wish
from unlost.errors import FailedError, InputError
from unlost.formats.mementos import Memento, Mementos

ROOT = Path(__file__).parents[2]


def a_disk(
    folder: Path, told: list[str] | None = None, clock: VirtualClock | None = None, max_bytes: int = 1 << 28
) -> DiskCache:
    """Return a cache in a folder."""
    tell = ([] if told is None else told).append
    return DiskCache(folder / "cache" / "answers.sqlite", clock or VirtualClock(), max_bytes=max_bytes, tell=tell)


async def kept(folder: Path, *uris: str, clock: VirtualClock | None = None) -> list[Found | None]:
    """Return what another process would see."""
    async with a_disk(folder, clock=clock) as disk:
        return await asyncio.gather(*(disk.get(uri, Wish()) for uri in uris))


def timeless(found: Found) -> Found:
    """Return it as it is kept."""
    reports = tuple(replace(report, duration_ms=0.0) for report in found.reports)
    return replace(found, reports=reports, from_cache=True)


def test_what_is_written_is_read_again_by_others(tmp_path: Path) -> None:
    """Copies, reports, who was passed over, and until when; under its own wish only."""

    async def work() -> None:
        wishes = [Wish(), Wish(frozenset({"b", "a"})), Wish(broadcast=True), Wish(top_k=2)]
        answers = [an_answer(f"{PAGE}/{size}", size) for size in (0, 1, 500)]
        async with a_disk(tmp_path) as disk:
            for number, wish in enumerate(wishes):
                disk.put(wish, replace(answers[2], passed_over=(str(number),)))
            for answer in answers[:2]:
                disk.put(Wish(), answer)
        assert (disk.written, disk.unwritten) == (6, 0)
        assert await kept(tmp_path, f"{PAGE}/0", f"{PAGE}/1") == [timeless(each) for each in answers[:2]]
        async with a_disk(tmp_path) as disk:
            for number, wish in enumerate(wishes):
                found = await disk.get(f"{PAGE}/500", wish)
                assert found == timeless(replace(answers[2], passed_over=(str(number),)))
                assert found is not None
                assert len(found.mementos) == 500
            assert await disk.get(f"{PAGE}/500", Wish(top_k=3)) is None

    asyncio.run(work())
    assert (tmp_path / "cache" / "answers.sqlite").stat().st_mode & 0o777 == 0o600


@settings(max_examples=100)
@given(
    st.text(max_size=50),
    st.lists(st.tuples(st.sampled_from(["20140210000001", "20150210000001"]), st.integers(0, 9)), max_size=8),
    st.text(max_size=400),
    st.sets(st.text(max_size=5), max_size=3),
)
def test_packing_keeps_everything(uri: str, rows: list[tuple[str, int]], message: str, ids: set[str]) -> None:
    """Whatever texts there are, and for no other question."""
    mementos = Mementos(Memento(moment, "a", f"http://a/{number}") for moment, number in rows)
    found = Found(uri, mementos, (Report("a", "routed", "incomplete", 3, 0.0, message),), tuple(ids), 1.0, 2.0)
    data = packing.packed("s", Wish(frozenset(ids)), found)
    again = packing.unpacked("s", uri, Wish(frozenset(ids)), data, 1.0, 2.0)
    assert again == replace(found, from_cache=True)
    for scope, other, wish in [
        ("t", uri, Wish(frozenset(ids))),
        ("s", uri + "a", Wish(frozenset(ids))),
        ("s", uri, Wish()),
    ]:
        with pytest.raises(InputError):
            packing.unpacked(scope, other, wish, data, 1.0, 2.0)


@pytest.mark.parametrize("size", [0, 50])
def test_damaged_entries_are_never_taken_for_whole_ones(size: int) -> None:
    """Whichever bit is wrong, and wherever it is cut."""
    data = packing.packed("", Wish(), an_answer(PAGE, size))
    for place in range(len(data)):
        wrong = data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :]
        for each in (wrong, data[:place]):
            with pytest.raises(InputError):
                packing.unpacked("", PAGE, Wish(), each, 1.0, 2.0)


def test_an_entry_that_is_damaged_is_removed_and_told(tmp_path: Path) -> None:
    """It costs itself."""
    told: list[str] = []

    async def work() -> None:
        async with a_disk(tmp_path) as disk:
            disk.put(Wish(), an_answer(f"{PAGE}/1", 3))
            disk.put(Wish(), an_answer(f"{PAGE}/2", 3))
        file = tmp_path / "cache" / "answers.sqlite"
        with sqlite3.connect(file) as database:
            database.execute("UPDATE answer SET data = zeroblob(9) WHERE number = 1")
        database.close()
        async with a_disk(tmp_path, told) as disk:
            assert await disk.get(f"{PAGE}/1", Wish()) is None
            assert await disk.get(f"{PAGE}/2", Wish()) is not None
            assert await disk.get(f"{PAGE}/1", Wish()) is None
            assert disk.unreadable == 1

    asyncio.run(work())
    assert len(told) == 1


def test_what_is_over_is_not_given(tmp_path: Path) -> None:
    """Though it is still in the file; nor is an older answer written over a newer one."""

    async def work() -> None:
        clock = VirtualClock()
        async with a_disk(tmp_path, clock=clock) as disk:
            disk.put(Wish(), an_answer(PAGE, 5, lifetime=100))
            disk.put(Wish(), an_answer(f"{PAGE}/2", 5))
            await disk.flush()
            disk.put(Wish(), an_answer(f"{PAGE}/2", 1, made=clock.now() - 50))
            await disk.flush()
            newer = await disk.get(f"{PAGE}/2", Wish())
            assert newer is not None
            assert len(newer.mementos) == 5
            clock.advance(101)
            assert await disk.get(PAGE, Wish()) is None

    asyncio.run(work())


def test_the_file_has_its_size(tmp_path: Path) -> None:
    """Several times as much as there is room for; those that are over first go first."""
    most = 1 << 18

    async def work() -> None:
        async with a_disk(tmp_path, max_bytes=most) as disk:
            for number in range(2_000):
                disk.put(Wish(), an_answer(f"{PAGE}/{number}", number % 60, lifetime=1000 + number))
                if number % 200 == 199:
                    await disk.flush()
            assert (disk.written, disk.unwritten) == (2_000, 0)
            entries, taken = disk._writing.total()
            assert 0.7 * most < taken <= most
            assert await disk.get(f"{PAGE}/1999", Wish()) is not None
            assert await disk.get(f"{PAGE}/0", Wish()) is None
        sizes = {path.name: path.stat().st_size for path in (tmp_path / "cache").iterdir()}
        print(f"{entries} entries, {taken} bytes by count, {sizes}")
        assert sum(sizes.values()) < 1.3 * most

    asyncio.run(work())


def test_too_many_at_once_are_counted_and_not_kept(tmp_path: Path) -> None:
    """The queue has its size; nothing waits for the disk."""

    async def work() -> None:
        large = an_answer(PAGE, 20_000)
        async with a_disk(tmp_path) as disk:
            for number in range(20):
                disk.put(Wish(top_k=number), large)
            assert disk.unwritten > 0
            await disk.flush()
            assert disk.written + disk.unwritten == 20
            assert disk.written > 0

    asyncio.run(work())


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Let no file grow beyond a size: for a database that is a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_once(tmp_path: Path) -> None:
    """The memory goes on, nothing is raised, and when there is room again it is used."""
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
                        disk.put(Wish(), an_answer(f"{PAGE}/{number}/{page}", 200, made=clock.now()))
                    await it.find(f"{PAGE}/{number}")
                    await disk.flush()
                    clock.advance(61)
            assert len(told) == 1, told
            assert disk.unwritten > 0
            assert it.kept(f"{PAGE}/4") is not None
            await it.find(f"{PAGE}/after")
            await disk.flush()
        assert (await kept(tmp_path, f"{PAGE}/after", f"{PAGE}/before", clock=clock)).count(None) == 0

    asyncio.run(work())


def test_a_disk_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told once; archives are asked instead."""
    told: list[str] = []
    monkeypatch.setattr("unlost.aggregate.disk_cache._READ_SECONDS", 0.1)
    release = threading.Event()

    async def work() -> None:
        disk = a_disk(tmp_path, told)
        monkeypatch.setattr(disk._reading, "get", lambda keys: (release.wait(10), [None] * len(keys))[1])
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
def test_a_damaged_file_is_set_aside_and_told(tmp_path: Path, damage: str) -> None:
    """Whenever it is noticed, no wrong answer comes out of it, and a new one is begun."""
    told: list[str] = []
    file = tmp_path / "cache" / "answers.sqlite"

    async def work() -> None:
        async with a_disk(tmp_path) as disk:
            for number in range(300):
                disk.put(Wish(), an_answer(f"{PAGE}/{number}", 30))
        DAMAGES[damage](file)
        async with a_disk(tmp_path, told) as disk:
            for number in range(300):
                found = await disk.get(f"{PAGE}/{number}", Wish())
                assert found is None or found == timeless(an_answer(f"{PAGE}/{number}", 30))
            for number in range(300):
                disk.put(Wish(), an_answer(f"{PAGE}/{number}", 20))
            await disk.flush()
            assert disk.unwritten == 0
        for number, found in enumerate(await kept(tmp_path, *(f"{PAGE}/{number}" for number in range(300)))):
            assert found == timeless(an_answer(f"{PAGE}/{number}", 20))

    asyncio.run(work())
    assert len(told) == 1
    assert (tmp_path / "cache" / "answers.sqlite.damaged").exists()


@pytest.mark.parametrize("version", [2, None])
def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path, version: int | None) -> None:
    """One of a later version, or of another program: it is told, and nothing is kept on disk."""
    told: list[str] = []
    file = tmp_path / "cache" / "answers.sqlite"

    async def work() -> None:
        if version is None:
            file.parent.mkdir()
        else:
            async with a_disk(tmp_path) as disk:
                disk.put(Wish(), an_answer(PAGE))
        database = sqlite3.connect(file)
        database.execute("CREATE TABLE theirs (a)" if version is None else f"PRAGMA user_version = {version}")
        database.close()
        before = file.read_bytes()
        async with a_disk(tmp_path, told) as disk:
            assert await disk.get(PAGE, Wish()) is None
            disk.put(Wish(), an_answer(PAGE))
        assert file.read_bytes() == before

    asyncio.run(work())
    assert len(told) == 1


def test_a_file_that_is_removed_is_begun_anew(tmp_path: Path) -> None:
    """Somebody cleans up while it is used."""

    async def work() -> None:
        async with a_disk(tmp_path) as disk:
            disk.put(Wish(), an_answer(f"{PAGE}/1"))
            await disk.flush()
            assert await disk.get(f"{PAGE}/1", Wish()) is not None
            for path in (tmp_path / "cache").iterdir():
                path.unlink()
            assert await disk.get(f"{PAGE}/1", Wish()) is None
            disk.put(Wish(), an_answer(f"{PAGE}/2"))
            await disk.flush()
            assert await disk.get(f"{PAGE}/2", Wish()) is not None

    asyncio.run(work())


def test_several_processes_share_it(tmp_path: Path) -> None:
    """Three write at once, each sees the answers of all, and the count is right."""
    command = [sys.executable, "-m", "tests.aggregate.keeping", str(tmp_path / "cache" / "answers.sqlite")]
    processes = [
        subprocess.Popen([*command, str(seed), "200"], cwd=ROOT, stdout=subprocess.PIPE, text=True) for seed in range(3)
    ]
    for process in processes:
        with process:
            process.communicate()
        assert process.returncode == 0

    async def work() -> None:
        async with a_disk(tmp_path) as disk:
            for seed in range(3):
                for number in range(0, 200, 37):
                    assert await disk.get(f"http://example.com/{seed}/{number}", Wish()) is not None
            entries, taken = disk._writing.total()
            assert entries == 600
        database = sqlite3.connect(tmp_path / "cache" / "answers.sqlite")
        assert database.execute("SELECT sum(size) FROM answer").fetchone() == (taken,)
        database.close()

    asyncio.run(work())


def test_an_aggregator_begins_with_what_was_kept(tmp_path: Path) -> None:
    """After a restart nobody is asked for what is known; what was found while an archive failed is not on the disk."""

    async def work() -> None:
        archives = Archives(a=["20140210000001"], b=[])
        async with aggregator(archives, disk=a_disk(tmp_path)) as it:
            first = await it.find(PAGE)
            archives.behaviours["a"] = []
            await it.find(f"{PAGE}/miss")
            archives.behaviours["a"] = FailedError("broken", "a", "reset")
            await it.find(f"{PAGE}/failed")
        archives.asked.clear()
        async with aggregator(archives, disk=a_disk(tmp_path)) as it:
            again = await it.find(PAGE, freshness=Freshness(only_if_cached=True))
            assert (again.from_cache, again.mementos, again.digest) == (True, first.mementos, first.digest)
            assert (again.made, again.until) == (first.made, first.until)
            assert (await it.find(f"{PAGE}/miss")).from_cache
            assert archives.asked == []
            assert it.kept(PAGE) is not None
            assert not (await it.find(f"{PAGE}/failed")).from_cache
            assert sorted(archives.asked) == ["a", "b"]
            archives.asked.clear()
            assert not (await it.find(PAGE, freshness=Freshness(no_cache=True))).from_cache
            assert sorted(archives.asked) == ["a", "b"]

    asyncio.run(work())


def test_answers_of_other_archives_are_not_used(tmp_path: Path) -> None:
    """The scope changes with the registry."""
    one, two = [an_archive("a")], [an_archive("a"), an_archive("b")]
    assert scope_of(one) == scope_of([an_archive("a", hit_rate=None)])
    assert scope_of(two) == scope_of(reversed(two))
    assert scope_of(one) != scope_of([an_archive("a", replay="http://b.example/{filename}")])
    assert len({scope_of(one), scope_of(two), scope_of([an_archive("a", timemap="http://b.example/")])}) == 3

    async def work() -> None:
        file = tmp_path / "a.sqlite"
        async with DiskCache(file, VirtualClock(), scope_of(one)) as disk:
            disk.put(Wish(), an_answer(PAGE))
        async with DiskCache(file, VirtualClock(), scope_of(two)) as disk:
            assert await disk.get(PAGE, Wish()) is None

    asyncio.run(work())


def test_what_a_wrong_clock_kept_is_replaced(tmp_path: Path) -> None:
    """An answer of next year is never given, and does not keep those of today out until then."""

    async def work() -> None:
        clock = VirtualClock()
        async with a_disk(tmp_path, clock=clock) as disk:
            disk.put(Wish(), an_answer(PAGE, 3, made=clock.now() + 365 * 86_400))
            await disk.flush()
            assert await disk.get(PAGE, Wish()) is None
            disk.put(Wish(), an_answer(PAGE, 1, made=clock.now()))
            await disk.flush()
            found = await disk.get(PAGE, Wish())
            assert found is not None
            assert len(found.mementos) == 1

    asyncio.run(work())
