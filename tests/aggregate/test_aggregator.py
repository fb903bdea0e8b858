"""Asking all at once: what is found, what is said of failures, how long it takes, what is kept and shared."""

import asyncio
import gc
import logging
import time
import tracemalloc
from collections import deque
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.aggregate.stubs import (
    PAGE,
    Archives,
    Behaviour,
    Fixed,
    Heard,
    aggregator,
    an_archive,
    copies,
    hang,
    outcomes,
    until,
)
from tests.virtual_clock import VirtualClock
from unlost.aggregate.aggregator import Aggregator, Bounds
from unlost.aggregate.asking import Asked
from unlost.aggregate.breaker import Breakers, State, Tolerance
from unlost.aggregate.cache import MemoryCache
from unlost.aggregate.wish import Freshness, Wish
from unlost.archives.asking.question import Question
from unlost.errors import BusyError, ExcludedError, FailedError, NotKeptError, NotNowError, UriError
from unlost.formats.mementos import Mementos

A, B, C = ["20140210000001"], ["20150210000001", "20160210000001"], ["20140210000001", "20170210000001"]
SHORT = Bounds(deadline=0.3)
DATES = st.lists(st.integers(1996, 2025).map("{}0210000001".format), max_size=5, unique=True)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run it, and see that it leaves no task behind."""

    async def watched() -> None:
        await work
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others

    asyncio.run(watched())
    gc.collect()  # what was not closed says so now


def union(*parts: Mementos) -> Mementos:
    """Return all copies, made from the single ones."""
    return Mementos(row for part in parts for row in part)


FAULTS: dict[str, tuple[Behaviour, str]] = {
    "timeout": (FailedError("late", "f", "timeout"), "timeout"),
    "reset": (FailedError("broken", "f", "reset"), "reset"),
    "refused": (FailedError("refused", "f", "refused"), "refused"),
    "unreachable": (FailedError("nobody there", "f", "unreachable"), "refused"),
    "tls": (FailedError("unsafe", "f", "tls"), "tls"),
    "500": (FailedError("status 500", "f", "status"), "http-5xx"),
    "403": (FailedError("expected an answer, found status 403", "f", "status"), "http-4xx"),
    "too-large": (FailedError("long", "f", "too-large"), "too-large"),
    "redirects": (FailedError("circle", "f", "redirects"), "redirect"),
    "foreign": (FailedError("another", "f", "foreign"), "malformed"),
    "not now": (NotNowError("wait", "f", 2e9, "rate"), "not-now"),
    "excluded": (ExcludedError("no", "f"), "excluded"),
    "html": (b"<!doctype html><title>Oops</title>", "malformed"),
    "limits": (OSError(28, "No space left on device"), "not-now"),
    "bug": (RuntimeError("planted"), "malformed"),
    "nothing": ([], "miss"),
}


def test_what_all_have_is_one_list() -> None:
    """Each copy once, by date, whoever has it; and a report of each archive."""

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


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_spoils_nothing(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    """The answer has what the others have, names the fault, and is not kept as a miss."""
    does, outcome = FAULTS[fault]

    async def work() -> None:
        archives = Archives(a=A, f=does, c=C)
        clock = VirtualClock()
        async with aggregator(archives, clock) as it:
            found = await it.find(PAGE)
            assert found.mementos == union(copies("a", A), copies("c", C))
            assert outcomes(found) == {"a": "hit", "f": outcome, "c": "hit"}
            report = found.reports[2]
            is_answer = outcome in ("miss", "excluded")
            assert (report in found.failures, bool(report.message)) == (not is_answer, outcome != "miss")
            assert found.until == found.made + (86_400 if is_answer else 60)
            clock.advance(61)
            assert (it.kept(PAGE) is not None) == is_answer

            archives.behaviours |= {"a": [], "c": []}
            nothing = await it.find("http://example.com/other")
            assert len(nothing.mementos) == 0
            assert nothing.until == nothing.made + (3_600 if is_answer else 0)
            assert (it.kept("http://example.com/other") is not None) == is_answer

    run(work())
    assert ("a fault of unlost" in caplog.text) == (fault == "bug")


@settings(max_examples=60)
@given(st.lists(st.tuples(DATES, st.sampled_from([None, None, *FAULTS])), min_size=1, max_size=6))
def test_whatever_fails_the_rest_is_found(holdings: list[tuple[list[str], str | None]]) -> None:
    """Found is the union of what those have that did not fail, and the reports tell who did."""
    names = "abcdefgh"

    async def work() -> None:
        behaviours = {
            name: dates if fault is None else FAULTS[fault][0]
            for name, (dates, fault) in zip(names, holdings, strict=False)
        }
        async with aggregator(Archives(**behaviours)) as it:
            found = await it.find(PAGE)
        well = [(name, dates) for name, (dates, fault) in zip(names, holdings, strict=False) if fault is None]
        assert found.mementos == union(*(copies(name, dates) for name, dates in well))
        told = {name: ("hit" if dates else "miss") for name, dates in well}
        told |= {name: FAULTS[fault][1] for name, (_, fault) in zip(names, holdings, strict=False) if fault}
        assert outcomes(found) == told
        assert [report.archive for report in found.reports] == sorted(told)

    logging.disable()
    try:
        run(work())
    finally:
        logging.disable(logging.NOTSET)


def test_who_is_late_is_cancelled_and_named() -> None:
    """At the deadline there is an answer with what the others have; nothing goes on behind it."""

    async def work() -> None:
        archives = Archives(a=A, f=hang, c=C)
        async with aggregator(archives, bounds=SHORT) as it:
            begun = time.monotonic()
            found = await it.find(PAGE)
            assert 0.25 < time.monotonic() - begun < 0.3 + 0.45
            assert found.mementos == union(copies("a", A), copies("c", C))
            assert outcomes(found) == {"a": "hit", "c": "hit", "f": "timeout"}
            assert archives.going_on == 0
            assert it.breakers.conditions()["f"].failures == 1

    run(work())


def test_an_archive_that_cannot_be_cancelled_delays_nobody_for_long() -> None:
    """It swallows the cancellation; the answer comes, and closing does not wait for it either."""
    release = asyncio.Event()

    async def stubborn(_: Question) -> list[str]:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return []

    async def work() -> None:
        async with aggregator(Archives(a=A, f=stubborn), bounds=SHORT) as it:
            begun = time.monotonic()
            found = await it.find(PAGE)
            assert outcomes(found) == {"a": "hit", "f": "timeout"}
        assert time.monotonic() - begun < 0.3 + 0.5 + 0.5 + 0.5
        release.set()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait(others)

    run(work())


def test_what_was_listed_before_the_deadline_is_kept_in_the_answer() -> None:
    """Of a TimeMap of two pages the second hangs."""

    async def paged(question: Question) -> bytes:
        if question.url.endswith("/2"):
            await hang(question)
        first = b'<http://f.example/20140210000001/x>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT"'
        return first + b',\n<http://f.example/2>; rel="timemap"; from="Tue, 10 Feb 2015 00:00:01 GMT"'

    async def work() -> None:
        async with aggregator(Archives(a=A, f=paged), bounds=SHORT) as it:
            found = await it.find(PAGE)
            assert outcomes(found) == {"a": "hit", "f": "incomplete"}
            assert [report.mementos for report in found.reports] == [1, 1]
            assert len(found.mementos) == 2
            assert found.until == found.made + 60
            assert it.breakers.conditions()["f"].last_failure == "timeout"

    run(work())


def test_a_list_that_the_archive_itself_cuts_is_kept_as_long_as_a_whole_one() -> None:
    """It will never say more; that there may be more is told."""
    elsewhere = b',\n<http://elsewhere.example/2>; rel="timemap"; from="Tue, 10 Feb 2015 00:00:01 GMT"'
    page = b'<http://f.example/1>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT"' + elsewhere

    async def work() -> None:
        async with aggregator(Archives(a=A, f=page)) as it:
            found = await it.find(PAGE)
            assert outcomes(found) == {"a": "hit", "f": "incomplete"}
            assert [report.archive for report in found.failures] == ["f"]
            assert found.until == found.made + 86_400
            assert it.breakers.conditions()["f"].failures == 0

    run(work())


def test_once_its_breaker_is_open_a_hanging_archive_costs_no_time() -> None:
    """Not even when it is tried again and hangs again: nobody waits for that, unless there is nobody else."""

    async def work() -> None:
        clock = VirtualClock()
        archives = Archives(a=A, f=hang)
        bounds = Bounds(deadline=0.8)
        async with aggregator(archives, clock, bounds=bounds) as it:
            for number in range(3):
                await it.find(f"{PAGE}/{number}")
            assert it.breakers.conditions()["f"].state is State.DORMANT
            for number in range(40):
                clock.advance(1 if number != 30 else 10)
                begun = time.monotonic()
                found = await it.find(f"{PAGE}/quick/{number}")
                assert time.monotonic() - begun < bounds.deadline
                assert outcomes(found) == {"a": "hit", "f": "dormant"}
            assert archives.asked.count("f") == 4
            await until(lambda: it.breakers.conditions()["f"].opened == 2)
            clock.advance(61)
            alone = await it.find(PAGE, Wish(frozenset({"f"})))
            assert outcomes(alone) == {"f": "timeout"}

    run(work())


def test_an_archive_that_is_well_again_is_asked_again() -> None:
    """The trial's answer counts, and the next question goes to it as to all."""

    async def work() -> None:
        clock = VirtualClock()
        archives = Archives(a=A, f=FailedError("status 502", "f", "status"))
        async with aggregator(archives, clock) as it:
            for number in range(4):
                found = await it.find(f"{PAGE}/{number}")
            assert outcomes(found)["f"] == "dormant"
            archives.behaviours["f"] = C
            clock.advance(31)
            assert outcomes(await it.find(f"{PAGE}/4"))["f"] in ("hit", "dormant")
            assert outcomes(await it.find(f"{PAGE}/5"))["f"] == "hit"

    run(work())


