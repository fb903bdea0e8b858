"""Circuit breakers of archives: opening, open time, trials."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.virtual_clock import VirtualClock
from unlost.aggregate import record_outcome
from unlost.http import (
    FAILURE_OUTCOMES,
    PAGE_FAILURE_OUTCOMES,
    POLICIES,
    BreakerRegistry,
    BreakerState,
    CircuitBreaker,
)


def record_each(breaker: CircuitBreaker, *outcomes: str) -> None:
    """Record each outcome, for pages of different hosts."""
    for number, outcome in enumerate(outcomes):
        record_pages(breaker, outcome, f"http://host{number}.example/")


def record_pages(breaker: CircuitBreaker, outcome: str, *pages_of: str) -> None:
    """Record one outcome for each page."""
    for page in pages_of:
        entry = breaker.acquire()
        assert entry is not None
        record_outcome(breaker, entry, outcome, f"it was {outcome}", uri=page)


@pytest.mark.parametrize("outcome", sorted(FAILURE_OUTCOMES))
def test_three_consecutive_failures_open_the_circuit(outcome: str) -> None:
    """Of any kind; the status has the last one."""
    clock = VirtualClock()
    breaker = CircuitBreaker(clock, POLICIES["aggregate"])
    record_pages(breaker, outcome, "http://a.example/", "http://b.example/")
    assert breaker.status().state is BreakerState.CLOSED
    record_pages(breaker, outcome, "http://c.example/")
    assert breaker.acquire() is None
    condition = breaker.status()
    assert (condition.state, condition.until) == (BreakerState.OPEN, clock.now() + 30)
    assert (condition.last_failure, condition.last_message) == (outcome, f"it was {outcome}")
    assert (condition.failures, condition.successes, condition.times_opened, condition.consecutive_failures) == (
        3,
        0,
        1,
        3,
    )


@pytest.mark.parametrize("outcome", ["hit", "miss", "excluded", "http-4xx"])
def test_response_resets_consecutive_failures(outcome: str) -> None:
    """Whatever its content."""
    breaker = CircuitBreaker(VirtualClock(), POLICIES["aggregate"])
    for _ in range(5):
        record_each(breaker, "timeout", "reset", outcome)
    assert breaker.acquire() is not None


@pytest.mark.parametrize("outcome", ["not-now", "limited", None])
def test_rate_limits_and_cancellations_are_not_counted(outcome: str | None) -> None:
    """Neither as failures nor as successes."""
    breaker = CircuitBreaker(VirtualClock(), POLICIES["aggregate"])
    for _ in range(50):
        entry = breaker.acquire()
        assert entry is not None
        record_outcome(breaker, entry, outcome)
    record_each(breaker, "timeout", "timeout")
    entry = breaker.acquire()
    assert entry is not None
    record_outcome(breaker, entry, outcome)
    record_each(breaker, "timeout")
    assert breaker.acquire() is None


def test_failure_rate_within_the_window_opens_the_circuit() -> None:
    """Without three consecutive failures; failures outside the window are ignored."""
    clock = VirtualClock()
    breaker = CircuitBreaker(clock, POLICIES["aggregate"])
    for _ in range(9):
        record_each(breaker, "hit", "timeout")
    clock.advance(120)
    record_each(breaker, "hit", "timeout")
    assert breaker.acquire() is not None
    for _ in range(8):
        record_each(breaker, "hit", "timeout")
    assert breaker.acquire() is not None
    record_each(breaker, "hit", "timeout")
    assert breaker.acquire() is None


def test_half_open_circuit_admits_one_trial() -> None:
    """Other requests are rejected until the trial succeeds."""
    clock = VirtualClock()
    breaker = CircuitBreaker(clock, POLICIES["aggregate"])
    record_each(breaker, *["timeout"] * 3)
    clock.advance(29)
    assert breaker.acquire() is None
    clock.advance(2)
    assert breaker.status().state is BreakerState.HALF_OPEN
    trial = breaker.acquire()
    assert trial is not None
    assert trial.is_trial
    assert [breaker.acquire() for _ in range(5)] == [None] * 5
    record_outcome(breaker, trial, "miss")
    assert breaker.status().state is BreakerState.CLOSED
    record_each(breaker, "timeout", "timeout")
    assert breaker.acquire() is not None, "the failures before the trial are forgotten"


def test_failed_trial_doubles_the_open_time() -> None:
    """Up to a quarter of an hour; a success resets it."""
    clock = VirtualClock()
    breaker = CircuitBreaker(clock, POLICIES["aggregate"])
    record_each(breaker, *["timeout"] * 3)
    rests = []
    for _ in range(8):
        until = breaker.status().until
        assert until is not None
        rests.append(until - clock.now())
        clock.advance(rests[-1] - 1)
        assert breaker.acquire() is None
        clock.advance(1)
        record_each(breaker, "reset")
    assert rests == [30, 60, 120, 240, 480, 900, 900, 900]
    clock.advance(901)
    record_each(breaker, "hit", *["timeout"] * 3)
    assert breaker.status().until == clock.now() + 30


@pytest.mark.parametrize("ended", [None, "not-now"])
def test_inconclusive_trial_admits_another_one(ended: str | None) -> None:
    """It was cancelled or never sent."""
    clock = VirtualClock()
    breaker = CircuitBreaker(clock, POLICIES["aggregate"])
    record_each(breaker, *["timeout"] * 3)
    clock.advance(31)
    trial = breaker.acquire()
    assert trial is not None
    record_outcome(breaker, trial, ended)
    again = breaker.acquire()
    assert again is not None
    assert again.is_trial


@pytest.mark.parametrize("late", ["hit", "timeout"])
def test_responses_to_requests_sent_before_opening_are_ignored(late: str) -> None:
    """They neither close the circuit nor extend its open time."""
    clock = VirtualClock()
    breaker = CircuitBreaker(clock, POLICIES["aggregate"])
    before = [breaker.acquire() for _ in range(6)]
    for entry in before[:3]:
        assert entry is not None
        record_outcome(breaker, entry, "timeout")
    condition = breaker.status()
    for entry in before[3:]:
        assert entry is not None
        record_outcome(breaker, entry, late)
    assert breaker.acquire() is None
    assert (breaker.status().until, breaker.status().times_opened) == (condition.until, 1)


def test_clock_set_back_does_not_extend_the_open_time() -> None:
    """A trial is admitted at once instead."""
    clock = VirtualClock()
    breaker = CircuitBreaker(clock, POLICIES["aggregate"])
    record_each(breaker, *["timeout"] * 3)
    clock.advance(-3600)
    trial = breaker.acquire()
    assert trial is not None
    assert trial.is_trial


@given(st.lists(st.tuples(st.sampled_from(["hit", "timeout", "not-now", None]), st.floats(0, 100)), max_size=60))
def test_open_time_is_bounded_for_any_sequence_of_events(steps: list[tuple[str | None, float]]) -> None:
    """One trial at a time is admitted when the open time is over."""
    clock = VirtualClock()
    breaker = CircuitBreaker(clock, POLICIES["aggregate"])
    for outcome, seconds in steps:
        clock.advance(seconds)
        condition = breaker.status()
        entry = breaker.acquire()
        assert (entry is None) == (condition.state is BreakerState.OPEN)
        if entry is None:
            assert condition.until is not None
            assert clock.now() < condition.until <= clock.now() + 900
            assert condition.last_failure == "timeout"
        else:
            assert entry.is_trial == (condition.state is BreakerState.HALF_OPEN)
            if entry.is_trial:
                assert breaker.acquire() is None
            record_outcome(breaker, entry, outcome)


def test_circuits_of_archives_are_independent() -> None:
    """Failures of one archive do not affect another."""
    breakers = BreakerRegistry(VirtualClock(), POLICIES["aggregate"])
    record_each(breakers.breaker("a"), *["timeout"] * 3)
    record_each(breakers.breaker("b"), "hit")
    assert {name: each.state.value for name, each in breakers.statuses().items()} == {"a": "dormant", "b": "active"}


def pages_of(*hosts: str) -> list[str]:
    """Return a different page for each host."""
    return [f"http://{host}.example/{number}" for number, host in enumerate(hosts)]


@pytest.mark.parametrize("outcome", sorted(PAGE_FAILURE_OUTCOMES))
def test_bad_pages_of_few_hosts_do_not_open_the_circuit(outcome: str) -> None:
    """Neither consecutive nor most requests; spellings of a host are one host."""
    breaker = CircuitBreaker(VirtualClock(), POLICIES["aggregate"])
    record_pages(breaker, outcome, *pages_of(*["a", "www.a", "A", "b"] * 25))
    assert breaker.status().state is BreakerState.CLOSED
    assert (breaker.status().last_failure, breaker.status().failures) == (outcome, 100)


@pytest.mark.parametrize("outcome", sorted(PAGE_FAILURE_OUTCOMES))
def test_bad_pages_of_three_hosts_within_five_minutes_open_the_circuit(outcome: str) -> None:
    """After that time the first is dropped."""
    clock = VirtualClock()
    breaker = CircuitBreaker(clock, POLICIES["aggregate"])
    for host in "abcdef":
        record_pages(breaker, outcome, *pages_of(host))
        clock.advance(151)
    assert breaker.status().state is BreakerState.CLOSED
    record_pages(breaker, outcome, *pages_of("g", "h"))
    assert breaker.status().state is BreakerState.OPEN


def test_clock_set_back_drops_bad_pages() -> None:
    """Their age is unknown."""
    clock = VirtualClock()
    breaker = CircuitBreaker(clock, POLICIES["aggregate"])
    record_pages(breaker, "malformed", *pages_of("a", "b"))
    clock.advance(-3600)
    record_pages(breaker, "malformed", *pages_of("c"))
    assert breaker.status().state is BreakerState.CLOSED


def test_successes_limit_consecutive_bad_pages_only() -> None:
    """Consecutive: hosts that failed since the last success; in the window: those of the last five minutes."""
    breaker = CircuitBreaker(VirtualClock(), POLICIES["aggregate"])
    record_pages(breaker, "http-5xx", *pages_of("a", "b"))
    record_each(breaker, "hit")
    record_pages(breaker, "http-5xx", *pages_of(*"cccc"))
    assert breaker.status().state is BreakerState.CLOSED, "one page of one host, again and again"
    for _ in range(7):
        assert breaker.status().state is BreakerState.CLOSED
        record_each(breaker, "hit")
        record_pages(breaker, "http-5xx", *pages_of("c"))
    assert breaker.status().state is BreakerState.OPEN, "half of 20, of three hosts"


@pytest.mark.parametrize("of_page", sorted(PAGE_FAILURE_OUTCOMES))
def test_bad_page_does_not_count_towards_other_failures(of_page: str) -> None:
    """Nor does it reset them."""
    breaker = CircuitBreaker(VirtualClock(), POLICIES["aggregate"])
    record_pages(breaker, of_page, *pages_of("a", "a"))
    record_pages(breaker, "timeout", *pages_of("a", "a"))
    record_pages(breaker, of_page, *pages_of("a", "b"))
    assert breaker.status().state is BreakerState.CLOSED
    record_pages(breaker, "timeout", *pages_of("a"))
    assert breaker.status().state is BreakerState.OPEN


def test_bad_page_in_a_trial_is_inconclusive() -> None:
    """The next request is the trial; three hosts open the circuit again."""
    clock = VirtualClock()
    breaker = CircuitBreaker(clock, POLICIES["aggregate"])
    record_each(breaker, *["timeout"] * 3)
    clock.advance(31)
    record_pages(breaker, "too-large", *pages_of("a", "a", "b"))
    assert breaker.status().state is BreakerState.HALF_OPEN
    record_pages(breaker, "too-large", *pages_of("c"))
    assert breaker.status().until == clock.now() + 60
