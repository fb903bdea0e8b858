"""The policies of requests: their numbers are valid, and those that the documentation has."""

import math
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from tests.virtual_clock import VirtualClock
from unlost.errors import FailedError, NotNowError
from unlost.http import (
    FAILING,
    MAX_WAITS,
    POLICIES,
    RETRIES,
    TIMEOUTS,
    BreakerPolicy,
    BreakerRegistry,
    BreakerState,
    CircuitBreaker,
    RetryPolicy,
    Suspension,
    Timeouts,
)

PAGE = (Path(__file__).parents[2] / "docs" / "archives.md").read_text()


def duration(seconds: float) -> str:
    """Return a duration as the tables have it."""
    return "until the run ends" if seconds == math.inf else f"{seconds:g} s"


def table(header: str) -> dict[str, list[str]]:
    """Return the rows of the table with this header, by the code in the first column."""
    lines = PAGE.partition(f"\n{header}\n")[2].splitlines()[1:]
    rows = {}
    for line in lines:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name.strip("`")] = cells
    return rows


def test_documentation_has_the_breaker_policies() -> None:
    """Failures, pause and growth of every use."""
    documented = {name: cells[1:] for name, cells in table("| use | of | failures | pause | growth |").items()}
    assert documented == {
        name: [
            str(policy.failures),
            duration(policy.pause),
            ""
            if policy.growth == 1
            else f"\N{MULTIPLICATION SIGN} {policy.growth:g}, up to {duration(policy.max_pause)}",
        ]
        for name, policy in POLICIES.items()
    }


def test_documentation_has_the_retry_policies() -> None:
    """Number, delay and kinds of every use."""
    documented = {name: cells[1:] for name, cells in table("| use | of | retries | delays | kinds |").items()}
    assert documented == {
        name: [
            str(policy.retries),
            ", ".join(duration(policy.delay_before(retry)) for retry in range(policy.retries)) if policy.delay else "",
            ", ".join(f"`{kind}`" for kind in sorted(policy.kinds)),
        ]
        for name, policy in RETRIES.items()
    }


def test_documentation_has_the_timeouts_and_waits() -> None:
    """Every number of every use."""
    timeouts = table("| use | connect | first byte | idle | total |")
    assert timeouts == {
        name: [duration(each) for each in (timeout.connect, timeout.first_byte, timeout.idle, timeout.total)]
        for name, timeout in TIMEOUTS.items()
    }
    waits = {name: cells[1] for name, cells in table("| use | of | longest wait |").items()}
    assert waits == {name: duration(seconds) for name, seconds in MAX_WAITS.items()}


@pytest.mark.parametrize(
    "numbers",
    [
        {"failures": 0},
        {"pause": -1.0},
        {"pause": math.nan},
        {"pause": 60.0, "max_pause": 30.0},
        {"growth": 0.5},
        {"growth": math.inf},
        {"window": 0.0},
        {"page_window": 0.0},
        {"page_hosts": 0},
        {"min_responses": 0},
        {"max_failure_share": 0.0},
        {"max_failure_share": 1.5},
        {"kinds": frozenset({"a"}), "page_kinds": frozenset({"b"})},
    ],
)
def test_invalid_breaker_policy_is_rejected(numbers: dict[str, object]) -> None:
    """Each number is validated."""
    with pytest.raises(ValueError, match="expected"):
        BreakerPolicy(**{"failures": 1, "pause": 1.0, **numbers})  # type: ignore[arg-type]


@pytest.mark.parametrize("numbers", [{"retries": -1}, {"delay": -1.0}, {"delay": math.nan}, {"growth": 0.5}])
def test_invalid_retry_policy_is_rejected(numbers: dict[str, float]) -> None:
    """Each number is validated."""
    with pytest.raises(ValueError, match="expected"):
        RetryPolicy(**{"retries": 1, **numbers})  # type: ignore[arg-type]


def test_policies_cannot_be_changed() -> None:
    """Neither a policy nor the tables."""
    with pytest.raises(FrozenInstanceError):
        POLICIES["crawl"].failures = 1  # type: ignore[misc]
    for policies in (POLICIES, RETRIES, TIMEOUTS, MAX_WAITS):
        with pytest.raises(TypeError):
            policies["crawl"] = 1  # type: ignore[index]


def test_timeouts_within_a_deadline() -> None:
    """A connection may take 5 seconds, or all of a shorter deadline."""
    assert Timeouts.within(10.0) == Timeouts(5.0, 10.0, 10.0, 10.0)
    assert Timeouts.within(2.0) == Timeouts(2.0, 2.0, 2.0, 2.0)


