"""Maps and filters in memory, reloaded when their files change."""

import asyncio
import gzip
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.aggregate.holdings_setup import OTHER, PAGE, ROWS, HoldingsSetup, replace_file
from tests.aggregate.maps import BUILT_AT, archive, filter_of_pages, synthetic_index, write_filter, write_map
from tests.virtual_clock import VirtualClock


def test_changed_file_is_reloaded(tmp_path: Path) -> None:
    """An unchanged one is not; holders of the old map can still use it."""
    file = tmp_path / "a.ukvs"
    file.write_text(ROWS)
    setup = HoldingsSetup(tmp_path, archive("a", mementomap=str(file)), archive("b"))

    async def run() -> None:
        await setup.store.load()
        assert (setup.should_query(), setup.should_query(name="b")) == (True, None)
        before = setup.store.holdings()
        await setup.store.refresh()
        assert setup.store.holdings() is before
        setup.clock.advance(60)
        replace_file(file, OTHER)
        await setup.store.refresh()
        assert setup.should_query() is False
        assert before["a"].lookup(PAGE).should_query
        changed = setup.clock.now()
        setup.clock.advance(60)
        await setup.store.refresh()
        (found,) = setup.store.statuses()
        assert (found.archive, found.map, found.filters) == ("a", True, 0)
        assert (found.since, found.checked_at) == (changed, setup.clock.now())

    asyncio.run(run())
    assert (setup.warnings, len(setup.infos)) == ([], 2)


