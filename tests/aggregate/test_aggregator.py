"""Fan-out to all archives: merged results, coalesced requests, limits, listeners."""

import asyncio
import time

import pytest

from tests.aggregate.stubs import (
    PAGE,
    Archives,
    FixedRouter,
    RecordingListener,
    hang,
    make_aggregator,
    make_archive,
    mementos_of,
    outcomes,
    until,
)
from tests.aggregate.tasks import A, B, C, run, union
from tests.virtual_clock import VirtualClock
from unlost.aggregate import CacheControl, ConcurrencyLimits, MementoAggregator, RoutingOptions, UpstreamResult
from unlost.errors import BusyError, FailedError, UriError
from unlost.http import POLICIES, BreakerPolicy, BreakerRegistry, HttpRequest


def test_mementos_of_all_archives_are_merged() -> None:
    """Each memento is listed once, by date, and each archive has a report."""

    async def work() -> None:
        archives = Archives(a=A, b=B, c=C, d=[])
        async with make_aggregator(archives) as aggregator:
            found = await aggregator.find(PAGE)
        assert found.mementos == union(mementos_of("a", A), mementos_of("b", B), mementos_of("c", C))
        assert outcomes(found) == {"a": "hit", "b": "hit", "c": "hit", "d": "miss"}
        assert [report.mementos for report in found.reports] == [1, 2, 2, 0]
        assert (found.failures, found.from_cache, found.uri) == ((), False, PAGE)
        assert archives.max_active == 4

    run(work())


def test_equal_concurrent_requests_are_coalesced() -> None:
    """All of them get the same result."""

    async def work() -> None:
        archives = Archives(a=A, b=B)
        async with make_aggregator(archives) as aggregator:
            found = await asyncio.gather(*(aggregator.find(PAGE) for _ in range(50)))
            assert sorted(archives.queried) == ["a", "b"]
            assert all(each is found[0] for each in found)
            other = await asyncio.gather(
                aggregator.find(PAGE, RoutingOptions(top_k=1)), aggregator.find(PAGE, RoutingOptions(broadcast=True))
            )
            assert len(archives.queried) == 6
            assert other[0] is not other[1]

    run(work())


def test_cancelling_one_waiter_does_not_cancel_the_lookup() -> None:
    """Not even cancelling all waiters does: a lookup that has begun is finished and cached."""

    async def work() -> None:
        go = asyncio.Event()

        async def slow(_: HttpRequest) -> list[str]:
            await go.wait()
            return A

        archives = Archives(a=slow)
        async with make_aggregator(archives) as aggregator:
            first, second = asyncio.create_task(aggregator.find(PAGE)), asyncio.create_task(aggregator.find(PAGE))
            await until(lambda: archives.active == 1)
            first.cancel()
            await until(first.done)
            go.set()
            assert len((await second).mementos) == 1
            assert first.cancelled()

            go.clear()
            third = asyncio.create_task(aggregator.find(f"{PAGE}/3"))
            await until(lambda: archives.active == 1)
            third.cancel()
            await until(third.done)
            assert archives.active == 1
            go.set()
            await until(lambda: aggregator.get_cached(f"{PAGE}/3") is not None)
            assert len(archives.queried) == 2

    run(work())


def test_closing_cancels_running_lookups() -> None:
    """Waiters get an error, and no request is left running."""

    async def work() -> None:
        archives = Archives(a=hang)
        async with make_aggregator(archives) as aggregator:
            waiting = asyncio.create_task(aggregator.find(PAGE))
            await until(lambda: archives.active == 1)
        with pytest.raises(BusyError):
            await waiting
        assert archives.active == 0

    run(work())


def test_concurrency_limits_are_enforced() -> None:
    """Some lookups wait for a slot; those beyond the limit fail at once; cancelled ones free their slot."""

    async def work() -> None:
        go = asyncio.Event()

        async def slow(_: HttpRequest) -> list[str]:
            await go.wait()
            return A

        archives = Archives(a=slow)
        limits = ConcurrencyLimits(deadline=5.0, max_active=2, max_waiting=3)
        async with make_aggregator(archives, limits=limits) as aggregator:
            lookups = [asyncio.create_task(aggregator.find(f"{PAGE}/{number}")) for number in range(5)]
            await until(lambda: archives.active == 2)
            with pytest.raises(BusyError) as busy:
                await aggregator.find(f"{PAGE}/5")
            assert busy.value.seconds > 0
            same = asyncio.create_task(aggregator.find(f"{PAGE}/4"))  # needs no place of its own
            lookups[3].cancel()
            await until(lookups[3].done)
            replacement = asyncio.create_task(aggregator.find(f"{PAGE}/5"))
            await asyncio.sleep(0)
            go.set()
            found = await asyncio.gather(lookups[0], lookups[1], lookups[2], lookups[4], same, replacement)
            assert all(len(each.mementos) == 1 for each in found)
            assert archives.max_active == 2
            assert len(archives.queried) == 5

    run(work())


