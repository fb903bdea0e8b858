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
from unlost.aggregate.cache import MemoryCache
from unlost.aggregate.models import CacheControl
from unlost.errors import FailedError, NotKeptError


def test_what_was_kept_is_given_for_as_long_as_it_may_be() -> None:
    """Then it is asked for again; lists for a day, misses for an hour."""

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


def test_no_cache_asks_anew_and_keeps_what_comes() -> None:
    """But what comes while an archive fails does not take the place of a whole answer."""

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


def test_only_if_cached_asks_nobody() -> None:
    """What is not kept is an error of its own."""

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


def test_a_kept_answer_costs_next_to_nothing() -> None:
    """A coroutine and a look into a dictionary: far less than a task."""

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


def test_memory_does_not_grow_with_pages() -> None:
    """Once the cache is full, five times as many pages take no more than before."""

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
