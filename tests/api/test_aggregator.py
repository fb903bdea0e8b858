"""Tests of `unlost.Aggregator` and `unlost.AsyncAggregator`."""

import asyncio
import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

import unlost
from unlost.errors import DateError, UriError, UsageError
from unlost.testing import FakeArchive, Fault, write_registry

PAGE = "http://lost.example/"


@pytest.fixture
def archives() -> Iterator[tuple[FakeArchive, FakeArchive]]:
    """Run two archives with copies of one page."""
    held = {PAGE: [("2012", "a"), ("2016", "b")]}, {PAGE: [("2014-02-10", "c")]}
    with FakeArchive(held[0], id="one") as one, FakeArchive(held[1], id="two") as two:
        yield one, two


def test_copies_of_all_archives_are_merged(archives: tuple[FakeArchive, FakeArchive]) -> None:
    """A TimeMap has the copies of all, by date, and finds the closest."""
    with unlost.Aggregator([each.registry_entry() for each in archives]) as aggregator:
        found = aggregator.timemap("lost.example")
    assert [(each.datetime.year, each.archive) for each in found] == [(2012, "one"), (2014, "two"), (2016, "one")]
    assert (found.uri, found.is_whole, found.asked) == ("http://lost.example", True, ("one", "two"))
    assert found[1].datetime == datetime(2014, 2, 10, tzinfo=UTC)
    assert [each.datetime.year for each in found[1:]] == [2014, 2016]
    assert found.closest("2013-12") == found[1]
    assert found.closest(datetime(2030, 1, 1, tzinfo=UTC)) == found.closest() == found[-1]
    assert json.loads(found.rendered("json"))["mementos"]["list"][0]["uri"] == found[0].uri
    assert repr(found) == "<TimeMap of http://lost.example: 3 copies>"


def test_one_that_fails_is_told_beside_what_the_others_have(archives: tuple[FakeArchive, FakeArchive]) -> None:
    """A dead archive spoils no answer, and nobody takes its failure for an absence."""
    archives[0].fail(Fault.unavailable())
    with unlost.Aggregator([each.registry_entry() for each in archives]) as aggregator:
        found = aggregator.timemap(PAGE)
        nothing = aggregator.closest("http://elsewhere.example/", "2014")
    assert [each.archive for each in found] == ["two"]
    assert list(found.failures) == ["one"]
    assert not found.is_whole
    assert nothing is None


def test_one_that_never_answers_is_left_behind_at_the_deadline(archives: tuple[FakeArchive, FakeArchive]) -> None:
    """Who hangs is among the failures, and the rest is there."""
    archives[1].fail(Fault.slow(math.inf))
    with unlost.Aggregator([each.registry_entry() for each in archives], deadline=1) as aggregator:
        found = aggregator.timemap(PAGE)
    assert len(found) == 2
    assert list(found.failures) == ["two"]


def test_who_has_nothing_by_its_map_is_not_asked(archives: tuple[FakeArchive, FakeArchive], tmp_path: Path) -> None:
    """A map that was built of an archive's index keeps it from being asked in vain."""
    (tmp_path / "urls.txt").write_text("http://elsewhere.example/\n")
    unlost.build_map(tmp_path / "urls.txt", tmp_path / "whole.ukvs")
    report = unlost.compact_map(tmp_path / "whole.ukvs", tmp_path / "map.ukvs", host_weight=None)
    assert not report.problems.total
    entries = [each.registry_entry() for each in archives]
    with unlost.Aggregator(entries, maps={"two": tmp_path / "map.ukvs"}) as aggregator:
        found = aggregator.timemap(PAGE)
    assert found.passed_over == ("two",)
    assert archives[1].count() == 0
    with pytest.raises(UsageError, match="maps: no archive `three`"):
        unlost.Aggregator(entries, maps={"three": tmp_path / "map.ukvs"})


def test_answers_are_kept_unless_somebody_wants_them_fresh(archives: tuple[FakeArchive, FakeArchive]) -> None:
    """The second question costs the archive nothing; a fresh one sees what it has gained."""
    one = archives[0]
    with unlost.Aggregator([one.registry_entry()]) as aggregator:
        aggregator.timemap(PAGE)
        one.add({PAGE: [("2020", "new")]})
        assert len(aggregator.timemap(PAGE)) == 2
        assert one.count() == 1
        assert len(aggregator.timemap(PAGE, fresh=True)) == 3


def test_it_is_awaited_in_a_loop_and_blocks_in_one(archives: tuple[FakeArchive, FakeArchive], tmp_path: Path) -> None:
    """The awaited form asks for many pages at once; the other one works inside of a running loop, too."""
    registry = write_registry(tmp_path / "archives.toml", *(each.registry_entry() for each in archives))

    async def main() -> list[int]:
        async with unlost.AsyncAggregator(registry, only=["one"]) as aggregator:
            many = await asyncio.gather(*(aggregator.timemap(f"{PAGE}?{number % 2}") for number in range(10)))
            last = await aggregator.closest(PAGE)
        with unlost.Aggregator(registry) as blocking:
            here = len(blocking.timemap(PAGE))
        return [sum(map(len, many)), last.datetime.year if last else 0, here]

    assert asyncio.run(main()) == [0, 2016, 3]


def test_several_threads_may_ask_at_once(archives: tuple[FakeArchive, FakeArchive]) -> None:
    """One aggregator serves all threads of a program."""
    with unlost.Aggregator([archives[0].registry_entry("memento")]) as aggregator, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: len(aggregator.timemap(PAGE)), range(40)))
    assert found == [2] * 40
    assert archives[0].count() == archives[0].count("timemap") == 1


def test_what_is_wrong_is_said(archives: tuple[FakeArchive, FakeArchive]) -> None:
    """Addresses and dates that are none, and questions outside of the block, are errors of ours."""
    with pytest.raises(UsageError, match="found 'ia': name them by `only`"):
        unlost.Aggregator(["ia"])  # type: ignore[list-item]
    aggregator = unlost.Aggregator([archives[0].registry_entry()])
    with pytest.raises(UsageError, match="inside of its `with` block"):
        aggregator.timemap(PAGE)
    with aggregator:
        with pytest.raises(UriError):
            aggregator.timemap("dns:example.com")
        with pytest.raises(DateError):
            aggregator.closest(PAGE, "yesterday")
    with pytest.raises(UsageError, match="inside of its `with` block"):
        aggregator.closest(PAGE)
    with pytest.raises(UsageError, match="found a text"):
        unlost.Aggregator(only="one")
