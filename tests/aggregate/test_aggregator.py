"""Asking all at once: what is found, what those share who ask the same, how much is asked, and who hears of it."""

import asyncio
import time

import pytest

from tests.aggregate.rounds import A, B, C, run, union
from tests.aggregate.stubs import PAGE, Archives, Fixed, Heard, aggregator, an_archive, copies, hang, outcomes, until
from tests.virtual_clock import VirtualClock
from unlost.aggregate import ConcurrencyLimits, MementoAggregator, RoutingOptions, UpstreamResult
from unlost.errors import BusyError, FailedError, UriError
from unlost.http import BreakerConfig, BreakerRegistry, HttpRequest


def test_mementos_of_all_archives_are_merged() -> None:
    """Each memento is listed once, by date, and each archive has a report."""

    async def work() -> None:
        archives = Archives(a=A, b=B, c=C, d=[])
        async with aggregator(archives) as it:
            found = await it.find(PAGE)
        assert found.mementos == union(copies("a", A), copies("b", B), copies("c", C))
        assert outcomes(found) == {"a": "hit", "b": "hit", "c": "hit", "d": "miss"}
        assert [report.mementos for report in found.reports] == [1, 2, 2, 0]
        assert (found.failures, found.from_cache, found.uri) == ((), False, PAGE)
        assert archives.most == 4

    run(work())


def test_equal_concurrent_requests_are_coalesced() -> None:
    """All of them get the same result."""

    async def work() -> None:
        archives = Archives(a=A, b=B)
        async with aggregator(archives) as it:
            found = await asyncio.gather(*(it.find(PAGE) for _ in range(50)))
            assert sorted(archives.asked) == ["a", "b"]
            assert all(each is found[0] for each in found)
            other = await asyncio.gather(
                it.find(PAGE, RoutingOptions(top_k=1)), it.find(PAGE, RoutingOptions(broadcast=True))
            )
            assert len(archives.asked) == 6
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
        async with aggregator(archives) as it:
            first, second = asyncio.create_task(it.find(PAGE)), asyncio.create_task(it.find(PAGE))
            await until(lambda: archives.going_on == 1)
            first.cancel()
            await until(first.done)
            go.set()
            assert len((await second).mementos) == 1
            assert first.cancelled()

            go.clear()
            third = asyncio.create_task(it.find(f"{PAGE}/3"))
            await until(lambda: archives.going_on == 1)
            third.cancel()
            await until(third.done)
            assert archives.going_on == 1
            go.set()
            await until(lambda: it.get_cached(f"{PAGE}/3") is not None)
            assert len(archives.asked) == 2

    run(work())


def test_closing_cancels_running_lookups() -> None:
    """Waiters get an error, and no request is left running."""

    async def work() -> None:
        archives = Archives(a=hang)
        async with aggregator(archives) as it:
            waiting = asyncio.create_task(it.find(PAGE))
            await until(lambda: archives.going_on == 1)
        with pytest.raises(BusyError):
            await waiting
        assert archives.going_on == 0

    run(work())


def test_concurrency_limits_are_enforced() -> None:
    """Some lookups wait for a slot; those beyond the limit fail at once; cancelled ones free their slot."""

    async def work() -> None:
        go = asyncio.Event()

        async def slow(_: HttpRequest) -> list[str]:
            await go.wait()
            return A

        archives = Archives(a=slow)
        bounds = ConcurrencyLimits(deadline=5.0, max_active=2, max_waiting=3)
        async with aggregator(archives, limits=bounds) as it:
            asked = [asyncio.create_task(it.find(f"{PAGE}/{number}")) for number in range(5)]
            await until(lambda: archives.going_on == 2)
            with pytest.raises(BusyError) as busy:
                await it.find(f"{PAGE}/5")
            assert busy.value.seconds > 0
            same = asyncio.create_task(it.find(f"{PAGE}/4"))  # needs no place of its own
            asked[3].cancel()
            await until(asked[3].done)
            instead = asyncio.create_task(it.find(f"{PAGE}/5"))
            await asyncio.sleep(0)
            go.set()
            found = await asyncio.gather(asked[0], asked[1], asked[2], asked[4], same, instead)
            assert all(len(each.mementos) == 1 for each in found)
            assert archives.most == 2
            assert len(archives.asked) == 5

    run(work())


def test_waiting_too_long_for_a_slot_raises_busy_error() -> None:
    """After half of the deadline, so that there is time left for archives."""

    async def work() -> None:
        async with aggregator(Archives(a=hang), limits=ConcurrencyLimits(deadline=0.4, max_active=1)) as it:
            first = asyncio.create_task(it.find(f"{PAGE}/1"))
            await asyncio.sleep(0)
            begun = time.monotonic()
            with pytest.raises(BusyError):
                await it.find(f"{PAGE}/2")
            assert time.monotonic() - begun < 0.35
            assert outcomes(await first) == {"a": "timeout"}

    run(work())


def test_invalid_url_is_rejected() -> None:
    """Before any archive is queried."""

    async def work() -> None:
        archives = Archives(a=A)
        async with aggregator(archives) as it:
            for text in ("", "dns:example.com", "http://", "mailto:a@b"):
                with pytest.raises(UriError):
                    await it.find(text)
        assert archives.asked == []

    run(work())


def test_listener_failures_do_not_affect_the_result(caplog: pytest.LogCaptureFixture) -> None:
    """An exception of a listener is logged now and then; other listeners are still called."""

    class Broken(Heard):
        def on_upstream_result(self, asked: UpstreamResult) -> None:
            raise RuntimeError(f"planted, at {asked.uri}")

    async def work() -> None:
        heard = Heard()
        archives = Archives(a=A, f=FailedError("broken", "f", "reset"))
        async with aggregator(archives, listeners=[Broken(), heard]) as it:
            for number in range(3):
                found = await it.find(f"{PAGE}/{number}")
            await it.find(f"{PAGE}/2")
            assert heard.finds[2] is found
            assert len(heard.finds) == 3
            told = [
                (each.report.archive, each.final_outcome, each.endpoint, len(each.mementos)) for each in heard.answers
            ]
            assert sorted(told) == [("a", "hit", "timemap", 1)] * 3 + [("f", "reset", "timemap", 0)] * 3

    run(work())
    assert len(caplog.records) == 3  # the first, the second, the fourth


def test_open_breakers_and_passed_over_archives_are_reported() -> None:
    """Archives that were not queried because of their maps are named in the result."""

    async def work() -> None:
        clock = VirtualClock()
        router = Fixed(an_archive("a"), passed_over=("z", "y"))
        breakers = BreakerRegistry(clock, BreakerConfig(max_consecutive_failures=1))
        archives = Archives(a=FailedError("broken", "a", "reset"))
        async with MementoAggregator(router, archives, clock, breakers=breakers) as it:
            assert (await it.find(PAGE)).passed_over == ("y", "z")
            assert outcomes(await it.find(PAGE)) == {"a": "dormant"}
            assert len(archives.asked) == 1

    run(work())