def test_fifty_equal_requests_are_one_round() -> None:
    """All of them get the same answer."""

    async def work() -> None:
        archives = Archives(a=A, b=B)
        async with aggregator(archives) as it:
            found = await asyncio.gather(*(it.find(PAGE) for _ in range(50)))
            assert sorted(archives.asked) == ["a", "b"]
            assert all(each is found[0] for each in found)
            other = await asyncio.gather(it.find(PAGE, Wish(top_k=1)), it.find(PAGE, Wish(broadcast=True)))
            assert len(archives.asked) == 6
            assert other[0] is not other[1]

    run(work())


def test_one_who_gives_up_does_not_end_it_for_others() -> None:
    """Nor do all of them: what has begun is finished, and kept."""

    async def work() -> None:
        go = asyncio.Event()

        async def slow(_: Question) -> list[str]:
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
            await until(lambda: it.kept(f"{PAGE}/3") is not None)
            assert len(archives.asked) == 2

    run(work())


def test_closing_ends_everything() -> None:
    """Whoever waits is told that it is over, and no question stays behind."""

    async def work() -> None:
        archives = Archives(a=hang)
        async with aggregator(archives) as it:
            waiting = asyncio.create_task(it.find(PAGE))
            await until(lambda: archives.going_on == 1)
        with pytest.raises(BusyError):
            await waiting
        assert archives.going_on == 0

    run(work())


