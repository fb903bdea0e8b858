"""The memory cache: lifetimes, eviction and sizes."""

import gc
import sys
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.aggregate.results import make_result
from tests.virtual_clock import VirtualClock
from unlost.aggregate import AggregateResult, ArchiveReport, CacheLifetimes, MemoryCache, RoutingOptions

PAGE = "http://example.com/"


def test_cached_result_equals_the_original() -> None:
    """Except for durations."""
    cache = MemoryCache(VirtualClock())
    found = make_result(PAGE, 3)
    assert cache.put(RoutingOptions(), found)
    cached = cache.get(PAGE, RoutingOptions())
    assert cached is not None
    timeless = tuple(replace(report, duration_ms=0.0) for report in found.reports)
    assert cached == replace(found, reports=timeless, from_cache=True)
    assert (cached.digest, len(cached.digest)) == (found.digest, 32)
    assert cache.get(PAGE, RoutingOptions(broadcast=True)) is None
    assert cache.get(PAGE + "a", RoutingOptions()) is None


def test_digest_depends_on_contents_only() -> None:
    """Not on times; mementos, outcomes and passed-over archives change it."""
    found = make_result(PAGE, 3)
    assert replace(found, created_at=1.0, expires_at=2.0, from_cache=True).digest == found.digest
    failed = (*found.reports[:2], ArchiveReport("a2", "broadcast", "timeout", message="late"))
    others = [
        make_result(PAGE, 4),
        make_result(PAGE + "a", 3),
        replace(found, reports=failed),
        replace(found, passed_over=()),
        replace(found, mementos=make_result(PAGE, 2).mementos),
    ]
    assert len({each.digest for each in [found, *others]}) == 6


@pytest.mark.parametrize(
    ("size", "fails", "is_whole", "seconds"),
    [
        (3, False, True, 10.0),
        (3, True, False, 3.0),
        (3, True, True, 10.0),
        (0, False, True, 5.0),
        (0, True, False, 0.0),
    ],
)
def test_lifetimes_by_kind_of_result(size: int, fails: bool, is_whole: bool, seconds: float) -> None:
    """A miss with failures is not cached."""
    found = make_result(PAGE, size)
    if fails:
        found = replace(found, reports=(*found.reports, ArchiveReport("x", "broadcast", "timeout")))
    assert CacheLifetimes(timemap=10.0, miss=5.0, partial=3.0).lifetime_of(found, is_whole=is_whole) == seconds


def test_stale_results_are_dropped() -> None:
    """At the exact second; so are results dated in the future."""
    clock = VirtualClock()
    cache = MemoryCache(clock)
    cache.put(RoutingOptions(), make_result(PAGE, 3, lifetime=10))
    clock.advance(9.9)
    assert cache.get(PAGE, RoutingOptions()) is not None
    clock.advance(0.1)
    assert cache.get(PAGE, RoutingOptions()) is None
    assert (len(cache), cache.bytes) == (0, 0)
    assert not cache.put(RoutingOptions(), make_result(PAGE, 3, made=clock.now() + 3600))
    assert not cache.put(RoutingOptions(), make_result(PAGE, 3, made=clock.now(), lifetime=0))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40), st.booleans()), max_size=60))
def test_size_limit_holds_for_any_sequence_of_operations(steps: list[tuple[int, int, bool]]) -> None:
    """The byte count is right, and the most recently used result is cached."""
    cache = MemoryCache(VirtualClock(), 20_000)
    for page, size, is_read in steps:
        uri = f"{PAGE}{page}"
        if is_read:
            cache.get(uri, RoutingOptions())
            continue
        is_cached = cache.put(RoutingOptions(), make_result(uri, size))
        assert cache.bytes <= 20_000
        assert (cache.get(uri, RoutingOptions()) is not None) == is_cached
    for page in range(31):
        cache._drop((f"{PAGE}{page}", RoutingOptions())) if (
            f"{PAGE}{page}",
            RoutingOptions(),
        ) in cache._entries else None
    assert cache.bytes == 0


def test_least_recently_used_result_is_evicted() -> None:
    """Results that are read often stay."""
    cache = MemoryCache(VirtualClock(), 10_000)
    for number in range(200):
        cache.put(RoutingOptions(), make_result(f"{PAGE}{number}"))
        assert cache.get(f"{PAGE}0", RoutingOptions()) is not None
    assert cache.get(f"{PAGE}1", RoutingOptions()) is None
    assert cache.get(f"{PAGE}199", RoutingOptions()) is not None


def test_too_large_result_is_rejected_without_eviction() -> None:
    """Other results stay."""
    cache = MemoryCache(VirtualClock(), 10_000)
    cache.put(RoutingOptions(), make_result(PAGE))
    assert not cache.put(RoutingOptions(), make_result(f"{PAGE}large", 1_000))
    assert cache.get(PAGE, RoutingOptions()) is not None


def get_cached(cache: MemoryCache, uri: str) -> AggregateResult:
    """Return the cached result of a page."""
    found = cache.get(uri, RoutingOptions())
    assert found is not None
    return found


def with_timeouts(found: AggregateResult, number: int) -> AggregateResult:
    """Return a result in which all archives but the first timed out, each with a message of its own."""
    first, *others = found.reports
    failed = [
        # Ids are those of the registry, which are there anyway.
        replace(each, archive=sys.intern(each.archive), outcome="timeout", message=f"{each.archive}: late by {number}")
        for each in others
    ]
    return replace(found, reports=(first, *failed))


@pytest.mark.parametrize(
    ("size", "pages", "is_late"), [(0, 3_000, False), (1, 2_000, False), (1, 500, True), (100, 200, False)]
)
def test_estimated_sizes_are_close_to_memory_usage(size: int, pages: int, is_late: bool) -> None:
    """Within a quarter, for misses of 14 archives, TimeMaps and failures."""
    responses = [f"{PAGE}{number}" for number in range(pages)]
    clock = VirtualClock()
    tracemalloc.start()
    try:
        cache = MemoryCache(clock, 1 << 30)
        for number, uri in enumerate(responses):
            # As they come from outside: nothing in them is shared.
            found = make_result("".join(list(uri)), size, archives=14)
            cache.put(RoutingOptions(), with_timeouts(found, number) if is_late else found)
        del found
        gc.collect()
        # Mementos are in memory of the core, which tracemalloc does not see.
        mementos = sum(get_cached(cache, uri).mementos.memory_size for uri in responses) if size else 0
        taken = tracemalloc.get_traced_memory()[0] + mementos
    finally:
        tracemalloc.stop()
    print(f"{size} copies: {taken / pages:.0f} bytes a page, said to be {cache.bytes / pages:.0f}")
    assert 0.75 * taken < cache.bytes < 1.5 * taken
    if size == 0:
        assert taken / pages < 700
