"""Maps and filters in memory, anew when their file changes."""

import asyncio
import gzip
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.aggregate.maps import MADE, archive, made_up_index, pages, write_filter, write_map
from tests.aggregate.scene import OTHER, PAGE, ROWS, Scene, replace
from tests.virtual_clock import VirtualClock


def test_changed_file_is_reloaded(tmp_path: Path) -> None:
    """An unchanged one is not; holders of the old map can still use it."""
    file = tmp_path / "a.ukvs"
    file.write_text(ROWS)
    scene = Scene(tmp_path, archive("a", mementomap=str(file)), archive("b"))

    async def run() -> None:
        await scene.known.load()
        assert (scene.says(), scene.says(name="b")) == (True, None)
        before = scene.known.holdings()
        await scene.known.refresh()
        assert scene.known.holdings() is before
        scene.clock.advance(60)
        replace(file, OTHER)
        await scene.known.refresh()
        assert scene.says() is False
        assert before["a"].lookup(PAGE).should_query
        changed = scene.clock.now()
        scene.clock.advance(60)
        await scene.known.refresh()
        (found,) = scene.known.statuses()
        assert (found.archive, found.map, found.filters) == ("a", True, 0)
        assert (found.since, found.checked_at) == (changed, scene.clock.now())

    asyncio.run(run())
    assert (scene.told, len(scene.noted)) == ([], 2)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (b"<html><title>502 Bad Gateway</title></html>\n", "expected"),
        (b"org,b)/ 1\ncom,a)/ 1\n", "not sorted"),
        (gzip.compress(ROWS.encode())[:-5], "ends in the middle"),
        (b'!meta {"name": "Nothing"}\n', "without rows"),
        (b"", "empty"),
        (b'!meta {"rules": "mine"}\ncom,a)/ 1\n', "unknown rules"),
        (b"com,example)/ 1\n" * 100, "more than 1000 bytes"),
        (gzip.compress(b"".join(b"com,example)/%06d 1\n" % number for number in range(100))), "more than 1000 bytes"),
        (None, "No such file"),
    ],
)
def test_broken_file_does_not_replace_the_loaded_map(broken: bytes | None, said: str, tmp_path: Path) -> None:
    """It is reported once; without a loaded map, the archive is queried."""
    file = tmp_path / "a.ukvs"
    scene = Scene(tmp_path, archive("a", mementomap=str(file)), max_bytes=1000)
    late = Scene(tmp_path, archive("a", mementomap=str(file)), max_bytes=1000)

    async def run() -> None:
        file.write_text(ROWS)
        await scene.known.load()
        if broken is None:
            file.unlink()
        else:
            replace(file, broken)
        for _ in range(3):
            await scene.known.refresh()
        assert scene.says() is True
        await late.known.load()
        assert late.says() is None
        for each, use in ((scene, "what was read before is used"), (late, "it is asked without")):
            (problem,) = each.problems()
            assert said in problem
            (told,) = each.told
            assert (said in told, use in told, told.startswith("a: ")) == (True, True, True)
        replace(file, OTHER)
        for each in (scene, late):
            await each.known.refresh()
            assert (each.says(), each.problems()) == (False, ())

    asyncio.run(run())