@pytest.mark.parametrize(
    ("broken", "reason"),
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
def test_broken_file_does_not_replace_the_loaded_map(broken: bytes | None, reason: str, tmp_path: Path) -> None:
    """It is reported once; without a loaded map, the archive is queried."""
    file = tmp_path / "a.ukvs"
    setup = HoldingsSetup(tmp_path, archive("a", mementomap=str(file)), max_bytes=1000)
    late = HoldingsSetup(tmp_path, archive("a", mementomap=str(file)), max_bytes=1000)

    async def run() -> None:
        file.write_text(ROWS)
        await setup.store.load()
        if broken is None:
            file.unlink()
        else:
            replace_file(file, broken)
        for _ in range(3):
            await setup.store.refresh()
        assert setup.should_query() is True
        await late.store.load()
        assert late.should_query() is None
        for each, use in ((setup, "what was read before is used"), (late, "it is asked without")):
            (problem,) = each.problems()
            assert reason in problem
            (warning,) = each.warnings
            assert (reason in warning, use in warning, warning.startswith("a: ")) == (True, True, True)
        replace_file(file, OTHER)
        for each in (setup, late):
            await each.store.refresh()
            assert (each.should_query(), each.problems()) == (False, ())

    asyncio.run(run())


def test_map_modified_during_loading_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partial map looks complete and denies the missing part."""
    from unlost.aggregate import HoldingsReader

    file = tmp_path / "a.ukvs"
    file.write_text(ROWS)
    setup = HoldingsSetup(tmp_path, archive("a", mementomap=str(file)))
    read = HoldingsReader.read

    def slow(self: HoldingsReader, kind: Any, path: Path) -> Any:  # noqa: ANN401  as there
        found = read(self, kind, path)
        with file.open("a") as opened:
            opened.write("org,more)/ 1\n")
        return found

    async def run() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(HoldingsReader, "read", slow)
            await setup.store.load()
        assert setup.should_query() is None
        assert "changes while it is read" in setup.problems()[0]
        await setup.store.refresh()
        assert (setup.should_query("http://more.org/"), setup.problems()) == (True, ())

    asyncio.run(run())


def test_incomplete_sets_of_files_are_not_used(tmp_path: Path) -> None:
    """With a filter missing, only the map is used; without the map, nothing is."""
    file = tmp_path / "m.ukvs"
    file.write_text(ROWS)
    one = filter_of_pages(tmp_path, PAGE, name="one").path
    two = tmp_path / "two.filter"
    filters = (one, str(two))
    setup = HoldingsSetup(tmp_path, archive("a", mementomap=str(file), filters=filters), archive("f", filters=filters))
    setup.clock.advance(1_709_251_200 - setup.clock.now())  # the day on which the filters are made
    new = "http://example.com/new"

    async def run() -> None:
        await setup.store.load()
        assert (setup.should_query(new), setup.should_query("http://example.org/"), setup.should_query(name="f")) == (
            True,
            False,
            None,
        )
        assert [(each.map, each.filters) for each in setup.store.statuses()] == [(True, 0), (False, 0)]
        filter_of_pages(tmp_path, "http://example.com/b", name="two")
        await setup.store.refresh()
        for name in "af":
            both = (
                setup.should_query(name=name),
                setup.should_query("http://example.com/b", name),
                setup.should_query(new, name),
            )
            assert both == (True, True, False)
        assert [(each.map, each.filters) for each in setup.store.statuses()] == [(True, 2), (False, 2)]
        file.unlink()
        gone = HoldingsSetup(tmp_path, archive("a", mementomap=str(file), filters=filters))
        await gone.store.load()
        assert gone.should_query(new) is None

    asyncio.run(run())


def test_maximum_filter_age_is_configurable(tmp_path: Path) -> None:
    """Measured with the given clock."""
    from datetime import timedelta

    file = tmp_path / "m.ukvs"
    file.write_text(ROWS)
    filters = (filter_of_pages(tmp_path, PAGE, built_at=BUILT_AT).path,)
    setup = HoldingsSetup(
        tmp_path,
        archive("a", mementomap=str(file), filters=filters),
        max_age=timedelta(days=3),
        clock=VirtualClock(1_709_251_200),
    )
    asyncio.run(setup.store.load())
    assert setup.should_query("http://example.com/new") is False
    setup.clock.advance(4 * 86_400)
    assert setup.should_query("http://example.com/new") is True


def test_files_with_different_rules_are_not_combined(tmp_path: Path) -> None:
    """The old ones stay in use until all have the same rules."""
    from unlost.mementomap import FilterOptions, build_filter

    file, pages_, urls = tmp_path / "m.ukvs", tmp_path / "p.filter", tmp_path / "urls"
    file.write_text(ROWS)
    urls.write_text(PAGE + "\n")
    build_filter([urls], pages_, FilterOptions(kind="urls"))
    setup = HoldingsSetup(tmp_path, archive("a", mementomap=str(file), filters=(str(pages_),)))

    async def run() -> None:
        await setup.store.load()
        replace_file(file, '!meta {"rules": "papers"}\ncom,example)/* 2\n')
        await setup.store.refresh()
        assert setup.store.holdings()["a"].rules == "wayback"
        assert "other rules" in setup.problems()[0]
        build_filter([urls], pages_, FilterOptions(kind="urls", rules="papers"))
        await setup.store.refresh()
        assert (setup.store.holdings()["a"].rules, setup.problems()) == ("papers", ())

    asyncio.run(run())


def test_damaged_map_is_dropped_and_reloaded(tmp_path: Path) -> None:
    """It is reported once."""
    file = tmp_path / "a.ukvs"
    file.write_text(ROWS)
    setup = HoldingsSetup(tmp_path, archive("a", mementomap=str(file)))

    async def run() -> None:
        await setup.store.load()
        for _ in range(2):
            setup.store.mark_damaged("a", "a.ukvs: not sorted")
        assert (setup.should_query(), setup.problems(), len(setup.warnings)) == (None, ("a.ukvs: not sorted",), 1)
        await setup.store.refresh()
        assert (setup.should_query(), setup.problems()) == (True, ())

    asyncio.run(run())


def test_files_of_disabled_archives_are_not_loaded(tmp_path: Path) -> None:
    """They are queried only if requested, regardless of their maps."""
    setup = HoldingsSetup(tmp_path, archive("a", mementomap=str(tmp_path / "none"), enabled=False))
    asyncio.run(setup.store.refresh())
    assert (setup.store.statuses(), setup.warnings) == ((), [])


def add_row(index: Path, row: str) -> Path:
    """Add a row to a sorted index, and return the index."""
    index.write_text("\n".join(sorted([*index.read_text().splitlines(), row])) + "\n")
    return index


def test_lookups_during_reload_are_consistent(tmp_path: Path) -> None:
    """In threads, on the old map or the new one: a page in both is never denied."""
    indexes = [tmp_path / f"{number}.cdxj" for number in range(2)]
    urls = [set(synthetic_index(index, 2_000, number)) for number, index in enumerate(indexes)]
    common = "http://always.example/"
    row = f'example,always)/ 20140101000000 {{"url": "{common}"}}'
    versions = [write_map(add_row(index, row), tmp_path / f"{index.stem}.ukvs") for index in indexes]
    sums = [write_filter(index, tmp_path / f"{index.stem}.filter") for index in indexes]
    data = [path.read_text() for path in versions]
    file, pages_ = tmp_path / "m.ukvs", tmp_path / "m.filter"
    file.write_text(data[0])
    pages_.write_bytes(sums[0].read_bytes())
    setup = HoldingsSetup(tmp_path, archive("a", mementomap=str(file)), archive("f", filters=(str(pages_),)))
    stop, wrong, count = Event(), [], [0]
    some = [sorted(each)[:50] for each in urls]

    def look_up() -> None:
        while not stop.is_set():
            holdings = setup.store.holdings()["a"]
            if not holdings.lookup(common).should_query:
                wrong.append(common)
            # Of one version or the other, whole.
            if not any(all(holdings.lookup(page).should_query for page in filter_of_pages) for filter_of_pages in some):
                wrong.append("half of a map")
            filtered = setup.store.holdings()["f"]
            if not any(all(filtered.lookup(page).should_query for page in filter_of_pages) for filter_of_pages in some):
                wrong.append("half of a filter")
            count[0] += 1

    async def run() -> None:
        await setup.store.load()
        threads = [Thread(target=look_up) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for number in range(1, 21):
                replace_file(file, data[number % 2])
                replace_file(pages_, sums[number % 2].read_bytes())
                await setup.store.refresh()
                assert len(setup.infos) == 2 + 2 * number
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    asyncio.run(run())
    assert (wrong, setup.warnings) == ([], [])
    assert count[0] > 20


def test_loading_does_not_block_the_event_loop(tmp_path: Path) -> None:
    """It iterates many times while a map is read."""
    file = tmp_path / "a.ukvs"
    file.write_text("".join(f"com,a{number:07})/ 1\n" for number in range(400_000)))
    setup = HoldingsSetup(tmp_path, archive("a", mementomap=str(file)))

    async def run() -> int:
        reading = asyncio.create_task(setup.store.load())
        turns = 0
        while not reading.done():
            await asyncio.sleep(0.001)
            turns += 1
        await reading
        return turns

    turns = asyncio.run(run())
    assert setup.should_query("http://a0000007.com/") is True
    assert turns > 10


def test_watch_refreshes_periodically(tmp_path: Path) -> None:
    """At once, and after each interval, until cancelled; failures do not stop it."""
    file = tmp_path / "a.ukvs"
    setup = HoldingsSetup(tmp_path, archive("a", mementomap=str(file)))

    async def run() -> None:
        watching = asyncio.create_task(setup.store.watch(setup.clock, 600))
        for number in range(6):
            if number == 2:
                file.write_text(ROWS)
            while len(setup.clock.slept) < number + 1:
                await asyncio.sleep(0)
            if number == 4:
                assert setup.should_query() is True
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
        assert set(setup.clock.slept) == {600}

    asyncio.run(run())


def test_old_map_is_used_with_a_new_filter(tmp_path: Path) -> None:
    """If the new map is invalid."""
    file = tmp_path / "m.ukvs"
    file.write_text(ROWS)
    subject = archive("a", mementomap=str(file), filters=(filter_of_pages(tmp_path, PAGE).path,))
    setup = HoldingsSetup(tmp_path, subject, clock=VirtualClock(1_709_251_200))

    async def run() -> None:
        await setup.store.load()
        assert setup.should_query("http://example.com/new") is False
        replace_file(file, b"rubbish\n")
        filter_of_pages(tmp_path, PAGE, "http://example.com/new")
        await setup.store.refresh()
        assert (setup.should_query("http://example.com/new"), setup.should_query("http://example.com/other")) == (
            True,
            False,
        )
        assert [(each.map, each.filters) for each in setup.store.statuses()] == [(True, 1)]

    asyncio.run(run())
