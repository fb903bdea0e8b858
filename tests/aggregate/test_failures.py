"""Archives that fail, hang or are late: merged results, reports and circuit breakers."""

import asyncio
import logging
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.aggregate.stubs import PAGE, Archives, Behaviour, hang, make_aggregator, mementos_of, outcomes, until
from tests.aggregate.tasks import A, C, run, union
from tests.virtual_clock import VirtualClock
from unlost.aggregate import ConcurrencyLimits, RoutingOptions
from unlost.errors import ExcludedError, FailedError, NotNowError
from unlost.http import BreakerState, HttpRequest

SHORT = ConcurrencyLimits(deadline=0.3)
DATES = st.lists(st.integers(1996, 2025).map("{}0210000001".format), max_size=5, unique=True)


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


@pytest.mark.parametrize("fault", FAULTS)
def test_single_failure_does_not_affect_other_archives(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    """The result names the failure, and is not cached as a miss."""
    does, outcome = FAULTS[fault]

    async def work() -> None:
        archives = Archives(a=A, f=does, c=C)
        clock = VirtualClock()
        async with make_aggregator(archives, clock) as aggregator:
            found = await aggregator.find(PAGE)
            assert found.mementos == union(mementos_of("a", A), mementos_of("c", C))
            assert outcomes(found) == {"a": "hit", "f": outcome, "c": "hit"}
            report = found.reports[2]
            is_answer = outcome in ("miss", "excluded")
            assert (report in found.failures, bool(report.message)) == (not is_answer, outcome != "miss")
            assert found.expires_at == found.created_at + (86_400 if is_answer else 60)
            clock.advance(61)
            assert (aggregator.get_cached(PAGE) is not None) == is_answer

            archives.behaviours |= {"a": [], "c": []}
            nothing = await aggregator.find("http://example.com/other")
            assert len(nothing.mementos) == 0
            assert nothing.expires_at == nothing.created_at + (3_600 if is_answer else 0)
            assert (aggregator.get_cached("http://example.com/other") is not None) == is_answer

    run(work())
    assert ("a fault of unlost" in caplog.text) == (fault == "bug")


@settings(max_examples=60)
@given(st.lists(st.tuples(DATES, st.sampled_from([None, None, *FAULTS])), min_size=1, max_size=6))
def test_result_is_the_union_of_working_archives(holdings: list[tuple[list[str], str | None]]) -> None:
    """The reports say which archives failed."""
    names = "abcdefgh"

    async def work() -> None:
        behaviours = {
            name: dates if fault is None else FAULTS[fault][0]
            for name, (dates, fault) in zip(names, holdings, strict=False)
        }
        async with make_aggregator(Archives(**behaviours)) as aggregator:
            found = await aggregator.find(PAGE)
        well = [(name, dates) for name, (dates, fault) in zip(names, holdings, strict=False) if fault is None]
        assert found.mementos == union(*(mementos_of(name, dates) for name, dates in well))
        expected = {name: ("hit" if dates else "miss") for name, dates in well}
        expected |= {name: FAULTS[fault][1] for name, (_, fault) in zip(names, holdings, strict=False) if fault}
        assert outcomes(found) == expected
        assert [report.archive for report in found.reports] == sorted(expected)

    logging.disable()
    try:
        run(work())
    finally:
        logging.disable(logging.NOTSET)


def test_late_archives_are_cancelled_and_reported() -> None:
    """The result has the mementos of the others, and no request is left running."""

    async def work() -> None:
        archives = Archives(a=A, f=hang, c=C)
        async with make_aggregator(archives, limits=SHORT) as aggregator:
            start = time.monotonic()
            found = await aggregator.find(PAGE)
            assert 0.25 < time.monotonic() - start < 0.3 + 0.45
            assert found.mementos == union(mementos_of("a", A), mementos_of("c", C))
            assert outcomes(found) == {"a": "hit", "c": "hit", "f": "timeout"}
            assert archives.active == 0
            assert aggregator.breakers.statuses()["f"].failures == 1

    run(work())


def test_uncancellable_request_does_not_delay_the_result() -> None:
    """Closing does not wait for it either."""
    release = asyncio.Event()

    async def stubborn(_: HttpRequest) -> list[str]:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return []

    async def work() -> None:
        async with make_aggregator(Archives(a=A, f=stubborn), limits=SHORT) as aggregator:
            start = time.monotonic()
            found = await aggregator.find(PAGE)
            assert outcomes(found) == {"a": "hit", "f": "timeout"}
        assert time.monotonic() - start < 0.3 + 0.5 + 0.5 + 0.5
        release.set()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait(others)

    run(work())


def test_mementos_received_before_the_deadline_are_returned() -> None:
    """The second page of a TimeMap hangs."""

    async def paged(question: HttpRequest) -> bytes:
        if question.url.endswith("/2"):
            await hang(question)
        first = b'<http://f.example/20140210000001/x>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT"'
        return first + b',\n<http://f.example/2>; rel="timemap"; from="Tue, 10 Feb 2015 00:00:01 GMT"'

    async def work() -> None:
        async with make_aggregator(Archives(a=A, f=paged), limits=SHORT) as aggregator:
            found = await aggregator.find(PAGE)
            assert outcomes(found) == {"a": "hit", "f": "incomplete"}
            assert [report.mementos for report in found.reports] == [1, 1]
            assert len(found.mementos) == 2
            assert found.expires_at == found.created_at + 60
            assert aggregator.breakers.statuses()["f"].last_failure == "timeout"

    run(work())


def test_list_limited_by_the_archive_is_cached_like_a_complete_one() -> None:
    """It is reported as incomplete."""
    elsewhere = b',\n<http://elsewhere.example/2>; rel="timemap"; from="Tue, 10 Feb 2015 00:00:01 GMT"'
    page = b'<http://f.example/1>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT"' + elsewhere

    async def work() -> None:
        async with make_aggregator(Archives(a=A, f=page)) as aggregator:
            found = await aggregator.find(PAGE)
            assert outcomes(found) == {"a": "hit", "f": "incomplete"}
            assert [report.archive for report in found.failures] == ["f"]
            assert found.expires_at == found.created_at + 86_400
            assert aggregator.breakers.statuses()["f"].failures == 0

    run(work())


def test_open_circuit_removes_the_delay_of_a_hanging_archive() -> None:
    """Trials are not awaited, unless there is no other archive."""

    async def work() -> None:
        clock = VirtualClock()
        archives = Archives(a=A, f=hang)
        bounds = ConcurrencyLimits(deadline=0.8)
        async with make_aggregator(archives, clock, limits=bounds) as aggregator:
            for number in range(3):
                await aggregator.find(f"{PAGE}/{number}")
            assert aggregator.breakers.statuses()["f"].state is BreakerState.OPEN
            for number in range(40):
                clock.advance(1 if number != 30 else 10)
                start = time.monotonic()
                found = await aggregator.find(f"{PAGE}/quick/{number}")
                assert time.monotonic() - start < bounds.deadline
                assert outcomes(found) == {"a": "hit", "f": "dormant"}
            assert archives.queried.count("f") == 4
            await until(lambda: aggregator.breakers.statuses()["f"].times_opened == 2)
            clock.advance(61)
            alone = await aggregator.find(PAGE, RoutingOptions(frozenset({"f"})))
            assert outcomes(alone) == {"f": "timeout"}

    run(work())


def test_recovered_archive_is_queried_again() -> None:
    """The trial succeeds, and the next request goes to it."""

    async def work() -> None:
        clock = VirtualClock()
        archives = Archives(a=A, f=FailedError("status 502", "f", "status"))
        async with make_aggregator(archives, clock) as aggregator:
            for number in range(4):
                found = await aggregator.find(f"http://host{number}.example/")
            assert outcomes(found)["f"] == "dormant"
            archives.behaviours["f"] = C
            clock.advance(31)
            assert outcomes(await aggregator.find(f"{PAGE}/4"))["f"] in ("hit", "dormant")
            assert outcomes(await aggregator.find(f"{PAGE}/5"))["f"] == "hit"

    run(work())


RETRY_TIMES: dict[str, tuple[dict[str, Behaviour], float | None]] = {
    "rate limits": (
        {"f": NotNowError("wait", "f", 2e9 + 40, "rate"), "g": NotNowError("wait", "g", 2e9 + 20, "quota")},
        2e9 + 20,
    ),
    "a rate limit and a failure": (
        {"f": NotNowError("wait", "f", 2e9 + 40, "told-to-wait"), "g": FailedError("broken", "g", "reset")},
        2e9 + 40,
    ),
    "no slot": ({"f": NotNowError("busy", "f", 2e9, "busy")}, None),
    "a failure": ({"f": FailedError("broken", "f", "reset")}, None),
    "nothing": ({"f": []}, None),
}


@pytest.mark.parametrize("case", RETRY_TIMES)
def test_retry_at_of_archives_that_did_not_answer(case: str) -> None:
    """The first rate limit counts; a failure and a lack of slots have no time."""
    behaviours, retry_at = RETRY_TIMES[case]

    async def work() -> None:
        async with make_aggregator(Archives(a=[], **behaviours)) as aggregator:
            assert (await aggregator.find(PAGE)).retry_at == retry_at

    run(work())


def test_failure_that_opens_a_circuit_sets_retry_at() -> None:
    """And so do the requests after it, which skip the archive."""

    async def work() -> None:
        clock = VirtualClock()
        async with make_aggregator(Archives(a=[], f=FailedError("broken", "f", "reset")), clock) as aggregator:
            found = [await aggregator.find(f"{PAGE}/{number}") for number in range(4)]
            assert [each.retry_at for each in found] == [None, None, clock.now() + 30, clock.now() + 30]
            assert outcomes(found[3]) == {"a": "miss", "f": "dormant"}

    run(work())


@pytest.mark.parametrize("fault", ["500", "too-large", "html", "redirects"])
def test_bad_pages_of_one_host_do_not_open_the_circuit(fault: str) -> None:
    """It is queried for other pages as before."""

    async def work() -> None:
        archives = Archives(a=[], f=FAULTS[fault][0])
        async with make_aggregator(archives) as aggregator:
            for number in range(10):
                await aggregator.find(f"{PAGE}/{number}")
            archives.behaviours["f"] = C
            found = await aggregator.find("http://other.example/")
            assert outcomes(found) == {"a": "miss", "f": "hit"}

    run(work())