def test_map_modified_during_loading_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partial map looks complete and denies the missing part."""
    from unlost.aggregate import HoldingsReader

    file = tmp_path / "a.ukvs"
    file.write_text(ROWS)
    scene = Scene(tmp_path, archive("a", mementomap=str(file)))
    read = HoldingsReader.read

    def slow(self: HoldingsReader, kind: Any, path: Path) -> Any:  # noqa: ANN401  as there
        found = read(self, kind, path)
        with file.open("a") as opened:
            opened.write("org,more)/ 1\n")
        return found

    async def run() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(HoldingsReader, "read", slow)
            await scene.known.load()
        assert scene.says() is None
        assert "changes while it is read" in scene.problems()[0]
        await scene.known.refresh()
        assert (scene.says("http://more.org/"), scene.problems()) == (True, ())

    asyncio.run(run())


def test_incomplete_sets_of_files_are_not_used(tmp_path: Path) -> None:
    """With a filter missing, only the map is used; without the map, nothing is."""
    file = tmp_path / "m.ukvs"
    file.write_text(ROWS)
    one = pages(tmp_path, PAGE, name="one").path
    two = tmp_path / "two.filter"
    filters = (one, str(two))
    scene = Scene(tmp_path, archive("a", mementomap=str(file), filters=filters), archive("f", filters=filters))
    scene.clock.advance(1_709_251_200 - scene.clock.now())  # the day on which the filters are made
    new = "http://example.com/new"

    async def run() -> None:
        await scene.known.load()
        assert (scene.says(new), scene.says("http://example.org/"), scene.says(name="f")) == (True, False, None)
        assert [(each.map, each.filters) for each in scene.known.statuses()] == [(True, 0), (False, 0)]
        pages(tmp_path, "http://example.com/b", name="two")
        await scene.known.refresh()
        for name in "af":
            both = scene.says(name=name), scene.says("http://example.com/b", name), scene.says(new, name)
            assert both == (True, True, False)
        assert [(each.map, each.filters) for each in scene.known.statuses()] == [(True, 2), (False, 2)]
        file.unlink()
        gone = Scene(tmp_path, archive("a", mementomap=str(file), filters=filters))
        await gone.known.load()
        assert gone.says(new) is None

    asyncio.run(run())


def test_maximum_filter_age_is_configurable(tmp_path: Path) -> None:
    """Measured with the given clock."""
    from datetime import timedelta

    file = tmp_path / "m.ukvs"
    file.write_text(ROWS)
    filters = (pages(tmp_path, PAGE, made=MADE).path,)
    scene = Scene(
        tmp_path,
        archive("a", mementomap=str(file), filters=filters),
        max_age=timedelta(days=3),
        clock=VirtualClock(1_709_251_200),
    )
    asyncio.run(scene.known.load())
    assert scene.says("http://example.com/new") is False
    scene.clock.advance(4 * 86_400)
    assert scene.says("http://example.com/new") is True


def test_files_with_different_rules_are_not_combined(tmp_path: Path) -> None:
    """The old ones stay in use until all have the same rules."""
    from unlost.mementomap import FilterOptions, build_filter

    file, pages_, urls = tmp_path / "m.ukvs", tmp_path / "p.filter", tmp_path / "urls"
    file.write_text(ROWS)
    urls.write_text(PAGE + "\n")
    build_filter([urls], pages_, FilterOptions(kind="urls"))
    scene = Scene(tmp_path, archive("a", mementomap=str(file), filters=(str(pages_),)))

    async def run() -> None:
        await scene.known.load()
        replace(file, '!meta {"rules": "papers"}\ncom,example)/* 2\n')
        await scene.known.refresh()
        assert scene.known.holdings()["a"].rules == "wayback"
        assert "other rules" in scene.problems()[0]
        build_filter([urls], pages_, FilterOptions(kind="urls", rules="papers"))
        await scene.known.refresh()
        assert (scene.known.holdings()["a"].rules, scene.problems()) == ("papers", ())

    asyncio.run(run())


def test_damaged_map_is_dropped_and_reloaded(tmp_path: Path) -> None:
    """It is reported once."""
    file = tmp_path / "a.ukvs"
    file.write_text(ROWS)
    scene = Scene(tmp_path, archive("a", mementomap=str(file)))

    async def run() -> None:
        await scene.known.load()
        for _ in range(2):
            scene.known.mark_damaged("a", "a.ukvs: not sorted")
        assert (scene.says(), scene.problems(), len(scene.told)) == (None, ("a.ukvs: not sorted",), 1)
        await scene.known.refresh()
        assert (scene.says(), scene.problems()) == (True, ())

    asyncio.run(run())


def test_files_of_disabled_archives_are_not_loaded(tmp_path: Path) -> None:
    """They are only asked if they are named, and then whatever their maps say."""
    scene = Scene(tmp_path, archive("a", mementomap=str(tmp_path / "none"), enabled=False))
    asyncio.run(scene.known.refresh())
    assert (scene.known.statuses(), scene.told) == ((), [])


def add_row(index: Path, row: str) -> Path:
    """Add a row to a sorted index, and return the index."""
    index.write_text("\n".join(sorted([*index.read_text().splitlines(), row])) + "\n")
    return index


def test_lookups_during_reload_are_consistent(tmp_path: Path) -> None:
    """In threads, on the old map or the new one: a page in both is never denied."""
    indexes = [tmp_path / f"{number}.cdxj" for number in range(2)]
    held = [set(made_up_index(index, 2_000, number)) for number, index in enumerate(indexes)]
    common = "http://always.example/"
    row = f'example,always)/ 20140101000000 {{"url": "{common}"}}'
    versions = [write_map(add_row(index, row), tmp_path / f"{index.stem}.ukvs") for index in indexes]
    sums = [write_filter(index, tmp_path / f"{index.stem}.filter") for index in indexes]
    data = [path.read_text() for path in versions]
    file, pages_ = tmp_path / "m.ukvs", tmp_path / "m.filter"
    file.write_text(data[0])
    pages_.write_bytes(sums[0].read_bytes())
    scene = Scene(tmp_path, archive("a", mementomap=str(file)), archive("f", filters=(str(pages_),)))
    stop, wrong, count = Event(), [], [0]
    some = [sorted(each)[:50] for each in held]

    def look() -> None:
        while not stop.is_set():
            holdings = scene.known.holdings()["a"]
            if not holdings.lookup(common).should_query:
                wrong.append(common)
            # Of one version or the other, whole.
            if not any(all(holdings.lookup(page).should_query for page in pages) for pages in some):
                wrong.append("half of a map")
            filtered = scene.known.holdings()["f"]
            if not any(all(filtered.lookup(page).should_query for page in pages) for pages in some):
                wrong.append("half of a filter")
            count[0] += 1

    async def run() -> None:
        await scene.known.load()
        threads = [Thread(target=look) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for number in range(1, 21):
                replace(file, data[number % 2])
                replace(pages_, sums[number % 2].read_bytes())
                await scene.known.refresh()
                assert len(scene.noted) == 2 + 2 * number
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    asyncio.run(run())
    assert (wrong, scene.told) == ([], [])
    assert count[0] > 20


def test_loading_does_not_block_the_event_loop(tmp_path: Path) -> None:
    """The event loop turns while a map is read, many times."""
    file = tmp_path / "a.ukvs"
    file.write_text("".join(f"com,a{number:07})/ 1\n" for number in range(400_000)))
    scene = Scene(tmp_path, archive("a", mementomap=str(file)))

    async def run() -> int:
        reading = asyncio.create_task(scene.known.load())
        turns = 0
        while not reading.done():
            await asyncio.sleep(0.001)
            turns += 1
        await reading
        return turns

    turns = asyncio.run(run())
    assert scene.says("http://a0000007.com/") is True
    assert turns > 10


def test_watch_refreshes_periodically(tmp_path: Path) -> None:
    """At once, and after each interval, until cancelled; failures do not stop it."""
    file = tmp_path / "a.ukvs"
    scene = Scene(tmp_path, archive("a", mementomap=str(file)))

    async def run() -> None:
        watching = asyncio.create_task(scene.known.watch(scene.clock, 600))
        for number in range(6):
            if number == 2:
                file.write_text(ROWS)
            while len(scene.clock.slept) < number + 1:
                await asyncio.sleep(0)
            if number == 4:
                assert scene.says() is True
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
        assert set(scene.clock.slept) == {600}

    asyncio.run(run())


def test_old_map_is_used_with_a_new_filter(tmp_path: Path) -> None:
    """The old map answers with the new filter."""
    file = tmp_path / "m.ukvs"
    file.write_text(ROWS)
    subject = archive("a", mementomap=str(file), filters=(pages(tmp_path, PAGE).path,))
    scene = Scene(tmp_path, subject, clock=VirtualClock(1_709_251_200))

    async def run() -> None:
        await scene.known.load()
        assert scene.says("http://example.com/new") is False
        replace(file, b"rubbish\n")
        pages(tmp_path, PAGE, "http://example.com/new")
        await scene.known.refresh()
        assert (scene.says("http://example.com/new"), scene.says("http://example.com/other")) == (True, False)
        assert [(each.map, each.filters) for each in scene.known.statuses()] == [(True, 1)]

    asyncio.run(run())
