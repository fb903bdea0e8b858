"""What was found is kept: for how long, for whom, and at what cost."""

import asyncio
import gc
import time
import tracemalloc
from collections import deque

import pytest

from tests.aggregate.rounds import A, B, C, run, union
from tests.aggregate.stubs import PAGE, Archives, aggregator, copies
from tests.virtual_clock import VirtualClock
from unlost.aggregate import CacheControl, MemoryCache
from unlost.errors import FailedError, NotKeptError


def test_cached_result_is_served_for_its_lifetime() -> None:
    """A day for mementos, an hour for misses."""

    async def work() -> None:
        clock = VirtualClock()
        archives = Archives(a=A)
        async with aggregator(archives, clock) as it:
            first = await it.find(PAGE)
            again = await it.find(PAGE)
            assert (first.from_cache, again.from_cache, again.digest) == (False, True, first.digest)
            assert again.mementos == first.mementos
            clock.advance(86_399)
            assert (await it.find(PAGE)).from_cache
            clock.advance(1)
            assert not (await it.find(PAGE)).from_cache
            archives.behaviours["a"] = []
            await it.find(f"{PAGE}/miss")
            clock.advance(3_599)
            assert (await it.find(f"{PAGE}/miss")).from_cache
            clock.advance(1)
            assert it.get_cached(f"{PAGE}/miss") is None

    run(work())


def test_no_cache_queries_archives_and_updates_the_cache() -> None:
    """A result with failures does not replace a complete one."""

    async def work() -> None:
        archives = Archives(a=A, b=B)
        async with aggregator(archives) as it:
            await it.find(PAGE)
            archives.behaviours["a"] = C
            anew = await it.find(PAGE, cache_control=CacheControl(no_cache=True))
            assert not anew.from_cache
            kept = it.get_cached(PAGE)
            assert kept is not None
            assert kept.mementos == anew.mementos == union(copies("a", C), copies("b", B))
            archives.behaviours["b"] = FailedError("broken", "b", "reset")
            partly = await it.find(PAGE, cache_control=CacheControl(no_cache=True))
            assert partly.mementos == copies("a", C)
            assert it.get_cached(PAGE) is kept

    run(work())


def test_only_if_cached_queries_no_archive() -> None:
    """A missing result raises NotKeptError."""

    async def work() -> None:
        archives = Archives(a=A)
        async with aggregator(archives) as it:
            only = CacheControl(only_if_cached=True)
            with pytest.raises(NotKeptError):
                await it.find(PAGE, cache_control=only)
            assert archives.asked == []
            await it.find(PAGE)
            assert (await it.find(PAGE, cache_control=only)).from_cache
            with pytest.raises(NotKeptError):
                await it.find(PAGE, cache_control=CacheControl(no_cache=True, only_if_cached=True))

    run(work())


def test_cached_result_is_fast() -> None:
    """Far faster than creating a task."""

    async def work() -> None:
        async with aggregator(Archives(a=A)) as it:
            await it.find(PAGE)
            times = []
            for _ in range(5):
                begun = time.perf_counter()
                for _ in range(2_000):
                    it.get_cached(PAGE)
                times.append((time.perf_counter() - begun) / 2_000)
            print(f"kept: {min(times) * 1e6:.2f} µs")
            assert min(times) < 20e-6

    run(work())


def test_memory_is_bounded() -> None:
    """Once the cache is full, five times as many pages take no more memory."""

    async def work() -> None:
        clock = VirtualClock()
        archives = Archives(a=A, b=[])
        archives.asked = deque(maxlen=1)  # the test's own memory is not measured
        async with aggregator(archives, clock, memory=MemoryCache(clock, 1 << 17)) as it:
            taken = []
            for begin, end in ((0, 300), (300, 1_500)):
                for number in range(begin, end, 50):
                    await asyncio.gather(*(it.find(f"{PAGE}/{number + each}") for each in range(50)))
                gc.collect()
                taken.append(tracemalloc.get_traced_memory()[0])
                assert (1 << 16) < it.memory.bytes <= 1 << 17
            assert taken[1] < 1.1 * taken[0]

    tracemalloc.start()
    try:
        run(work())
    finally:
        tracemalloc.stop()
