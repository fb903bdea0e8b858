"""Cached results of the aggregator: lifetimes, cache control and memory."""

import asyncio
import gc
import time
import tracemalloc
from collections import deque

import pytest

from tests.aggregate.stubs import PAGE, Archives, make_aggregator, mementos_of
from tests.aggregate.tasks import A, B, C, run, union
from tests.virtual_clock import VirtualClock
from unlost.aggregate import CacheControl, MemoryCache
from unlost.errors import FailedError, NotKeptError


def test_cached_result_is_served_for_its_lifetime() -> None:
    """A day for mementos, an hour for misses."""

    async def work() -> None:
        clock = VirtualClock()
        archives = Archives(a=A)
        async with make_aggregator(archives, clock) as aggregator:
            first = await aggregator.find(PAGE)
            again = await aggregator.find(PAGE)
            assert (first.from_cache, again.from_cache, again.digest) == (False, True, first.digest)
            assert again.mementos == first.mementos
            clock.advance(86_399)
            assert (await aggregator.find(PAGE)).from_cache
            clock.advance(1)
            assert not (await aggregator.find(PAGE)).from_cache
            archives.behaviours["a"] = []
            await aggregator.find(f"{PAGE}/miss")
            clock.advance(3_599)
            assert (await aggregator.find(f"{PAGE}/miss")).from_cache
            clock.advance(1)
            assert aggregator.get_cached(f"{PAGE}/miss") is None

    run(work())


def test_no_cache_queries_archives_and_updates_the_cache() -> None:
    """A result with failures does not replace a complete one."""

    async def work() -> None:
        archives = Archives(a=A, b=B)
        async with make_aggregator(archives) as aggregator:
            await aggregator.find(PAGE)
            archives.behaviours["a"] = C
            fresh = await aggregator.find(PAGE, cache_control=CacheControl(no_cache=True))
            assert not fresh.from_cache
            cached = aggregator.get_cached(PAGE)
            assert cached is not None
            assert cached.mementos == fresh.mementos == union(mementos_of("a", C), mementos_of("b", B))
            archives.behaviours["b"] = FailedError("broken", "b", "reset")
            partly = await aggregator.find(PAGE, cache_control=CacheControl(no_cache=True))
            assert partly.mementos == mementos_of("a", C)
            assert aggregator.get_cached(PAGE) is cached

    run(work())


def test_only_if_cached_queries_no_archive() -> None:
    """A missing result raises NotKeptError."""

    async def work() -> None:
        archives = Archives(a=A)
        async with make_aggregator(archives) as aggregator:
            only = CacheControl(only_if_cached=True)
            with pytest.raises(NotKeptError):
                await aggregator.find(PAGE, cache_control=only)
            assert archives.queried == []
            await aggregator.find(PAGE)
            assert (await aggregator.find(PAGE, cache_control=only)).from_cache
            with pytest.raises(NotKeptError):
                await aggregator.find(PAGE, cache_control=CacheControl(no_cache=True, only_if_cached=True))

    run(work())


def test_cached_result_is_fast() -> None:
    """Far faster than creating a task."""

    async def work() -> None:
        async with make_aggregator(Archives(a=A)) as aggregator:
            await aggregator.find(PAGE)
            times = []
            for _ in range(5):
                start = time.perf_counter()
                for _ in range(2_000):
                    aggregator.get_cached(PAGE)
                times.append((time.perf_counter() - start) / 2_000)
            print(f"kept: {min(times) * 1e6:.2f} µs")
            assert min(times) < 20e-6

    run(work())


def test_memory_is_bounded() -> None:
    """Once the cache is full, five times as many pages take no more memory."""

    async def work() -> None:
        clock = VirtualClock()
        archives = Archives(a=A, b=[])
        archives.queried = deque(maxlen=1)  # the test's own memory is not measured
        async with make_aggregator(archives, clock, memory=MemoryCache(clock, 1 << 17)) as aggregator:
            taken = []
            for begin, end in ((0, 300), (300, 1_500)):
                for number in range(begin, end, 50):
                    await asyncio.gather(*(aggregator.find(f"{PAGE}/{number + each}") for each in range(50)))
                gc.collect()
                taken.append(tracemalloc.get_traced_memory()[0])
                assert (1 << 16) < aggregator.memory.bytes <= 1 << 17
            assert taken[1] < 1.1 * taken[0]

    tracemalloc.start()
    try:
        run(work())
    finally:
        tracemalloc.stop()