@pytest.mark.parametrize("use", POLICIES)
def test_breaker_opens_after_its_failures_and_closes_after_a_success(use: str) -> None:
    """For every policy; a failed trial opens the circuit again."""
    clock, policy = VirtualClock(), POLICIES[use]  # type: ignore[index]
    kind = min(set(policy.kinds or {"timeout"}) - policy.page_kinds)
    breaker = CircuitBreaker(clock, policy, "a")
    outcomes = [breaker.record_failure(kind, "no") for _ in range(policy.failures)]
    assert outcomes == [False] * (policy.failures - 1) + [True]
    until = clock.now() + policy.pause
    message = f"a: {policy.failures} failures in a row, the last: no"
    assert breaker.suspension == Suspension(until, FAILING, message)
    clock.advance(min(policy.pause, 1e9) - 1)
    assert not breaker.allows_request()
    if policy.pause < math.inf:
        clock.advance(1)
        assert breaker.allows_request()
        assert breaker.record_failure(kind, "no")
        assert breaker.status().until == clock.now() + policy.growth * policy.pause
    breaker.half_open()
    breaker.record_success()
    assert breaker.status().state is BreakerState.CLOSED
    assert breaker.record_failure(kind) == (policy.failures == 1)


def test_kinds_that_do_not_count_are_ignored() -> None:
    """They neither open the circuit nor reset the count."""
    policy = POLICIES["crawl"]
    breaker = CircuitBreaker(VirtualClock(), policy)
    for _ in range(policy.failures - 1):
        breaker.record_failure("dns")
        assert not breaker.record_failure("timeout")
    assert breaker.status().failures == policy.failures - 1
    assert breaker.record_failure("refused")


def test_not_now_error_opens_until_its_date() -> None:
    """Other errors are counted."""
    breakers = BreakerRegistry(VirtualClock(), POLICIES["recover"])
    assert not breakers.breaker("a").record_error(FailedError("no", "a", "timeout"))
    assert breakers.breaker("b").record_error(NotNowError("later", "b", 99.0, "quota"))
    assert breakers.suspended == {"b": Suspension(99.0, "quota", "later")}
    assert breakers.suspended_until() == {"b": 99.0}


def test_half_open_circuit_is_not_reported_as_suspended() -> None:
    """Failures that do not count neither close nor open it; requests are sent."""
    clock = VirtualClock()
    breakers = BreakerRegistry(clock, POLICIES["crawl"])
    breaker = breakers.breaker("a")
    for _ in range(POLICIES["crawl"].failures):
        breaker.record_failure("dns")
    assert list(breakers.suspended_until()) == ["a"]
    clock.advance(POLICIES["crawl"].pause)
    assert breakers.allows_request("a")
    assert not breaker.record_failure("timeout")
    assert breakers.suspended_until() == {}


def test_pause_until_the_end_of_the_run_survives_a_clock_that_is_set_back() -> None:
    """A finite pause ends, since its age is unknown."""
    for use, allows in (("check", False), ("recover", True)):
        clock = VirtualClock()
        breaker = CircuitBreaker(clock, POLICIES[use])  # type: ignore[index]
        for _ in range(POLICIES[use].failures):  # type: ignore[index]
            breaker.record_failure("timeout")
        clock.advance(-10)
        assert breaker.allows_request() == allows


def test_message_names_why_the_circuit_opened() -> None:
    """A trial request that failed is one failure."""
    clock = VirtualClock()
    breaker = CircuitBreaker(clock, POLICIES["recover"], "a")
    for _ in range(POLICIES["recover"].failures):
        breaker.record_failure("timeout", "late")
    clock.advance(POLICIES["recover"].pause)
    assert breaker.allows_request()
    breaker.record_failure("timeout", "late")
    assert breaker.suspension is not None
    assert breaker.suspension.message == "a: a trial request failed, the last: late"


def test_late_outcomes_without_a_permit_do_not_change_an_open_circuit() -> None:
    """They belong to requests that were sent before it opened."""
    clock = VirtualClock()
    breaker = CircuitBreaker(clock, POLICIES["recover"])
    breaker.open(clock.now() + 60, "told-to-wait")
    breaker.record_success()
    assert breaker.record_failure("timeout")
    assert breaker.suspension == Suspension(clock.now() + 60, "told-to-wait", "")


def test_success_of_an_unknown_host_takes_no_memory() -> None:
    """Only hosts that failed have a breaker."""
    breakers = BreakerRegistry(VirtualClock(), POLICIES["crawl"])
    breakers.record_success("a")
    assert breakers.allows_request("a")
    assert breakers.statuses() == {}