def test_no_more_is_asked_at_once_than_may_be() -> None:
    """Some wait for a place; who comes beyond them is told so at once; who gives up makes room."""

    async def work() -> None:
        go = asyncio.Event()

        async def slow(_: Question) -> list[str]:
            await go.wait()
            return A

        archives = Archives(a=slow)
        bounds = Bounds(deadline=5.0, at_once=2, waiting=3)
        async with aggregator(archives, bounds=bounds) as it:
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


def test_who_waits_too_long_for_a_place_is_told() -> None:
    """After half of the deadline, so that there is always time left for archives."""

    async def work() -> None:
        async with aggregator(Archives(a=hang), bounds=Bounds(deadline=0.4, at_once=1)) as it:
            first = asyncio.create_task(it.find(f"{PAGE}/1"))
            await asyncio.sleep(0)
            begun = time.monotonic()
            with pytest.raises(BusyError):
                await it.find(f"{PAGE}/2")
            assert time.monotonic() - begun < 0.35
            assert outcomes(await first) == {"a": "timeout"}

    run(work())


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
            assert it.kept(f"{PAGE}/miss") is None

    run(work())


def test_no_cache_asks_anew_and_keeps_what_comes() -> None:
    """But what comes while an archive fails does not take the place of a whole answer."""

    async def work() -> None:
        archives = Archives(a=A, b=B)
        async with aggregator(archives) as it:
            await it.find(PAGE)
            archives.behaviours["a"] = C
            anew = await it.find(PAGE, freshness=Freshness(no_cache=True))
            assert not anew.from_cache
            kept = it.kept(PAGE)
            assert kept is not None
            assert kept.mementos == anew.mementos == union(copies("a", C), copies("b", B))
            archives.behaviours["b"] = FailedError("broken", "b", "reset")
            partly = await it.find(PAGE, freshness=Freshness(no_cache=True))
            assert partly.mementos == copies("a", C)
            assert it.kept(PAGE) is kept

    run(work())


