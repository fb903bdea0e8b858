"""`unlost.Aggregator` and `unlost.AsyncAggregator`."""

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
    """Run two archives with mementos of one page."""
    captures = {PAGE: [("2012", "a"), ("2016", "b")]}, {PAGE: [("2014-02-10", "c")]}
    with FakeArchive(captures[0], id="one") as one, FakeArchive(captures[1], id="two") as two:
        yield one, two


def test_timemap_merges_mementos_of_all_archives(archives: tuple[FakeArchive, FakeArchive]) -> None:
    """By date, and the closest memento is found."""
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


def test_failed_archive_is_reported_with_the_mementos_of_others(archives: tuple[FakeArchive, FakeArchive]) -> None:
    """Its failure is not taken for an absence."""
    archives[0].fail(Fault.unavailable())
    with unlost.Aggregator([each.registry_entry() for each in archives]) as aggregator:
        found = aggregator.timemap(PAGE)
        nothing = aggregator.closest("http://elsewhere.example/", "2014")
    assert [each.archive for each in found] == ["two"]
    assert list(found.failures) == ["one"]
    assert not found.is_whole
    assert nothing is None


def test_hanging_archive_is_a_failure_after_the_deadline(archives: tuple[FakeArchive, FakeArchive]) -> None:
    """The mementos of the other archive are returned."""
    archives[1].fail(Fault.slow(math.inf))
    with unlost.Aggregator([each.registry_entry() for each in archives], deadline=1) as aggregator:
        found = aggregator.timemap(PAGE)
    assert len(found) == 2
    assert list(found.failures) == ["two"]


def test_archive_without_the_page_in_its_map_is_passed_over(
    archives: tuple[FakeArchive, FakeArchive], tmp_path: Path
) -> None:
    """No request is sent to it."""
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


def test_results_are_cached_unless_fresh_is_given(archives: tuple[FakeArchive, FakeArchive]) -> None:
    """A second call sends no request; a fresh one returns new mementos."""
    one = archives[0]
    with unlost.Aggregator([one.registry_entry()]) as aggregator:
        aggregator.timemap(PAGE)
        one.add({PAGE: [("2020", "new")]})
        assert len(aggregator.timemap(PAGE)) == 2
        assert one.count() == 1
        assert len(aggregator.timemap(PAGE, fresh=True)) == 3


def test_async_and_blocking_forms_work_in_a_running_loop(
    archives: tuple[FakeArchive, FakeArchive], tmp_path: Path
) -> None:
    """The async form runs many look-ups concurrently."""
    registry = write_registry(tmp_path / "archives.toml", *(each.registry_entry() for each in archives))

    async def main() -> list[int]:
        async with unlost.AsyncAggregator(registry, only=["one"]) as aggregator:
            many = await asyncio.gather(*(aggregator.timemap(f"{PAGE}?{number % 2}") for number in range(10)))
            last = await aggregator.closest(PAGE)
        with unlost.Aggregator(registry) as blocking:
            here = len(blocking.timemap(PAGE))
        return [sum(map(len, many)), last.datetime.year if last else 0, here]

    assert asyncio.run(main()) == [0, 2016, 3]


def test_aggregator_is_thread_safe(archives: tuple[FakeArchive, FakeArchive]) -> None:
    """Equal concurrent look-ups share one request."""
    with unlost.Aggregator([archives[0].registry_entry("memento")]) as aggregator, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: len(aggregator.timemap(PAGE)), range(40)))
    assert found == [2] * 40
    assert archives[0].count() == archives[0].count("timemap") == 1


def test_invalid_arguments_raise(archives: tuple[FakeArchive, FakeArchive]) -> None:
    """Invalid URLs and dates, and calls outside of the `with` block."""
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