def test_waiting_too_long_for_a_slot_raises_busy_error() -> None:
    """After half of the deadline, so that there is time left for archives."""

    async def work() -> None:
        async with make_aggregator(
            Archives(a=hang), limits=ConcurrencyLimits(deadline=0.4, max_active=1)
        ) as aggregator:
            first = asyncio.create_task(aggregator.find(f"{PAGE}/1"))
            await asyncio.sleep(0)
            start = time.monotonic()
            with pytest.raises(BusyError):
                await aggregator.find(f"{PAGE}/2")
            assert time.monotonic() - start < 0.35
            assert outcomes(await first) == {"a": "timeout"}

    run(work())


def test_invalid_url_is_rejected() -> None:
    """Before any archive is queried."""

    async def work() -> None:
        archives = Archives(a=A)
        async with make_aggregator(archives) as aggregator:
            for text in ("", "dns:example.com", "http://", "mailto:a@b"):
                with pytest.raises(UriError):
                    await aggregator.find(text)
        assert archives.queried == []

    run(work())


def test_listener_failures_do_not_affect_the_result(caplog: pytest.LogCaptureFixture) -> None:
    """An exception of a listener is logged now and then; other listeners are still called."""

    class Broken(RecordingListener):
        def on_upstream_result(self, result: UpstreamResult) -> None:
            raise RuntimeError(f"planted, at {result.uri}")

    async def work() -> None:
        recording = RecordingListener()
        archives = Archives(a=A, f=FailedError("broken", "f", "reset"))
        async with make_aggregator(archives, listeners=[Broken(), recording]) as aggregator:
            for number in range(3):
                found = await aggregator.find(f"{PAGE}/{number}")
            await aggregator.find(f"{PAGE}/2")
            assert recording.results[2] is found
            assert len(recording.results) == 3
            outcomes_ = [
                (each.report.archive, each.final_outcome, each.endpoint, len(each.mementos))
                for each in recording.upstream_results
            ]
            assert sorted(outcomes_) == [("a", "hit", "timemap", 1)] * 3 + [("f", "reset", "timemap", 0)] * 3

    run(work())
    assert len(caplog.records) == 3  # the first, the second, the fourth


def test_open_breakers_and_passed_over_archives_are_reported() -> None:
    """Archives that were not queried because of their maps are named in the result."""

    async def work() -> None:
        clock = VirtualClock()
        router = FixedRouter(make_archive("a"), passed_over=("z", "y"))
        breakers = BreakerRegistry(clock, BreakerPolicy(failures=1, pause=30.0))
        archives = Archives(a=FailedError("broken", "a", "reset"))
        async with MementoAggregator(router, archives, clock, breakers=breakers) as aggregator:
            assert (await aggregator.find(PAGE)).passed_over == ("y", "z")
            assert outcomes(await aggregator.find(PAGE)) == {"a": "dormant"}
            assert len(archives.queried) == 1

    run(work())


def test_failing_archive_is_skipped_and_tried_again_after_the_pause() -> None:
    """As `POLICIES["aggregate"]` says; a success closes the circuit."""
    policy = POLICIES["aggregate"]

    async def work() -> None:
        clock = VirtualClock()
        archives = Archives(a=FailedError("broken", "a", "reset"))
        async with MementoAggregator(FixedRouter(make_archive("a")), archives, clock) as aggregator:

            async def query(count: int) -> int:
                before = len(archives.queried)
                for _ in range(count):
                    await aggregator.find(f"{PAGE}/{len(archives.queried)}", cache_control=CacheControl(no_cache=True))
                return len(archives.queried) - before

            assert await query(policy.failures + 3) == policy.failures
            clock.advance(policy.pause)
            assert await query(2) == 1
            archives.behaviours["a"] = b""
            clock.advance(policy.growth * policy.pause)
            assert await query(3) == 3

    run(work())