def test_only_if_cached_asks_nobody() -> None:
    """What is not kept is an error of its own."""

    async def work() -> None:
        archives = Archives(a=A)
        async with aggregator(archives) as it:
            only = Freshness(only_if_cached=True)
            with pytest.raises(NotKeptError):
                await it.find(PAGE, freshness=only)
            assert archives.asked == []
            await it.find(PAGE)
            assert (await it.find(PAGE, freshness=only)).from_cache
            with pytest.raises(NotKeptError):
                await it.find(PAGE, freshness=Freshness(no_cache=True, only_if_cached=True))

    run(work())


def test_what_is_no_address_is_refused() -> None:
    """Before anybody is asked."""

    async def work() -> None:
        archives = Archives(a=A)
        async with aggregator(archives) as it:
            for text in ("", "dns:example.com", "http://", "mailto:a@b"):
                with pytest.raises(UriError):
                    await it.find(text)
        assert archives.asked == []

    run(work())


def test_listeners_hear_everything_and_spoil_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """One that raises is logged, now and then; the others and the answer do not notice."""

    class Broken(Heard):
        def heard(self, asked: Asked) -> None:
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
            told = [(each.report.archive, each.ended, each.endpoint, len(each.mementos)) for each in heard.answers]
            assert sorted(told) == [("a", "hit", "timemap", 1)] * 3 + [("f", "reset", "timemap", 0)] * 3

    run(work())
    assert len(caplog.records) == 3  # the first, the second, the fourth


def test_a_breaker_of_no_tolerance_and_archives_passed_over_are_told() -> None:
    """Who was not asked for the maps' sake is named in the answer."""

    async def work() -> None:
        clock = VirtualClock()
        router = Fixed(an_archive("a"), passed_over=("z", "y"))
        breakers = Breakers(clock, Tolerance(in_a_row=1))
        archives = Archives(a=FailedError("broken", "a", "reset"))
        async with Aggregator(router, archives, clock, breakers=breakers) as it:
            assert (await it.find(PAGE)).passed_over == ("y", "z")
            assert outcomes(await it.find(PAGE)) == {"a": "dormant"}
            assert len(archives.asked) == 1

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
                    it.kept(PAGE)
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
